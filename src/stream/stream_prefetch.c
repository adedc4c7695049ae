/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead: see stream_prefetch.h. The kernel sends files in the order of their inode numbers,
 * which is the order in which they were made, and mostly that of a walk.
 */
#include "stream/stream_prefetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/tree_walk.h"

#define SMALL_BYTES (128u << 10) /* the kernel itself reads larger files ahead */
#define AHEAD_BYTES (UINT64_C(64) << 20)

/* False: it is over. */
static bool
wait_for_turn(struct stream_prefetch *prefetch, uint64_t asked_bytes)
{
    pthread_mutex_lock(&prefetch->lock);
    while (!prefetch->is_over && asked_bytes > prefetch->sent_bytes + AHEAD_BYTES)
        pthread_cond_wait(&prefetch->changed, &prefetch->lock);
    bool goes_on = !prefetch->is_over;
    pthread_mutex_unlock(&prefetch->lock);
    return goes_on;
}

/* Returns the bytes that it has asked for. */
static uint64_t
ask_for(int directory, const char *name, uint64_t size)
{
    int fd AUTO(files_close) =
        openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOATIME);
    if (fd < 0 || posix_fadvise(fd, 0, (off_t)size, POSIX_FADV_WILLNEED) != 0)
        return 0;
    return size;
}

/* The directories in a directory. */
struct names {
    char **items;
    size_t count;
};

static void
add_name(struct names *names, const char *name)
{
    if ((names->count & (names->count - 1)) == 0) /* room for the next power of two */
        names->items =
            memory_resize(names->items, (names->count ? 2 * names->count : 1) * sizeof(char *));
    names->items[names->count++] = memory_string(name);
}

/* The walk takes last what is pushed first. */
static void
push_all(struct tree_walk *walk, const char *path, struct names *names)
{
    while (names->count > 0) {
        char *name AUTO(memory_cleanup) = names->items[--names->count];
        tree_walk_push(walk, path, name, false);
    }
    free(names->items);
}

/* False: it is over. */
static bool
read_entries(struct stream_prefetch *prefetch, DIR *open, uint64_t *asked_bytes,
             struct names *directories)
{
    struct error *error AUTO(error_cleanup) = NULL;
    struct stat status;
    for (const char *name; (name = tree_walk_read(open, &error));) {
        if (fstatat(dirfd(open), name, &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISDIR(status.st_mode))
            add_name(directories, name);
        if (!S_ISREG(status.st_mode) || !status.st_blocks || status.st_size > SMALL_BYTES)
            continue;
        *asked_bytes += ask_for(dirfd(open), name, (uint64_t)status.st_size);
        if (!wait_for_turn(prefetch, *asked_bytes))
            return false;
    }
    return true;
}

static void *
run(void *context)
{
    struct stream_prefetch *prefetch = context;
    struct tree_walk walk = {.top = prefetch->root};
    uint64_t asked_bytes = 0;
    bool goes_on = true;
    tree_walk_push(&walk, ".", ".", false);
    for (struct tree_step *step; goes_on && (step = tree_walk_pop(&walk)); free(step)) {
        DIR *open = NULL;
        error_free(tree_walk_open(&walk, step->path, &open));
        if (!open)
            continue;
        struct names directories = {0};
        goes_on = read_entries(prefetch, open, &asked_bytes, &directories);
        push_all(&walk, step->path, &directories);
        closedir(open);
    }
    tree_walk_clear(&walk);
    return NULL;
}

void
stream_prefetch_begin(struct stream_prefetch *prefetch, int root)
{
    *prefetch = (struct stream_prefetch){.root = root};
    pthread_mutex_init(&prefetch->lock, NULL);
    pthread_cond_init(&prefetch->changed, NULL);
    prefetch->is_running = pthread_create(&prefetch->thread, NULL, run, prefetch) == 0;
}

void
stream_prefetch_advance(struct stream_prefetch *prefetch, uint64_t sent_bytes)
{
    pthread_mutex_lock(&prefetch->lock);
    prefetch->sent_bytes = sent_bytes;
    pthread_cond_signal(&prefetch->changed);
    pthread_mutex_unlock(&prefetch->lock);
}

void
stream_prefetch_end(struct stream_prefetch *prefetch)
{
    pthread_mutex_lock(&prefetch->lock);
    prefetch->is_over = true;
    pthread_cond_signal(&prefetch->changed);
    pthread_mutex_unlock(&prefetch->lock);
    if (prefetch->is_running)
        pthread_join(prefetch->thread, NULL);
    pthread_cond_destroy(&prefetch->changed);
    pthread_mutex_destroy(&prefetch->lock);
}
