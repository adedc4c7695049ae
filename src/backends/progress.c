/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of long work: see struct progress in backend.h. */
#include <unistd.h>

#include "backends/backend.h"

#define REST_STEP_MS 50u

void
progress_rest(const struct progress *progress, uint32_t ms)
{
    if (progress->rest) {
        progress->rest(progress->context, ms);
        return;
    }
    for (uint32_t slept = 0; slept < ms && !progress->cancelled(progress->context);
         slept += REST_STEP_MS)
        usleep(REST_STEP_MS * 1000);
}

void
progress_pause(const struct progress *progress, uint32_t ms)
{
    if (progress->pause)
        progress->pause(progress->context, ms);
    else
        progress_rest(progress, ms);
}

struct error *
progress_begin_anew(const struct progress *progress, struct progress *out)
{
    *out = progress ? *progress : (struct progress){0};
    out->position = NULL;
    return progress && progress->position ? progress->save(progress->context, NULL) : NULL;
}
