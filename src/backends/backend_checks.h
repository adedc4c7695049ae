/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of arguments that all back ends have in common. */
#ifndef BACKENDS_BACKEND_CHECKS_H
#define BACKENDS_BACKEND_CHECKS_H

#include "backends/backend.h"

MUST_CHECK struct error *backend_check_data(const struct data *data);

/* Only volumes can be changed: FAILED_PRECONDITION. */
MUST_CHECK struct error *backend_check_volume(const struct data *data);

/* A copy has the kind of its source. */
MUST_CHECK struct error *backend_check_pair(const struct data *from, const struct data *to);

MUST_CHECK struct error *backend_check_note(const struct data_note *note);
MUST_CHECK struct error *backend_check_settings(const struct backend *backend,
                                                const struct data *data,
                                                const struct data_settings *settings);

#endif
