/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as Velero logs them: with the place in the source where they were returned. */
#ifndef VELERO_PLUGIN_ERROR_H
#define VELERO_PLUGIN_ERROR_H

#include "base/error.h"

/*
 * Adds the place to the details of the error, as message generated.Stack. Takes the error; NULL
 * stays NULL.
 */
#define PLUGIN_ERROR(error) plugin_error_locate((error), __FILE__, __LINE__, __func__)
MUST_CHECK struct error *plugin_error_locate(struct error *error, const char *file, int line,
                                             const char *function);

#endif
