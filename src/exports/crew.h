/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads that do the same. */
#ifndef EXPORTS_CREW_H
#define EXPORTS_CREW_H

#include <stddef.h>

#include "base/error.h"

#define CREW_MOST 16u

/*
 * Runs the function on up to `count` threads and waits until all of them have ended. If some cannot
 * be started, the others do the work. An error: none could.
 */
MUST_CHECK struct error *crew_run(size_t count, void *(*work)(void *context), void *context);

#endif
