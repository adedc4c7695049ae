/* SPDX-License-Identifier: Apache-2.0 */
/* The remotes of the members: see remote_table.h. */
#include "cluster/remote_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct remote_table {
    pthread_mutex_t lock;
    struct remote **remotes;
    size_t count;
};

struct remote_table *
remote_table_new(void)
{
    struct remote_table *table = memory_zeroed(sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    return table;
}

void
remote_table_free(struct remote_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        remote_release(table->remotes[i]);
    free(table->remotes);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

/* With the lock held. */
static size_t
find(const struct remote_table *table, const char *node_id)
{
    size_t i = 0;
    while (i < table->count && strcmp(remote_node_id(table->remotes[i]), node_id) != 0)
        i++;
    return i;
}

/* With the lock held. Takes the remote. */
static void
keep(struct remote_table *table, size_t at, struct remote *remote)
{
    if (at < table->count) {
        remote_release(table->remotes[at]);
    } else {
        size_t count = ++table->count;
        table->remotes = memory_resize(table->remotes, count * sizeof(struct remote *));
    }
    table->remotes[at] = remote;
}

struct error *
remote_table_get(struct remote_table *table, const struct remote_options *options,
                 struct remote **out)
{
    struct error *error = NULL;
    pthread_mutex_lock(&table->lock);
    size_t at = find(table, options->node_id);
    if (at == table->count || strcmp(remote_address(table->remotes[at]), options->address) != 0) {
        struct remote *opened;
        error = remote_open(options, &opened);
        if (!error)
            keep(table, at, opened);
    }
    if (!error)
        *out = remote_share(table->remotes[at]);
    pthread_mutex_unlock(&table->lock);
    return error;
}

struct remote *
remote_table_find(struct remote_table *table, const char *node_id)
{
    pthread_mutex_lock(&table->lock);
    size_t at = find(table, node_id);
    struct remote *remote = at < table->count ? remote_share(table->remotes[at]) : NULL;
    pthread_mutex_unlock(&table->lock);
    return remote;
}

void
remote_table_drop(struct remote_table *table, const char *node_id)
{
    pthread_mutex_lock(&table->lock);
    size_t at = find(table, node_id);
    struct remote *dropped = NULL;
    if (at < table->count) {
        dropped = table->remotes[at];
        table->remotes[at] = table->remotes[--table->count];
    }
    pthread_mutex_unlock(&table->lock);
    remote_release(dropped);
}

void
remote_table_stop(struct remote_table *table)
{
    pthread_mutex_lock(&table->lock);
    size_t count = table->count;
    struct remote **remotes = memory_zeroed(count * sizeof *remotes);
    for (size_t i = 0; i < count; i++)
        remotes[i] = remote_share(table->remotes[i]);
    pthread_mutex_unlock(&table->lock);
    for (size_t i = 0; i < count; i++) { /* without the lock: the loop thread takes it, too */
        remote_stop(remotes[i]);
        remote_release(remotes[i]);
    }
    free(remotes);
}
