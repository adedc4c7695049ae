/* SPDX-License-Identifier: Apache-2.0 */
/* The writers of this process: see roster.h. */
#include "repository/roster.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "repository/id_set.h"
#include "repository/sealing.h"

#define MARK_BYTES 16u /* at the end of a name: its beginning is a hash in sets */
#define MARK_FILE "repository-writers"

struct repository_roster {
    uint8_t mark[MARK_BYTES];
    int file; /* locked; -1: the mark is not kept */
    pthread_mutex_t lock;
    struct id_set open; /* names of objects */
};

/* -1: it is not ours. */
static int
lock_file(const char *directory)
{
    char path[PATH_MAX];
    if (!directory || snprintf(path, sizeof path, "%s/" MARK_FILE, directory) >= PATH_MAX)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0)
        files_close(&fd);
    return fd;
}

/* Of an earlier process. */
static bool
read_mark(struct repository_roster *roster)
{
    static const uint8_t none[MARK_BYTES];
    return roster->file >= 0 &&
           pread(roster->file, roster->mark, MARK_BYTES, 0) == (ssize_t)MARK_BYTES &&
           memcmp(roster->mark, none, MARK_BYTES) != 0;
}

/* A mark that is not kept is good for this process. */
static struct error *
make_mark(struct repository_roster *roster)
{
    struct error *error = sealing_random(roster->mark, sizeof roster->mark);
    if (!error && roster->file >= 0 &&
        (pwrite(roster->file, roster->mark, MARK_BYTES, 0) != (ssize_t)MARK_BYTES ||
         fsync(roster->file) != 0))
        files_close(&roster->file);
    return error;
}

/* A copy of the directory on another node is of another roster. */
static void
mix_node(struct repository_roster *roster, const char *node_id)
{
    uint64_t mixed;
    memcpy(&mixed, roster->mark, sizeof mixed);
    mixed ^= hash_text(node_id);
    memcpy(roster->mark, &mixed, sizeof mixed);
}

struct error *
repository_roster_open(const char *directory, const char *node_id, struct repository_roster **out)
{
    struct repository_roster *roster = memory_zeroed(sizeof *roster);
    pthread_mutex_init(&roster->lock, NULL);
    roster->file = lock_file(directory);
    struct error *error = read_mark(roster) ? NULL : make_mark(roster);
    mix_node(roster, node_id);
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
    files_close(&roster->file);
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
