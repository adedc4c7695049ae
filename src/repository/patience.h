/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a thread waits for a server of a repository. The deadline of a call and the cancelling
 * of an operation reach requests that are deep below them this way.
 */
#ifndef REPOSITORY_PATIENCE_H
#define REPOSITORY_PATIENCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * From begin to end, requests of this thread are not repeated once it is over, and end soon if the
 * server does not answer. Another one may be in force around it: it counts, too.
 */
struct patience {
    bool (*is_over)(void *context); /* called often, from any thread; may be NULL */
    void *context;
    uint64_t until_ms;             /* of clock_now_ms; 0: no limit */
    uint64_t repeat_ms;            /* no request is repeated for longer; 0: as the place likes */
    const struct patience *around; /* set by patience_begin */
};

void patience_begin(struct patience *patience);
void patience_end(struct patience *patience);

/* Whether that of this thread is over. */
bool patience_is_over(void);

/* The time that is left, at most `most_ms`, and at least 1 ms. */
uint64_t patience_left_ms(uint64_t most_ms);
/* How long a request is repeated, at most `most_ms`. */
uint64_t patience_repeat_ms(uint64_t most_ms);

/* As pthread_create. The thread has the patience of this one, and ends before that does. */
int patience_start_thread(pthread_t *thread, void *(*work)(void *context), void *context);

#endif
