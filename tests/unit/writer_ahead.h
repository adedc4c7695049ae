/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that writes faster than anybody reads: poll(2), which this replaces, finds something in its pipe whenever it looks. On a real machine
 * the pipe is empty now and then, and what forgets its time limit over the reading gets away with it.
 */
#ifndef UNIT_WRITER_AHEAD_H
#define UNIT_WRITER_AHEAD_H

#include <poll.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int writer_place =
    -1;                          /* of its pipe among the descriptors that are polled; -1: none */
static atomic_long writer_end_s; /* the writer is ahead until then, so that a test ends */

static inline time_t
writer_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static inline void
writer_goes_ahead(int place, int seconds)
{
    writer_end_s = writer_now_s() + seconds;
    writer_place = place;
}

static inline void
writer_stays_behind(void)
{
    writer_place = -1;
}

/* In place of the library's poll, under another name here: its header may have an inline poll. */
int writer_poll(struct pollfd *polled, nfds_t count, int timeout_ms) __asm__("poll");

int
writer_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    int place = writer_place;
    struct timespec limit = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
    struct timespec patience = {.tv_sec = 1};
    if (place >= 0 && (nfds_t)place < count && writer_now_s() < writer_end_s)
        ppoll(&polled[place], 1, &patience, NULL);
    return ppoll(polled, count, timeout_ms < 0 ? NULL : &limit, NULL);
}

#endif
