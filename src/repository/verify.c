/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds what is wrong in a repository: see repository.h. First the index objects, then the packs
 * that they name, then the snapshots: which of them use what is missing or damaged. At last what
 * writers and prune have left for each other.
 */
#include "repository/verify_internal.h"

#define MEMORY_KIB 2048u

static struct error *
count_snapshot(const struct object_name *name, uint64_t size, void *context)
{
    struct verify *verify = context;
    (void)name, (void)size;
    verify->total++;
    return NULL;
}

static struct error *
run(struct verify *verify)
{
    const char *directory = repository_work_directory(verify->repository);
    struct error *error = cache_db_open_temporary(directory, MEMORY_KIB, &verify->facts);
    if (!error)
        error = locations_open_temporary(directory, &verify->locations);
    if (!error)
        error = verify_sync_packs(verify);
    if (!error)
        error = objects_list(verify->repository->objects, OBJECT_SNAPSHOT, count_snapshot, verify);
    if (!error)
        error = verify_packs(verify);
    verify->has_checked = true;
    if (!error)
        error = verify_uses(verify);
    return error ? error : verify_work(verify);
}

struct error *
repository_verify(struct repository *repository, struct repository_verify *request)
{
    struct verify verify = {.repository = repository, .request = request};
    struct error *error = run(&verify);
    locations_close(verify.locations);
    cache_db_close(verify.facts);
    return error_wrap(error, "verify the repository");
}
