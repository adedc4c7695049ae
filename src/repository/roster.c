/* SPDX-License-Identifier: Apache-2.0 */
/* The writers of this process: see roster.h. */
#include "repository/roster.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "repository/id_set.h"
#include "repository/sealing.h"

#define MARK_BYTES 16u /* at the end of a name: its beginning is a hash in sets */

struct repository_roster {
    uint8_t mark[MARK_BYTES];
    pthread_mutex_t lock;
    struct id_set open; /* names of objects */
};

struct error *
repository_roster_open(struct repository_roster **out)
{
    struct repository_roster *roster = memory_zeroed(sizeof *roster);
    pthread_mutex_init(&roster->lock, NULL);
    struct error *error = sealing_random(roster->mark, sizeof roster->mark);
    if (error)
        repository_roster_close(roster);
    else
        *out = roster;
    return error;
}

void
repository_roster_close(struct repository_roster *roster)
{
    if (!roster)
        return;
    id_set_clear(&roster->open);
    pthread_mutex_destroy(&roster->lock);
    free(roster);
}

struct error *
roster_enter(struct repository_roster *roster, struct object_name *name)
{
    struct error *error = sealing_random(name->bytes, sizeof name->bytes);
    if (error || !roster)
        return error;
    memcpy(name->bytes + sizeof name->bytes - MARK_BYTES, roster->mark, MARK_BYTES);
    pthread_mutex_lock(&roster->lock);
    id_set_add(&roster->open, name->bytes);
    pthread_mutex_unlock(&roster->lock);
    return NULL;
}

void
roster_leave(struct repository_roster *roster, const struct object_name *name)
{
    if (!roster)
        return;
    pthread_mutex_lock(&roster->lock);
    id_set_remove(&roster->open, name->bytes);
    pthread_mutex_unlock(&roster->lock);
}

bool
roster_has_left(struct repository_roster *roster, const struct object_name *name)
{
    const uint8_t *mark = name->bytes + sizeof name->bytes - MARK_BYTES;
    if (!roster || memcmp(mark, roster->mark, MARK_BYTES) != 0)
        return false;
    pthread_mutex_lock(&roster->lock);
    bool is_open = id_set_has(&roster->open, name->bytes);
    pthread_mutex_unlock(&roster->lock);
    return !is_open;
}
