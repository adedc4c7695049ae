/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and deleting groups of snapshots: see group.h. Creating is in group_create.c. */
#include "volumes/group.h"

#include "volumes/data_lock.h"
#include "volumes/snapshot.h"

bool
group_is_possible(const struct engine *engine)
{
    return engine->backend->ops->snapshot_group || engine->backend->ops->copy;
}

/* ---- finding ---- */

struct error *
group_read_members(struct engine *engine, bool may_lack, struct arena *arena, struct group *group)
{
    const group_record *record = group->record;
    group->snapshots = arena_alloc(arena, record->n_snapshot_handles * sizeof *group->snapshots);
    group->count = 0;
    for (size_t i = 0; i < record->n_snapshot_handles; i++) {
        struct error *error = snapshot_get(engine, record->snapshot_handles[i], arena,
                                           &group->snapshots[group->count]);
        if (!error)
            group->count++;
        else if (may_lack && error->code == CODE_NOT_FOUND)
            error_free(error);
        else
            return error_wrap(error, "a snapshot of the group \"%s\"", record->handle);
    }
    return NULL;
}

struct error *
group_get_record(struct engine *engine, const char *handle, struct arena *arena, group_record **out)
{
    struct row row;
    struct error *error = rows_get(engine, &group_rows, handle, arena, &row);
    *out = error ? NULL : (group_record *)row.record;
    return error;
}

struct error *
group_get(struct engine *engine, const char *handle, struct arena *arena, struct group *out)
{
    struct error *error = group_get_record(engine, handle, arena, &out->record);
    return error ? error : group_read_members(engine, false, arena, out);
}

/* ---- rows ---- */

struct row_change *
group_rows_of(const struct group *group, struct arena *arena, size_t *count)
{
    *count = group->count + 1;
    struct row_change *rows = arena_alloc(arena, *count * sizeof *rows);
    for (size_t i = 0; i < group->count; i++)
        rows[i] = (struct row_change){&snapshot_rows, &group->snapshots[i]->base};
    rows[group->count] = (struct row_change){&group_rows, &group->record->base};
    return rows;
}

/* ---- deleting ---- */

/* A group that is being deleted. No copies of its members are being made. */
struct deleting {
    struct engine *engine;
    struct arena *arena;
    struct group group;
    struct name_lock **locks; /* on the members' data */
    size_t count;
};

static void
release_members(struct deleting *deleting)
{
    for (size_t i = 0; i < deleting->count; i++)
        name_lock_release(&deleting->locks[i]);
}

static struct error *
take_members(struct deleting *deleting)
{
    const struct group *group = &deleting->group;
    struct error *error = NULL;
    deleting->locks = arena_zeroed(deleting->arena, group->count * sizeof(void *));
    for (; deleting->count < group->count && !error; deleting->count++)
        error = data_lock_exclusive(deleting->engine, &snapshot_rows,
                                    group->snapshots[deleting->count]->handle,
                                    &deleting->locks[deleting->count]);
    return error;
}

static struct error *
delete_rows_and_data(struct deleting *deleting)
{
    size_t count;
    struct row_change *rows = group_rows_of(&deleting->group, deleting->arena, &count);
    struct error *error = rows_delete_all(deleting->engine, rows, count);
    for (size_t i = 0; i < deleting->group.count && !error; i++) {
        struct data data = snapshot_data(deleting->group.snapshots[i]);
        rows_drop_data(deleting->engine, &data);
    }
    return error;
}

/* The group's lock is held. */
static struct error *
delete_held(struct engine *engine, const char *handle, struct arena *arena)
{
    struct deleting deleting AUTO(release_members) = {.engine = engine, .arena = arena};
    struct error *error = group_get_record(engine, handle, arena, &deleting.group.record);
    if (!error)
        error = group_read_members(engine, true, arena, &deleting.group);
    if (!error)
        error = take_members(&deleting);
    return error ? error : delete_rows_and_data(&deleting);
}

struct error *
group_delete(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    group_record *record;
    struct error *error = group_get_record(engine, handle, &arena, &record);
    if (!error)
        error = name_lock_take(&engine->locks, "group", record->name, &lock);
    if (!error)
        error = delete_held(engine, handle, &arena);
    return error_forgive(error, CODE_NOT_FOUND);
}
