/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating groups of snapshots: see group.h.
 *
 * Some back ends can take snapshots of several volumes at one instant. For the others, the volumes
 * are copied one after the other while nobody can write to them (freeze.h).
 *
 * The members are ordinary snapshots, except that they have no names, so they never conflict with a
 * name that somebody asks for.
 */
#include <stdlib.h>
#include <string.h>

#include "message/message_map.h"
#include "volumes/freeze.h"
#include "volumes/group.h"
#include "volumes/handle.h"
#include "volumes/held.h"
#include "volumes/snapshot.h"
#include "volumes/spec.h"
#include "volumes/volume.h"
#include "volumes/volume_use.h"

/* One volume of a group that is being made, and its snapshot. */
struct member {
    struct held_volume source;
    snapshot_record *snapshot;
    struct data from;
    struct data to;
    struct data_note note;
};

struct making {
    struct engine *engine;
    struct arena *arena;
    struct member *members; /* sorted by the sources' handles */
    size_t count;
    group_record *record;
};

/* ---- is it the same request again? ---- */

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char **
sort_handles(const char *const *handles, size_t count, struct arena *arena)
{
    char **sorted = arena_alloc(arena, count * sizeof *sorted);
    memcpy(sorted, handles, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_texts);
    return sorted;
}

static struct error *
check_sources(char *const *sorted, size_t count)
{
    if (!count)
        return error_new(CODE_INVALID_ARGUMENT, "a group has at least one volume");
    if (count > GROUP_MOST_MEMBERS)
        return error_new(CODE_FAILED_PRECONDITION,
                         "a group has at most %u volumes, and these are %zu", GROUP_MOST_MEMBERS,
                         count);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return error_new(CODE_INVALID_ARGUMENT, "the volume \"%s\" is named twice", sorted[i]);
    return NULL;
}

static bool
has_sources(const group_record *record, char *const *sorted, size_t count)
{
    if (record->n_source_handles != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(record->source_handles[i], sorted[i]) != 0)
            return false;
    return true;
}

static struct error *
answer_existing(struct engine *engine, group_record *record, char *const *sorted, size_t count,
                const struct text_map *parameters, struct arena *arena, struct group *out)
{
    struct text_map had = message_map_read(record->parameters, record->n_parameters, arena);
    const char *difference = NULL;
    if (!has_sources(record, sorted, count))
        difference = "volumes";
    else if (!spec_same_parameters(&had, parameters))
        difference = "parameters";
    if (difference)
        return error_new(CODE_ALREADY_EXISTS, "the group \"%s\" exists with other %s", record->name,
                         difference);
    out->record = record;
    return group_read_members(engine, false, arena, out);
}

/* ---- the volumes ---- */

static void
release_sources(struct making *making)
{
    for (size_t i = 0; i < making->count; i++)
        held_release(&making->members[i].source);
}

/*
 * Nobody can delete, mount or resize the sources while the group is made. They are locked in the
 * order of their handles: of two groups with the same volumes, one gets them all.
 */
static struct error *
take_sources(struct making *making, char *const *sorted, size_t count)
{
    struct error *error = NULL;
    making->members = arena_zeroed(making->arena, count * sizeof *making->members);
    for (; making->count < count && !error; making->count++) {
        struct held_volume *source = &making->members[making->count].source;
        error = held_take(making->engine, sorted[making->count], 0, making->arena, source);
        if (!error)
            error = volume_adopt_size(making->engine, source->record);
    }
    return error;
}

/* ---- the records ---- */

static void
make_group_record(struct making *making, const char *name, const struct text_map *parameters)
{
    struct arena *arena = making->arena;
    group_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__group_record__init(record);
    record->handle = arena_alloc(arena, BACKEND_HANDLE_SIZE);
    handle_make(making->engine, record->handle);
    record->name = (char *)name;
    record->snapshot_handles = arena_alloc(arena, making->count * sizeof(char *));
    record->source_handles = arena_alloc(arena, making->count * sizeof(char *));
    message_map_write(parameters, arena,
                      &skycap__records__group_record__parameters_entry__descriptor,
                      &record->parameters, &record->n_parameters);
    making->record = record;
}

static void
make_records(struct making *making, const char *name, const struct text_map *parameters)
{
    static const struct text_map none = {0};
    make_group_record(making, name, parameters);
    group_record *group = making->record;
    for (size_t i = 0; i < making->count; i++) {
        struct member *member = &making->members[i];
        member->snapshot =
            snapshot_make_record(making->engine, "", member->source.record, &none, making->arena);
        member->snapshot->group_handle = group->handle;
        /* All members have the same time. */
        if (i == 0)
            group->created_ns = member->snapshot->created_ns;
        member->snapshot->created_ns = group->created_ns;
        member->from = volume_data(member->source.record);
        member->to = snapshot_data(member->snapshot);
        group->snapshot_handles[group->n_snapshot_handles++] = member->snapshot->handle;
        group->source_handles[group->n_source_handles++] = member->source.record->handle;
    }
    for (size_t i = 0; i < making->count; i++)
        making->members[i].note = snapshot_note(making->members[i].snapshot, group, making->arena);
}

/* ---- the data ---- */

static struct error *
cut_at_once(struct making *making)
{
    struct engine *engine = making->engine;
    const struct data **from = arena_alloc(making->arena, making->count * sizeof(void *));
    const struct data **to = arena_alloc(making->arena, making->count * sizeof(void *));
    struct data_note *notes = arena_alloc(making->arena, making->count * sizeof *notes);
    struct error *error = NULL;
    for (size_t i = 0; i < making->count && !error; i++) {
        from[i] = &making->members[i].from;
        to[i] = &making->members[i].to;
        notes[i] = making->members[i].note;
        error = engine->use->flush(engine, making->members[i].source.record, making->arena);
    }
    if (error)
        return error;
    return backend_snapshot_group(making->engine->backend, from, to, notes, making->count);
}

static struct error *
copy_all(struct making *making, const struct progress *progress)
{
    struct error *error = NULL;
    for (size_t i = 0; i < making->count && !error; i++) {
        const struct member *member = &making->members[i];
        struct data_settings settings = {.note = member->note};
        error =
            backend_copy(making->engine->backend, &member->from, &member->to, &settings, progress);
    }
    return error;
}

static struct error *
copy_while_frozen(struct making *making)
{
    volume_record **sources = arena_alloc(making->arena, making->count * sizeof(void *));
    struct freeze *freeze;
    for (size_t i = 0; i < making->count; i++)
        sources[i] = making->members[i].source.record;
    struct error *error = freeze_begin(making->engine, sources, making->count, &freeze);
    if (error)
        return error;
    error = copy_all(making, &(struct progress){.cancelled = freeze_is_over, .context = freeze});
    struct error *over = freeze_end(freeze);
    if (!over)
        return error;
    freeze_remember_slow(making->engine, sources, making->count);
    error_free(error); /* it says that the copy was cancelled */
    return over;
}

static struct group
group_of(const struct making *making)
{
    struct group group = {
        making->record, arena_alloc(making->arena, making->count * sizeof(void *)), making->count};
    for (size_t i = 0; i < making->count; i++)
        group.snapshots[i] = making->members[i].snapshot;
    return group;
}

/* If a volatile back end held the group, members in other back ends could outlive it. */
static struct error *
cut(struct making *making)
{
    struct backend *backend = making->engine->backend;
    const struct backend *home = backend_of(backend, making->members[0].from.handle);
    for (size_t i = 1; i < making->count; i++)
        if (backend_of(backend, making->members[i].from.handle) != home)
            return error_new(CODE_FAILED_PRECONDITION,
                             "snapshots in several back ends cannot be taken at one instant");
    return home->ops->snapshot_group ? cut_at_once(making) : copy_while_frozen(making);
}

static struct error *
make_data(struct making *making, struct group *out)
{
    struct engine *engine = making->engine;
    struct error *error = cut(making);
    *out = group_of(making);
    size_t count;
    struct row_change *rows = group_rows_of(out, making->arena, &count);
    if (!error)
        error = rows_insert_all(engine, rows, count);
    for (size_t i = 0; i < making->count && error; i++) /* the next start removes what stays */
        error_free(backend_remove(engine->backend, &making->members[i].to));
    return error;
}

struct error *
group_create(struct engine *engine, const char *name, const char *const *source_handles,
             size_t count, const struct text_map *parameters, struct arena *arena,
             struct group *out)
{
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct making making AUTO(release_sources) = {.engine = engine, .arena = arena};
    struct row existing;
    char **sorted = sort_handles(source_handles, count, arena);
    struct error *error = check_sources(sorted, count);
    if (!error)
        error = name_lock_take(&engine->locks, "group", name, &lock);
    if (!error)
        error = rows_find(engine, &group_rows, name, arena, &existing);
    if (error)
        return error;
    if (existing.record)
        return answer_existing(engine, (group_record *)existing.record, sorted, count, parameters,
                               arena, out);
    error = take_sources(&making, sorted, count);
    if (error)
        return error;
    make_records(&making, name, parameters);
    return make_data(&making, out);
}
