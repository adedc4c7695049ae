/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do the same: see crew.h. */
#include "exports/crew.h"

#include <pthread.h>

#include "repository/patience.h"

struct error *
crew_run(size_t count, void *(*work)(void *context), void *context)
{
    pthread_t threads[CREW_MOST];
    size_t started = 0;
    int errnum = 0;
    for (; started < count && started < CREW_MOST && !errnum; started += !errnum)
        errnum = patience_start_thread(&threads[started], work, context);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started ? NULL : error_from_errno(errnum, "start a thread");
}
