/* SPDX-License-Identifier: Apache-2.0 */
/* Reading ahead: see tree_ahead.h. Errors are found again when the file is exported. */
#include "exports/tree_ahead.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define THREADS 4u
#define WINDOW 128u    /* entries */
#define FEW_ENTRIES 8u /* are not worth it */

struct tree_ahead {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t threads[THREADS];
    size_t thread_count;
    bool is_ending;
    int directory;
    const struct tree_listing *listing; /* NULL: there is nothing to do */
    size_t current;                     /* is being exported */
    size_t next;                        /* to be read */
    size_t busy;                        /* threads that read */
};

/* Opening is most of the work for small files. Of larger ones the beginning is read. */
static void
read_file(int directory, const char *name, uint8_t *bytes)
{
    int fd AUTO(files_close) = files_open_quietly(directory, name, O_NONBLOCK | O_NOCTTY);
    if (fd >= 0) {
        ssize_t ignored = read(fd, bytes, TREE_SMALL_FILE);
        (void)ignored;
    }
}

/* With the lock held: the next entry within the window; NULL if there is none. */
static const struct tree_name *
take(struct tree_ahead *ahead)
{
    if (!ahead->listing)
        return NULL;
    if (ahead->next <= ahead->current)
        ahead->next = ahead->current + 1;
    while (ahead->next < ahead->listing->count && ahead->next <= ahead->current + WINDOW) {
        const struct tree_name *name = &ahead->listing->names[ahead->next++];
        if (name->is_file)
            return name;
    }
    return NULL;
}

static void *
run(void *context)
{
    struct tree_ahead *ahead = context;
    uint8_t *bytes = memory_new(TREE_SMALL_FILE);
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->is_ending) {
        const struct tree_name *name = take(ahead);
        if (!name) {
            pthread_cond_wait(&ahead->changed, &ahead->lock);
            continue;
        }
        int directory = ahead->directory;
        ahead->busy++;
        pthread_mutex_unlock(&ahead->lock);
        read_file(directory, name->name, bytes);
        pthread_mutex_lock(&ahead->lock);
        if (--ahead->busy == 0 && !ahead->listing)
            pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);
    free(bytes);
    return NULL;
}

struct tree_ahead *
tree_ahead_new(void)
{
    struct tree_ahead *ahead = memory_zeroed(sizeof *ahead);
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    while (ahead->thread_count < THREADS &&
           !pthread_create(&ahead->threads[ahead->thread_count], NULL, run, ahead))
        ahead->thread_count++;
    if (ahead->thread_count)
        return ahead;
    tree_ahead_free(ahead);
    return NULL;
}

void
tree_ahead_free(struct tree_ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->is_ending = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    for (size_t i = 0; i < ahead->thread_count; i++)
        pthread_join(ahead->threads[i], NULL);
    pthread_mutex_destroy(&ahead->lock);
    pthread_cond_destroy(&ahead->changed);
    free(ahead);
}

void
tree_ahead_begin(struct tree_ahead *ahead, int directory, const struct tree_listing *listing)
{
    if (!ahead || listing->count < FEW_ENTRIES)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->directory = directory;
    ahead->listing = listing;
    ahead->current = ahead->next = 0;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

/* Wakes the threads now and then, not for each entry. */
void
tree_ahead_move(struct tree_ahead *ahead, size_t index)
{
    if (!ahead || index % (WINDOW / 4) != 0)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->current = index;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

void
tree_ahead_end(struct tree_ahead *ahead)
{
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->listing = NULL;
    while (ahead->busy)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    pthread_mutex_unlock(&ahead->lock);
}
