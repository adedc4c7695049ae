/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of those who are at work in a repository that is verified: writers, garbage and its
 * witnesses. No snapshot uses them, but a damaged one is in the way of exports or of prune.
 */
#include "repository/verify_internal.h"

struct working {
    struct verify *verify;
    enum object_kind kind;
    struct buffer body;
};

static const char *
remedy(enum object_kind kind)
{
    return kind == OBJECT_WRITER ? "prune waits for it until it is a day old, and deletes it then"
                                 : "`skycap snapshot prune` puts it right";
}

/* One that has gone meanwhile is none of ours. */
static struct error *
look_at(const struct object_name *name, uint64_t size, void *context)
{
    struct working *working = context;
    struct verify *verify = working->verify;
    (void)size;
    struct error *error = repository_load(verify->repository, working->kind, name, &working->body);
    if (error && error->code == CODE_NOT_FOUND)
        return error_forgive(error, CODE_NOT_FOUND);
    if (error && error->code == CODE_DATA_LOSS) {
        struct error *bad AUTO(error_cleanup) = error;
        error = error_new(CODE_DATA_LOSS, "%s: %s", bad->message, remedy(working->kind));
    }
    error = verify_take(verify, working->kind, name, error);
    return error ? error : repository_check_cancel(&verify->request->progress);
}

struct error *
verify_work(struct verify *verify)
{
    static const enum object_kind kinds[] = {OBJECT_WRITER, OBJECT_GARBAGE, OBJECT_WITNESS};
    struct working working = {.verify = verify};
    struct error *error = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !error; i++) {
        working.kind = kinds[i];
        error = objects_list(verify->repository->objects, kinds[i], look_at, &working);
    }
    buffer_clear(&working.body);
    return error;
}
