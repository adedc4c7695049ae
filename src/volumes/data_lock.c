/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on data: see data_lock.h. */
#include "volumes/data_lock.h"

static const char *
lock_kind(const struct row_kind *kind)
{
    return kind == &snapshot_rows ? "data of snapshot" : "data of volume";
}

struct error *
data_lock_shared(struct engine *engine, const struct row_kind *kind, const char *handle,
                 struct name_lock **out)
{
    return name_lock_share(&engine->locks, lock_kind(kind), handle, out);
}

struct error *
data_lock_exclusive(struct engine *engine, const struct row_kind *kind, const char *handle,
                    struct name_lock **out)
{
    struct error *error = name_lock_take(&engine->locks, lock_kind(kind), handle, out);
    if (!error)
        return NULL;
    error_free(error);
    return error_new(CODE_FAILED_PRECONDITION,
                     "a copy of the %s is being made: wait for it, or cancel it", kind->name);
}

struct error *
data_lock_wait(struct engine *engine, const struct row_kind *kind, const char *handle,
               unsigned wait_ms, struct name_lock **out)
{
    return name_lock_wait(&engine->locks, lock_kind(kind), handle, wait_ms, out);
}
