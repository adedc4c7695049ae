/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks are in use, and where they are, for prune. */
#include "repository/prune_internal.h"

#include <string.h>

struct error *
prune_report(struct prune *prune)
{
    prune->done++;
    if (prune->total < prune->done) /* a snapshot is new */
        prune->total = prune->done;
    struct error *error = writers_refresh(prune->repository, &prune->own);
    return error ? error : repository_report(&prune->request->progress, prune->done, prune->total);
}

static struct error *
count_snapshot(void *context)
{
    struct prune *prune = context;
    prune->request->snapshots++;
    return prune_report(prune);
}

struct error *
prune_collect(struct prune *prune)
{
    struct live_work work = {prune->request->references, &prune->request->progress, &prune->own,
                             count_snapshot, prune};
    return live_collect(prune->repository, &work, &prune->live);
}

static struct error *
load_index(void *context, const struct object_name *name, struct buffer *index)
{
    struct prune *prune = context;
    struct error *error = writers_refresh(prune->repository, &prune->own);
    return error ? error : repository_load(prune->repository, OBJECT_INDEX, name, index);
}

struct error *
prune_read_index(struct prune *prune)
{
    struct locations_source source = {.objects = prune->repository->objects,
                                      .load = load_index,
                                      .context = prune,
                                      .garbage = &prune->garbage};
    locations_close(prune->locations);
    prune->locations = NULL;
    struct error *error =
        locations_open_temporary(repository_work_directory(prune->repository), &prune->locations);
    if (!error)
        error = locations_sync_packs(prune->locations, &source, &prune->lost);
    return error_wrap(error, "read the index");
}

static struct error *
find_location(struct prune *prune, const struct cache_db_walk *walk, struct location *out)
{
    struct repository_id id;
    char text[REPOSITORY_NAME_BYTES];
    char key[OBJECT_KEY_BYTES];
    bool found;
    memcpy(id.bytes, walk->key.bytes, sizeof id.bytes);
    struct error *error = locations_find(prune->locations, &id, out, &found);
    if (error || (found && !out->is_lost))
        return error;
    if (found) {
        object_key_print(OBJECT_PACK, &out->pack, key);
        return error_new(CODE_DATA_LOSS,
                         "a snapshot refers to the object %s, which is missing: run `skycap "
                         "snapshot verify`",
                         key);
    }
    repository_id_print(&id, text);
    return error_new(CODE_DATA_LOSS,
                     "a snapshot refers to the chunk %s, which no index has: run `skycap snapshot "
                     "verify`",
                     text);
}

struct error *
prune_walk(struct prune *prune,
           struct error *(*each)(struct prune *prune, const struct location *location,
                                 void *context),
           void *context)
{
    struct cache_db_walk walk AUTO(cache_db_walk_clear) = {0};
    struct error *error;
    while (!(error = cache_db_next(prune->live.ids, &walk)) && walk.found) {
        struct location location;
        error = find_location(prune, &walk, &location);
        if (!error)
            error = each(prune, &location, context);
        if (!error)
            error = writers_refresh(prune->repository, &prune->own);
        if (!error)
            error = repository_check_cancel(&prune->request->progress);
        if (error)
            break;
    }
    return error;
}
