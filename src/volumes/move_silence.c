/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that do not answer: see move_silence.h. A move is known by its volume and its epoch. */
#include "volumes/move_silence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

struct silent_move {
    struct silent_move *next;
    char handle[BACKEND_HANDLE_SIZE];
    uint64_t epoch;
    uint64_t since_ms;
    bool is_seen; /* in this round */
};

/* The place of a pointer to it, or to NULL. */
static struct silent_move **
find(struct move_silence *silence, const volume_record *volume)
{
    struct silent_move **place = &silence->first;
    while (*place &&
           ((*place)->epoch != volume->epoch || strcmp((*place)->handle, volume->handle) != 0))
        place = &(*place)->next;
    return place;
}

static void
drop(struct silent_move **place)
{
    struct silent_move *move = *place;
    *place = move->next;
    free(move);
}

uint64_t
move_silence_ms(struct move_silence *silence, const volume_record *volume)
{
    struct silent_move **place = find(silence, volume);
    if (!*place) {
        struct silent_move *move = *place = memory_zeroed(sizeof *move);
        snprintf(move->handle, sizeof move->handle, "%s", volume->handle);
        move->epoch = volume->epoch;
        move->since_ms = clock_now_ms();
    }
    (*place)->is_seen = true;
    return clock_now_ms() - (*place)->since_ms;
}

void
move_silence_end(struct move_silence *silence, const volume_record *volume)
{
    struct silent_move **place = find(silence, volume);
    if (*place)
        drop(place);
}

void
move_silence_end_round(struct move_silence *silence)
{
    for (struct silent_move **place = &silence->first; *place;) {
        bool is_seen = (*place)->is_seen;
        (*place)->is_seen = false;
        if (is_seen)
            place = &(*place)->next;
        else
            drop(place);
    }
}

void
move_silence_clear(struct move_silence *silence)
{
    while (silence->first)
        drop(&silence->first);
}
