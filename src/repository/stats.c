/* SPDX-License-Identifier: Apache-2.0 */
/* How much is in a repository: see repository.h. */
#include "repository/repository_internal.h"

struct adding {
    uint64_t count;
    uint64_t bytes;
};

static struct error *
add_object(const struct object_name *name, uint64_t size, void *context)
{
    struct adding *adding = context;
    (void)name;
    adding->count++;
    adding->bytes += size;
    return NULL;
}

struct error *
repository_stats(struct repository *repository, struct repository_stats *out)
{
    struct error *error = repository_sync(repository);
    *out = (struct repository_stats){0};
    for (unsigned kind = 0; kind < OBJECT_KINDS && !error; kind++) {
        struct adding adding = {0};
        error = objects_list(repository->objects, kind, add_object, &adding);
        out->bytes_stored += adding.bytes;
        if (kind == OBJECT_PACK)
            out->packs = adding.count;
        if (kind == OBJECT_SNAPSHOT)
            out->snapshots = adding.count;
    }
    if (!error)
        error = locations_count(repository->locations, &out->chunks, &out->bytes);
    return error_wrap(error, "count what is in the repository");
}
