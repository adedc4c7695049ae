/* SPDX-License-Identifier: Apache-2.0 */
/* How long a thread waits for a server: see patience.h. */
#include "repository/patience.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"

static _Thread_local const struct patience *current;

struct start {
    void *(*run)(void *context);
    void *context;
    const struct patience *patience;
};

void
patience_begin(struct patience *patience)
{
    patience->around = current;
    current = patience;
}

void
patience_end(struct patience *patience)
{
    current = patience->around;
}

bool
patience_is_over(void)
{
    bool is_over = false;
    for (const struct patience *at = current; at && !is_over; at = at->around)
        is_over = (at->until_ms && clock_now_ms() >= at->until_ms) ||
                  (at->is_over && at->is_over(at->context));
    return is_over;
}

uint64_t
patience_left_ms(uint64_t most_ms)
{
    uint64_t now_ms = clock_now_ms(), left_ms = most_ms;
    for (const struct patience *at = current; at; at = at->around) {
        uint64_t own_ms = at->until_ms > now_ms ? at->until_ms - now_ms : 1;
        if (at->until_ms && own_ms < left_ms)
            left_ms = own_ms;
    }
    return left_ms;
}

uint64_t
patience_repeat_ms(uint64_t most_ms)
{
    for (const struct patience *at = current; at; at = at->around)
        if (at->repeat_ms && at->repeat_ms < most_ms)
            most_ms = at->repeat_ms;
    return most_ms;
}

static void *
run(void *context)
{
    struct start start = *(struct start *)context;
    free(context);
    current = start.patience;
    return start.run(start.context);
}

int
patience_start_thread(pthread_t *thread, void *(*work)(void *context), void *context)
{
    struct start *start = memory_new(sizeof *start);
    *start = (struct start){work, context, current};
    int errnum = pthread_create(thread, NULL, run, start);
    if (errnum)
        free(start);
    return errnum;
}
