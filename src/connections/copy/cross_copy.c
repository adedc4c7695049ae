/* SPDX-License-Identifier: Apache-2.0 */
/* Copies across connections, their rows and operations: see cross_copy.h. */
#include "connections/copy/cross_copy.h"

#include <stdlib.h>

#include "base/memory.h"
#include "connections/copy/cross_copy_target.h"
#include "connections/copy/cross_copy_work.h"
#include "connections/copy/source_type.h"
#include "connections/request/map_field.h"
#include "csi/controller_internal.h"
#include "message/message_bytes.h"

#define KIND "copy-across"

/* ---- the operation ---- */

static void
free_work(void *context)
{
    struct cross_copy_work *work = context;
    copied_source_end(&work->source);
    connection_release(work->from);
    connection_release(work->to);
    connection_set_release(work->set);
    arena_clear(&work->arena);
    free(work);
}

static struct error *
run_work(void *context, const struct progress *progress)
{
    return cross_copy_work_run(context, progress);
}

/*
 * The row of a failed copy is deleted, unless the copy could not be undone: then the target is half
 * filled, and must not be taken for somebody else's volume.
 */
static void
settle_work(void *context, const struct error *result, struct arena *arena, struct ops_changes *out)
{
    struct cross_copy_work *work = context;
    const char *volume_id = work->record->volume->volume_id;
    if (result && !cross_copy_work_undo(work)) {
        out->items[out->count++] =
            cross_copy_rows_change(work->key, work->record, STORE_ANY, arena);
        return;
    }
    out->items[out->count++] = (struct store_change){.key = work->key, .expected = STORE_ANY};
    struct store_change index = cross_copy_rows_index(volume_id, "", arena);
    index.value = NULL;
    if (!result) {
        const char *key = cross_copy_rows_key(CROSS_COPY_FINISHED, work->record, arena);
        out->items[out->count++] = cross_copy_rows_change(key, work->record, STORE_ANY, arena);
        index = cross_copy_rows_index(volume_id, key, arena);
    }
    out->items[out->count++] = index;
}

static struct cross_copy_work *
new_work(struct router *router, const struct connection_set *set, struct connection *from,
         struct connection *to, const copy_record *record)
{
    struct cross_copy_work *work = memory_zeroed(sizeof *work);
    arena_init(&work->arena, NULL, 0, SIZE_MAX);
    work->router = router;
    work->set = connection_set_share((struct connection_set *)set);
    work->from = connection_share(from);
    work->to = connection_share(to);
    work->record = message_bytes_copy(&record->base, &work->arena);
    work->key = cross_copy_rows_key(CROSS_COPY_UNFINISHED, work->record, &work->arena);
    return work;
}

static struct ops_spec
spec_of(struct cross_copy_work *work)
{
    return (struct ops_spec){
        .id = work->record->volume->volume_id,
        .kind = KIND,
        .subject = work->record->volume->volume_id,
        .units = "bytes",
        .description = arena_print(&work->arena, "copy from connection %s to %s",
                                   work->from->spec->name, work->to->spec->name),
        .work = {.context = work, .run = run_work, .settle = settle_work, .free = free_work},
    };
}

static void
copy_secrets(const Csi__V1__CreateVolumeRequest *request, struct cross_copy_work *work)
{
    struct map_field field;
    map_field_find((ProtobufCMessage *)&request->base, "secrets", &field);
    struct text_map secrets = map_field_read(&field, &work->arena);
    work->secrets = text_map_copy(&secrets, &work->arena);
}

/* ---- CreateVolume ---- */

static bool
same_content(const copy_record *record, const Csi__V1__CreateVolumeRequest *request)
{
    return message_bytes_equal(&record->request->volume_content_source->base,
                               &request->volume_content_source->base);
}

static bool
is_size_fine(const copy_record *record, const Csi__V1__CreateVolumeRequest *request)
{
    const Csi__V1__CapacityRange *asked = request->capacity_range;
    int64_t size = record->volume->capacity_bytes;
    return !asked || !size ||
           (asked->required_bytes <= size && (!asked->limit_bytes || size <= asked->limit_bytes));
}

/* A source on another node: the engine here makes the temporary copy, and fetches its content. */
static struct connection *
copier_of(const struct connection_set *set, struct connection *from)
{
    struct connection *own = from->node_address ? connection_set_find(set, from->spec->name) : NULL;
    return own ? own : from;
}

/*
 * Starts the operation, unless it is running. `expected` is the revision of the row: a copy that
 * has just ended must not start again.
 */
static struct error *
start(struct call *call, const struct connection_set *set, struct connection *from,
      struct connection *to, const Csi__V1__CreateVolumeRequest *request, copy_record *record,
      uint64_t expected)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct cross_copy_work *work = new_work(router, set, copier_of(set, from), to, record);
    copy_secrets(request, work);
    struct store_change changes[] = {
        cross_copy_rows_change(work->key, record, expected, arena),
        cross_copy_rows_index(record->volume->volume_id, work->key, arena),
    };
    struct ops_spec spec = spec_of(work);
    spec.changes = changes;
    spec.change_count = COUNT_OF(changes);
    atomic_store(&router->has_choices, true);
    return ops_start(router->ops, &spec);
}

static struct error *
wait_for_end(struct call *call, const copy_record *record, Csi__V1__CreateVolumeResponse *reply)
{
    operation_record *operation;
    const char *id = record->volume->volume_id;
    struct error *error =
        ops_wait(router_of(call)->ops, id, controller_wait_ms(call), call_arena(call), &operation);
    if (error)
        return error_wrap(error, "wait for the copy");
    switch (operation->state) {
    case OPERATION_STATE(RUNNING):
        return error_new(CODE_ABORTED,
                         "the content is being copied from another connection (operation %s, "
                         "%lld of %lld bytes); ask again",
                         id, (long long)operation->done, (long long)operation->total);
    case OPERATION_STATE(SUCCEEDED):
        reply->volume = record->volume;
        return NULL;
    default:
        return error_new((enum code)operation->error_code, "%s", operation->error_message);
    }
}

static struct error *
check_same(const copy_record *record, const Csi__V1__CreateVolumeRequest *request)
{
    if (!same_content(record, request))
        return error_new(CODE_ALREADY_EXISTS, "the volume \"%s\" was created from another source",
                         request->name);
    if (!is_size_fine(record, request))
        return error_new(CODE_ALREADY_EXISTS, "the volume \"%s\" was created with another size",
                         request->name);
    return NULL;
}

/* When it returns, the copy is running or done. One request at a time for each name. */
static struct error *
find_or_start(struct call *call, const struct connection_set *set, struct connection *from,
              struct connection *to, const Csi__V1__CreateVolumeRequest *request,
              struct copy_row *out)
{
    struct router *router = router_of(call);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    const char *type;
    struct error *error = name_lock_take(&router->choosing, "volume", request->name, &lock);
    if (!error)
        error = cross_copy_rows_find(router, set, to, request->name, call_arena(call), out);
    bool is_begun = !error && out->record && out->record->volume;
    if (is_begun)
        error = check_same(out->record, request);
    if (error || out->is_done)
        return error;
    if (!is_begun)
        error = source_type_find(call, set, from, request->volume_content_source, &type);
    if (!error && !is_begun)
        error = cross_copy_target_make(call, set, from, to, request, out);
    if (!error && !is_begun)
        out->record->source_type = (char *)type;
    if (!error)
        error = start(call, set, from, to, request, out->record, out->revision);
    if (!error && out->is_planned)
        atomic_fetch_sub(&router->plans, 1);
    return error;
}

struct error *
cross_copy_drop_plan(struct call *call, const struct connection_set *set,
                     const struct connection *connection, const char *name)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct copy_row found = {0};
    if (!atomic_load(&router->plans))
        return NULL;
    struct error *error = name_lock_take(&router->choosing, "volume", name, &lock);
    if (!error)
        error = cross_copy_rows_find(router, set, connection, name, arena, &found);
    bool is_plan = !error && found.record && !found.record->volume;
    return is_plan ? cross_copy_target_delete_plan(router, &found, arena) : error;
}

struct error *
cross_copy_find_connection(struct call *call, const struct connection_set *set, const char *name,
                           struct connection **out)
{
    struct arena *arena = call_arena(call);
    struct error *error = NULL;
    *out = NULL;
    for (size_t i = 0; i < set->count && !error && !*out; i++) {
        struct connection *connection = set->slots[i].connection;
        struct copy_row found = {0};
        if (connection)
            error = cross_copy_rows_find(router_of(call), set, connection, name, arena, &found);
        if (found.record)
            *out = connection;
    }
    return error;
}

struct error *
cross_copy_volume(struct call *call, const struct connection_set *set, struct connection *from,
                  struct connection *to, const Csi__V1__CreateVolumeRequest *request,
                  Csi__V1__CreateVolumeResponse *reply)
{
    struct copy_row found;
    if (!request->n_volume_capabilities)
        return error_new(CODE_INVALID_ARGUMENT, "volume_capabilities is missing");
    struct error *error = find_or_start(call, set, from, to, request, &found);
    if (error)
        return error;
    if (!found.is_done)
        return wait_for_end(call, found.record, reply);
    reply->volume = found.record->volume;
    return NULL;
}

/* ---- after a restart ---- */

static struct error *
resume(void *context, const operation_record *operation)
{
    struct router *router = context;
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    copy_record *record = NULL;
    uint64_t ignored;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *index = arena_print(&arena, "chosen/%s", operation->id);
    struct error *error = store_get(router->store, index, &arena, &entry);
    if (!error)
        error = cross_copy_rows_read(router, arena_copy(&arena, entry.value, entry.value_size),
                                     &arena, &record, &ignored);
    if (error || !record || record->had_secrets)
        return error;
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->connections);
    struct connection *from = connection_set_find(set, record->from_connection);
    struct connection *to = connection_set_find(set, record->to_connection);
    if (!from || !to)
        return error_new(CODE_UNAVAILABLE, "connection \"%s\" or \"%s\" no longer exists",
                         record->from_connection, record->to_connection);
    log_info(router->log, "resuming a copy", LOG_TEXT("volume", operation->id));
    struct ops_spec spec = spec_of(new_work(router, set, from, to, record));
    spec.resumed = operation;
    return ops_start(router->ops, &spec);
}

static struct error *
count_plans(struct router *router)
{
    struct arena arena AUTO(arena_clear);
    struct store_list rows = {0};
    copy_record *record;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = store_list(router->store, CROSS_COPY_UNFINISHED, NULL, 0, &arena, &rows);
    for (size_t i = 0; !error && i < rows.count; i++) {
        error = cross_copy_rows_unpack(&rows.entries[i], &arena, &record);
        if (!error && !record->volume)
            atomic_fetch_add(&router->plans, 1);
    }
    return error;
}

struct error *
cross_copy_resume_all(struct router *router)
{
    static const struct ops_kind kinds[] = {{KIND, resume}};
    struct error *error = count_plans(router);
    return error ? error : ops_resume(router->ops, kinds, COUNT_OF(kinds), router);
}
