/* SPDX-License-Identifier: Apache-2.0 */
/* Copies across connections, their rows and operations: see cross_copy.h. */
#include "connections/cross_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "connections/cross_copy_work.h"
#include "connections/forward.h"
#include "connections/global_id.h"
#include "connections/listed_ids.h"
#include "connections/map_field.h"
#include "connections/new_volume.h"
#include "csi/controller_internal.h"
#include "message/message_bytes.h"

#define KIND "copy-across"
#define WORK_NAME_BYTES 8

/* ---- rows ---- */

/* Copies that are done have rows of their own, `copied/`: those that are not are few, and lists look at them. */
#define UNFINISHED "copy/"
#define FINISHED "copied/"

/* `connection`: what the target's was called when the copy began. */
static const char *
row_key(const char *prefix, const char *connection, const char *name, struct arena *arena)
{
    return arena_print(arena, "%s%s/%s", prefix, connection, name);
}

static const char *
row_key_of(const char *prefix, const copy_record *record, struct arena *arena)
{
    return row_key(prefix, record->to_connection, record->request->name, arena);
}

static struct error *
unpack_row(const struct store_entry *entry, struct arena *arena, copy_record **out)
{
    *out = (copy_record *)message_bytes_unpack(&skycap__records__cross_copy_record__descriptor,
                                               entry->value, entry->value_size, arena);
    return *out ? NULL : error_new(CODE_DATA_LOSS, "the row %s cannot be read", entry->key);
}

/* NULL without an error: there is none. */
static struct error *
read_row(struct router *router, const char *key, struct arena *arena, copy_record **out,
         uint64_t *revision)
{
    struct store_entry entry;
    bool found;
    *out = NULL;
    *revision = STORE_ABSENT;
    struct error *error = store_find(router->options.store, key, arena, &entry, &found);
    if (error || !found)
        return error;
    *revision = entry.revision;
    return unpack_row(&entry, arena, out);
}

/* A copy of that name. */
struct found {
    copy_record *record; /* NULL: there is none. Without a volume it is but a plan */
    bool is_done;
    bool is_planned;   /* the row is a plan until the copy is started */
    uint64_t revision; /* of the row of one that is not done */
};

static struct error *
find_row_by(struct router *router, const char *to, const char *name, struct arena *arena,
            struct found *out)
{
    uint64_t ignored;
    out->is_done = out->is_planned = false;
    struct error *error =
        read_row(router, row_key(UNFINISHED, to, name, arena), arena, &out->record, &out->revision);
    if (error || out->record)
        return error;
    error = read_row(router, row_key(FINISHED, to, name, arena), arena, &out->record, &ignored);
    out->is_done = out->record;
    return error;
}

/* By any name that the connection has had, unless it is another's now. */
static struct error *
find_row(struct router *router, const struct connection_set *set, const struct connection *to,
         const char *name, struct arena *arena, struct found *out)
{
    const struct text_list *aliases = &to->spec->aliases;
    struct error *error = find_row_by(router, to->spec->name, name, arena, out);
    for (size_t i = 0; i < aliases->count && !error && !out->record; i++)
        if (connection_set_find(set, aliases->items[i]) == to)
            error = find_row_by(router, aliases->items[i], name, arena, out);
    return error;
}

static struct store_change
row_change(const char *key, const copy_record *record, uint64_t expected, struct arena *arena)
{
    struct store_change change = {.key = key, .expected = expected};
    change.value = message_bytes_pack(&record->base, arena, &change.value_size);
    return change;
}

/* The row that leads from the volume to this one, for when it is deleted: see router_create.c. */
static struct store_change
index_change(const char *volume_id, const char *key, struct arena *arena)
{
    return (struct store_change){.key = arena_print(arena, "chosen/%s", volume_id),
                                 .value = (const uint8_t *)key,
                                 .value_size = strlen(key),
                                 .expected = STORE_ANY};
}

/* ---- the operation ---- */

static void
free_work(void *context)
{
    struct cross_copy_work *work = context;
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

/* Of a copy that failed nothing is remembered, unless it could not be undone: the target is half filled then, and must not be taken for somebody else's. */
static void
settle_work(void *context, const struct error *result, struct arena *arena, struct ops_changes *out)
{
    struct cross_copy_work *work = context;
    const char *volume_id = work->record->volume->volume_id;
    if (result && !cross_copy_work_undo(work)) {
        out->items[out->count++] = row_change(work->key, work->record, STORE_ANY, arena);
        return;
    }
    out->items[out->count++] = (struct store_change){.key = work->key, .expected = STORE_ANY};
    struct store_change index = index_change(volume_id, "", arena);
    index.value = NULL;
    if (!result) {
        const char *key = row_key_of(FINISHED, work->record, arena);
        out->items[out->count++] = row_change(key, work->record, STORE_ANY, arena);
        index = index_change(volume_id, key, arena);
    }
    out->items[out->count++] = index;
}

static struct cross_copy_work *
new_work(struct router *router, const struct connection_set *set, struct connection *from,
         struct connection *to, const copy_record *record)
{
    struct cross_copy_work *work = memory_zeroed(sizeof *work);
    size_t size;
    arena_init(&work->arena, NULL, 0, SIZE_MAX);
    work->router = router;
    work->set = connection_set_share((struct connection_set *)set);
    work->from = connection_share(from);
    work->to = connection_share(to);
    uint8_t *bytes = message_bytes_pack(&record->base, &work->arena, &size);
    work->record = (copy_record *)message_bytes_unpack(
        &skycap__records__cross_copy_record__descriptor, bytes, size, &work->arena);
    work->key = row_key_of(UNFINISHED, work->record, &work->arena);
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
    for (size_t i = 0; i < secrets.count; i++)
        text_map_set(&work->secrets, &work->arena, arena_string(&work->arena, secrets.pairs[i].key),
                     arena_string(&work->arena, secrets.pairs[i].value));
}

/* ---- the source ---- */

#define CAN(name) CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name

static struct error *
ask_source(struct call *call, const struct connection_set *set, struct connection *from,
           const char *method, ProtobufCMessage *request, ProtobufCMessage *reply)
{
    return forward_call(router_of(call), set, from, call, service_find_method(method), request,
                        reply);
}

/* Every driver must be able to tell whether it has a volume. */
static struct error *
check_source_volume(struct call *call, const struct connection_set *set, struct connection *from,
                    const Csi__V1__CreateVolumeRequest *asked)
{
    Csi__V1__ValidateVolumeCapabilitiesRequest request =
        CSI__V1__VALIDATE_VOLUME_CAPABILITIES_REQUEST__INIT;
    Csi__V1__ValidateVolumeCapabilitiesResponse reply =
        CSI__V1__VALIDATE_VOLUME_CAPABILITIES_RESPONSE__INIT;
    request.volume_id = asked->volume_content_source->volume->volume_id;
    request.volume_capabilities = asked->volume_capabilities;
    request.n_volume_capabilities = asked->n_volume_capabilities;
    return ask_source(call, set, from, "/csi.v1.Controller/ValidateVolumeCapabilities",
                      &request.base, &reply.base);
}

/* A driver that cannot tell says so when the copy is made. */
static struct error *
check_source_snapshot(struct call *call, const struct connection_set *set, struct connection *from,
                      const char *snapshot_id)
{
    Csi__V1__ListSnapshotsRequest request = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Csi__V1__ListSnapshotsResponse reply = CSI__V1__LIST_SNAPSHOTS_RESPONSE__INIT;
    if (!connection_can(from, CAN(LIST_SNAPSHOTS)))
        return NULL;
    request.snapshot_id = (char *)snapshot_id;
    struct error *error =
        ask_source(call, set, from, "/csi.v1.Controller/ListSnapshots", &request.base, &reply.base);
    if (!error && !reply.n_entries)
        error = error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", snapshot_id);
    return error;
}

/* Before a target is made for nothing. */
static struct error *
check_source(struct call *call, const struct connection_set *set, struct connection *from,
             const Csi__V1__CreateVolumeRequest *asked)
{
    const Csi__V1__VolumeContentSource *source = asked->volume_content_source;
    return source->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT
               ? check_source_snapshot(call, set, from, source->snapshot->snapshot_id)
               : check_source_volume(call, set, from, asked);
}

/* ---- the target ---- */

static char *
make_work_name(struct arena *arena)
{
    unsigned char bytes[WORK_NAME_BYTES];
    char *name = arena_alloc(arena, 2 * sizeof bytes + 1);
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        memory_exhausted();
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(name + 2 * i, 3, "%02x", bytes[i]);
    return name;
}

/* A copy that drivers may change in its own way. */
static Csi__V1__CreateVolumeRequest *
duplicate(const Csi__V1__CreateVolumeRequest *request, struct arena *arena)
{
    size_t size;
    uint8_t *bytes = message_bytes_pack(&request->base, arena, &size);
    return (Csi__V1__CreateVolumeRequest *)message_bytes_unpack(request->base.descriptor, bytes,
                                                                size, arena);
}

/* What is to become of the request. */
static copy_record *
new_record(const struct connection *from, const struct connection *to,
           const Csi__V1__CreateVolumeRequest *request, struct arena *arena)
{
    copy_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__cross_copy_record__init(record);
    record->request = duplicate(request, arena);
    record->had_secrets = record->request->n_secrets > 0;
    record->request->n_secrets = 0;
    record->from_connection = (char *)from->spec->name;
    record->to_connection = (char *)to->spec->name;
    record->work_name = make_work_name(arena);
    return record;
}

/* The driver's word that it has not made the volume, and is not about to. */
static bool
is_refusal(const struct connection *connection, const struct error *error)
{
    switch (error->code) {
    case CODE_INVALID_ARGUMENT:
    case CODE_NOT_FOUND:
    case CODE_ALREADY_EXISTS:
    case CODE_PERMISSION_DENIED:
    case CODE_RESOURCE_EXHAUSTED:
    case CODE_FAILED_PRECONDITION:
    case CODE_OUT_OF_RANGE:
        return error->from_peer || connection->spec->driver->speaks_our_ids;
    default:
        return false;
    }
}

static struct error *
make_target(struct call *call, const struct connection_set *set, struct connection *to,
            const Csi__V1__CreateVolumeRequest *asked, copy_record *record)
{
    Csi__V1__CreateVolumeRequest *request = duplicate(asked, call_arena(call));
    Csi__V1__CreateVolumeResponse made = CSI__V1__CREATE_VOLUME_RESPONSE__INIT;
    request->volume_content_source = NULL;
    struct error *error = new_volume_create(router_of(call), call, set, to, request, &made);
    if (error)
        return error;
    record->volume = made.volume;
    record->volume->content_source = record->request->volume_content_source;
    return NULL;
}

/* ---- whether the target is new ---- */

/*
 * Lists tell ids only, so nobody can ask whether there is a volume of a name. But one whose id was not in the list before the driver was asked, and is in it now, is
 * new. The ids from before are written down first: an answer that is lost is asked for again, and the volume is there then.
 */
static struct error *
write_plan(struct router *router, copy_record *record, struct arena *arena, struct found *found)
{
    struct store_change change =
        row_change(row_key_of(UNFINISHED, record, arena), record, found->revision, arena);
    atomic_fetch_add(&router->plans, 1);
    struct error *error = store_write(router->options.store, &change, 1, &found->revision);
    if (error)
        atomic_fetch_sub(&router->plans, 1);
    else
        found->record = record;
    return error;
}

static struct error *
delete_plan(struct router *router, const struct found *found, struct arena *arena)
{
    struct store_change change = {.key = row_key_of(UNFINISHED, found->record, arena),
                                  .expected = found->revision};
    struct error *error = store_write(router->options.store, &change, 1, NULL);
    if (!error)
        atomic_fetch_sub(&router->plans, 1);
    return error;
}

/* Takes and gives the error, after which there is nothing to be remembered. */
static struct error *
give_up_plan(struct router *router, const struct found *found, struct arena *arena,
             struct error *error)
{
    struct error *failure AUTO(error_cleanup) = delete_plan(router, found, arena);
    return failure ? error_wrap(error, "%s", failure->message) : error;
}

/* That of an earlier request holds. There is none if the driver does not tell which volumes it has. */
static struct error *
make_plan(struct call *call, const struct connection *to, copy_record *record, struct found *found)
{
    struct listed_ids before;
    if (found->record) {
        record->to_connection = found->record->to_connection;
        record->ids_before = found->record->ids_before;
        record->n_ids_before = found->record->n_ids_before;
        return NULL;
    }
    struct error *error = listed_ids_read(router_of(call), call, to, &before);
    if (error || !before.is_known)
        return error;
    record->ids_before = before.hashes;
    record->n_ids_before = before.count;
    return write_plan(router_of(call), record, call_arena(call), found);
}

/* The list must show it now: one that does not show every volume proves nothing. */
static struct error *
find_out_if_new(struct call *call, const struct connection *to, copy_record *record,
                const struct found *plan)
{
    struct router *router = router_of(call);
    const char *id = record->volume->volume_id;
    struct listed_ids before = {true, record->ids_before, record->n_ids_before}, now;
    bool was_there, is_there = false;
    struct error *error = listed_ids_find(router, call, &before, id, &was_there);
    if (!error && was_there)
        return give_up_plan(router, plan, call_arena(call),
                            error_new(CODE_ALREADY_EXISTS,
                                      "there was a volume \"%s\" before, with the id \"%s\"; it is "
                                      "left as it is. Use another name, or delete it first",
                                      record->request->name, id));
    if (!error)
        error = listed_ids_read(router, call, to, &now);
    if (!error && now.is_known)
        error = listed_ids_find(router, call, &now, id, &is_there);
    record->is_new = is_there;
    record->n_ids_before = 0;
    return error;
}

/* A new record, with its target. `found` has the plan of an earlier request, or none; then what there is to go on with. */
static struct error *
begin(struct call *call, const struct connection_set *set, struct connection *from,
      struct connection *to, const Csi__V1__CreateVolumeRequest *request, struct found *found)
{
    struct arena *arena = call_arena(call);
    copy_record *record = new_record(from, to, request, arena);
    struct error *error = check_source(call, set, from, request);
    if (!error)
        error = make_plan(call, to, record, found);
    if (error)
        return error;
    found->is_planned = found->record;
    error = make_target(call, set, to, request, record);
    if (error)
        return found->is_planned && is_refusal(to, error)
                   ? give_up_plan(router_of(call), found, arena, error)
                   : error;
    if (found->is_planned)
        error = find_out_if_new(call, to, record, found);
    found->record = record;
    return error;
}

/* ---- CreateVolume ---- */

static bool
same_content(const copy_record *record, const Csi__V1__CreateVolumeRequest *request)
{
    struct arena arena;
    size_t a_size, b_size;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    uint8_t *a = message_bytes_pack(&record->request->volume_content_source->base, &arena, &a_size);
    uint8_t *b = message_bytes_pack(&request->volume_content_source->base, &arena, &b_size);
    bool same = a_size == b_size && memcmp(a, b, a_size) == 0;
    arena_clear(&arena);
    return same;
}

static bool
is_size_fine(const copy_record *record, const Csi__V1__CreateVolumeRequest *request)
{
    const Csi__V1__CapacityRange *asked = request->capacity_range;
    int64_t size = record->volume->capacity_bytes;
    return !asked || !size ||
           (asked->required_bytes <= size && (!asked->limit_bytes || size <= asked->limit_bytes));
}

/* Unless it is under way already. `expected`: the revision of its row; a copy that has just ended must not be made again. */
static struct error *
start(struct call *call, const struct connection_set *set, struct connection *from,
      struct connection *to, const Csi__V1__CreateVolumeRequest *request, copy_record *record,
      uint64_t expected)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct cross_copy_work *work = new_work(router, set, from, to, record);
    copy_secrets(request, work);
    struct store_change changes[] = {
        row_change(work->key, record, expected, arena),
        index_change(record->volume->volume_id, work->key, arena),
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
        return error_new(CODE_ALREADY_EXISTS, "the volume \"%s\" was made from something else",
                         request->name);
    if (!is_size_fine(record, request))
        return error_new(CODE_ALREADY_EXISTS, "the volume \"%s\" was made with another size",
                         request->name);
    return NULL;
}

/* The copy is under way, or has been made, when it returns. One at a time for each name. */
static struct error *
find_or_start(struct call *call, const struct connection_set *set, struct connection *from,
              struct connection *to, const Csi__V1__CreateVolumeRequest *request, struct found *out)
{
    struct router *router = router_of(call);
    struct key *key AUTO(keys_release) = NULL;
    struct error *error = keys_take(&router->choosing, "volume", request->name, &key);
    if (!error)
        error = find_row(router, set, to, request->name, call_arena(call), out);
    bool is_begun = !error && out->record && out->record->volume;
    if (is_begun)
        error = check_same(out->record, request);
    if (error || out->is_done)
        return error;
    if (!is_begun)
        error = begin(call, set, from, to, request, out);
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
    struct key *key AUTO(keys_release) = NULL;
    struct found found;
    if (!atomic_load(&router->plans))
        return NULL;
    struct error *error = keys_take(&router->choosing, "volume", name, &key);
    if (!error)
        error = find_row(router, set, connection, name, arena, &found);
    bool is_plan = !error && found.record && !found.record->volume;
    return is_plan ? delete_plan(router, &found, arena) : error;
}

struct error *
cross_copy_find_place(struct call *call, const struct connection_set *set, const char *name,
                      struct connection **out)
{
    struct arena *arena = call_arena(call);
    struct error *error = NULL;
    *out = NULL;
    for (size_t i = 0; i < set->count && !error && !*out; i++) {
        struct connection *connection = set->slots[i].connection;
        struct found found = {0};
        if (connection)
            error = find_row(router_of(call), set, connection, name, arena, &found);
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
    struct found found;
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

/* ---- lists ---- */

static bool
is_of(const struct connection_set *set, const struct connection *connection, const char *id,
      const char *other_id)
{
    struct global_id one, other;
    return global_id_parse(ID_VOLUME, id, &one) && global_id_parse(ID_VOLUME, other_id, &other) &&
           strcmp(one.handle, other.handle) == 0 &&
           connection_set_find(set, other.connection) == connection;
}

/* A target that is not known to be ours may be somebody's. */
static bool
is_hidden(const struct connection_set *set, const struct connection *connection,
          const copy_record *record, const char *id)
{
    bool is_ours = record->volume && (record->is_new || record->begun);
    return (is_ours && is_of(set, connection, id, record->volume->volume_id)) ||
           (record->helper && is_of(set, connection, id, record->helper->volume_id));
}

struct error *
cross_copy_hide(struct call *call, const struct connection_set *set,
                const struct connection *connection, const char *(*id_of)(const void *entry),
                void **entries, size_t count)
{
    struct router *router = router_of(call);
    struct arena *arena = call_arena(call);
    struct store_list rows = {0};
    copy_record *record;
    if (!atomic_load(&router->has_choices)) /* nor are there copies */
        return NULL;
    struct error *error = store_list(router->options.store, UNFINISHED, NULL, 0, arena, &rows);
    for (size_t i = 0; !error && i < rows.count; i++) {
        error = unpack_row(&rows.entries[i], arena, &record);
        for (size_t k = 0; !error && k < count; k++)
            if (entries[k] && is_hidden(set, connection, record, id_of(entries[k])))
                entries[k] = NULL;
    }
    return error;
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
    struct error *error = store_get(router->options.store, index, &arena, &entry);
    if (!error)
        error = read_row(router, arena_copy(&arena, entry.value, entry.value_size), &arena, &record,
                         &ignored);
    if (error || !record || record->had_secrets)
        return error;
    struct connection_set *set AUTO(connection_set_cleanup) =
        connections_current(router->options.connections);
    struct connection *from = connection_set_find(set, record->from_connection);
    struct connection *to = connection_set_find(set, record->to_connection);
    if (!from || !to)
        return error_new(CODE_UNAVAILABLE, "connection \"%s\" or \"%s\" is not there any more",
                         record->from_connection, record->to_connection);
    log_info(router->options.log, "taking up a copy again", LOG_TEXT("volume", operation->id));
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
    struct error *error = store_list(router->options.store, UNFINISHED, NULL, 0, &arena, &rows);
    for (size_t i = 0; !error && i < rows.count; i++) {
        error = unpack_row(&rows.entries[i], &arena, &record);
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
