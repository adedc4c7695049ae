/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Repositories: see repositories.h. */
#include "csi/repositories.h"

#include <string.h>

#include "base/clock.h"
#include "csi/checks.h"
#include "csi/controller.h"
#include "csi/ids.h"
#include "csi/repositories_internal.h"
#include "exports/export_page.h"
#include "message/message_map.h"
#include "message/message_time.h"
#include "node/drill.h"
#include "volumes/export.h"
#include "volumes/import.h"
#include "volumes/snapshot.h"

#define WAIT_MS 0 /* the client watches the operation */

#define MAX_ENTRIES 1000 /* of a page */

#define LIST_MS 3000u /* how long List waits for a repository */

/* ---- repositories ---- */

static struct error *
init(struct call *call, const Skycap__V1__InitRepositoryRequest *request,
     Skycap__V1__InitRepositoryReply *reply)
{
    struct repository_place place = {0};
    struct patience patience AUTO(patience_end) = repositories_patience(call);
    patience_begin(&patience);
    struct error *error = checks_name("name", request->name);
    if (!error)
        error =
            repository_pool_find(controller_engine(call), request->name, call_arena(call), &place);
    if (!error)
        error = repository_create(&place.options);
    if (error)
        return error;
    reply->url = (char *)place.options.url;
    reply->key_file = (char *)(place.options.key_file ? place.options.key_file : "");
    return NULL;
}

static Skycap__V1__Repository *
describe_repository(struct engine *engine, const char *name, struct arena *arena)
{
    Skycap__V1__Repository *message = arena_alloc(arena, sizeof *message);
    struct repository_use use AUTO(repository_pool_release) = {0};
    struct repository_place place = {0};
    struct patience patience AUTO(patience_end) = {.until_ms = clock_now_ms() + LIST_MS};
    patience_begin(&patience);
    skycap__v1__repository__init(message);
    message->name = (char *)name;
    struct error *error AUTO(error_cleanup) = repository_pool_find(engine, name, arena, &place);
    if (!error) {
        message->url = (char *)place.options.url;
        message->encrypted = place.options.key_file != NULL;
        error = repository_pool_open(engine, name, &use);
    }
    if (error)
        message->error = arena_string(arena, error->message);
    int64_t drilled_ns;
    error_free(drill_last_success(engine, name, &drilled_ns));
    if (drilled_ns)
        message->drilled = message_time_new(drilled_ns, arena);
    return message;
}

static struct error *
list(struct call *call, const Skycap__V1__ListRepositoriesRequest *request,
     Skycap__V1__ListRepositoriesReply *reply)
{
    (void)request;
    struct arena *arena = call_arena(call);
    struct text_list names;
    struct patience patience AUTO(patience_end) = repositories_patience(call);
    patience_begin(&patience);
    struct error *error = repository_pool_list(controller_engine(call), arena, &names);
    if (error)
        return error;
    reply->repositories = arena_alloc(arena, names.count * sizeof(void *));
    for (size_t i = 0; i < names.count; i++)
        reply->repositories[reply->n_repositories++] =
            describe_repository(controller_engine(call), names.items[i], arena);
    return NULL;
}

struct totals {
    uint64_t content_bytes;
    int64_t exported_ns; /* of the newest; 0: there is none */
};

static struct error *
add_up(const struct export_item *item, void *context)
{
    struct totals *totals = context;
    totals->content_bytes += item->record->content_bytes;
    if (totals->exported_ns < item->record->exported_ns)
        totals->exported_ns = item->record->exported_ns;
    return NULL;
}

static struct error *
stats(struct call *call, const Skycap__V1__RepositoryStatsRequest *request,
      Skycap__V1__RepositoryStatsReply *reply)
{
    struct repository_use use AUTO(repository_pool_release) = {0};
    struct repository_stats found = {0};
    struct totals totals = {0};
    const char *name;
    struct patience patience AUTO(patience_end) = repositories_patience(call);
    patience_begin(&patience);
    struct error *error = repository_pool_choose(controller_engine(call), request->repository,
                                                 call_arena(call), &name);
    if (!error)
        error = repository_pool_open(controller_engine(call), name, &use);
    if (!error)
        error = repository_stats(use.repository, &found);
    if (!error)
        error = export_page_walk(use.repository, add_up, &totals);
    reply->content_bytes = totals.content_bytes;
    if (totals.exported_ns)
        reply->exported = message_time_new(totals.exported_ns, call_arena(call));
    reply->snapshots = found.snapshots;
    reply->packs = found.packs;
    reply->chunks = found.chunks;
    reply->bytes = found.bytes;
    reply->bytes_stored = found.bytes_stored;
    return error;
}

/* ---- exports ---- */

static const char *
type_of(const export_record *record)
{
    if (record->kind == EXPORT_KIND(TREE))
        return "directory";
    return record->fs_type[0] ? record->fs_type : "block";
}

static Skycap__V1__Export *
export_message(const struct export_item *item, struct arena *arena)
{
    Skycap__V1__Export *message = arena_alloc(arena, sizeof *message);
    const export_record *record = item->record;
    skycap__v1__export__init(message);
    message->id = (char *)item->id;
    message->name = record->name;
    message->volume_name = record->volume_name;
    message->volume_id = ids_print(ID_VOLUME, record->volume_handle, arena);
    message->node_id = record->node_id;
    message->type = (char *)type_of(record);
    message->size_bytes = record->size_bytes;
    message->taken = message_time_new(record->taken_ns, arena);
    message->exported = message_time_new(record->exported_ns, arena);
    message->entries = record->entries;
    message->content_bytes = record->content_bytes;
    message->bytes_read = record->bytes_read;
    message->bytes_stored = record->bytes_stored;
    message->duration_ms = record->duration_ms;
    message->parent = record->parent;
    message->full_reason = record->full_reason;
    return message;
}

static struct error *
list_exports(struct call *call, const Skycap__V1__ListExportsRequest *request,
             Skycap__V1__ListExportsReply *reply)
{
    struct arena *arena = call_arena(call);
    struct repository_use use AUTO(repository_pool_release) = {0};
    struct export_list exports = {0};
    const char *name, *next = "";
    struct export_query query = {.token = request->starting_token,
                                 .limit = (size_t)request->max_entries};
    struct patience patience AUTO(patience_end) = repositories_patience(call);
    patience_begin(&patience);
    if (request->max_entries < 0)
        return error_new(CODE_INVALID_ARGUMENT, "max_entries is negative");
    if (!query.limit || query.limit > MAX_ENTRIES)
        query.limit = MAX_ENTRIES;
    struct error *error =
        repository_pool_choose(controller_engine(call), request->repository, arena, &name);
    if (!error)
        error = repository_pool_open(controller_engine(call), name, &use);
    if (!error)
        error = export_page_read(use.repository, &query, arena, &exports, &next);
    if (error)
        return error;
    reply->next_token = (char *)next;
    reply->exports = arena_alloc(arena, exports.count * sizeof(void *));
    for (size_t i = 0; i < exports.count; i++)
        reply->exports[reply->n_exports++] = export_message(&exports.items[i], arena);
    return NULL;
}

/* By id or name. */
static struct error *
find_snapshot(struct engine *engine, const char *text, struct arena *arena, const char **handle)
{
    struct row row;
    *handle = ids_handle(ID_SNAPSHOT, text);
    if (*handle)
        return NULL;
    struct error *error = rows_find(engine, &snapshot_rows, text, arena, &row);
    if (error)
        return error;
    if (!row.record || snapshot_is_hidden((const snapshot_record *)row.record))
        return error_new(CODE_NOT_FOUND, "there is no snapshot \"%s\"", text);
    *handle = rows_handle(&snapshot_rows, row.record);
    return NULL;
}

static struct error *
describe_export(struct engine *engine, const char *handle, const char *repository,
                struct arena *arena, Skycap__V1__ExportSnapshotReply *reply)
{
    struct repository_use use AUTO(repository_pool_release) = {0};
    snapshot_record *snapshot;
    struct export_item item = {0};
    struct error *error = snapshot_get(engine, handle, arena, &snapshot);
    const snapshot_export *found = error ? NULL : export_find(snapshot, repository);
    if (error || !found)
        return error;
    item.id = found->id;
    error = repository_pool_open(engine, repository, &use);
    if (!error)
        error = export_record_read(use.repository, item.id, arena, &item.record);
    if (!error)
        reply->export = export_message(&item, arena);
    return error;
}

static struct error *
start_export(struct engine *engine, const Skycap__V1__ExportSnapshotRequest *request,
             const char *handle, const char *repository, struct arena *arena,
             const char **operation)
{
    const struct export_request wanted = {.handle = handle,
                                          .repository = repository,
                                          .urgency = EXPORT_AWAITED,
                                          .again = request->again};
    return export_start(engine, &wanted, arena, operation);
}

static struct error *export(struct call *call, const Skycap__V1__ExportSnapshotRequest *request,
                            Skycap__V1__ExportSnapshotReply *reply)
{
    struct engine *engine = controller_engine(call);
    struct arena *arena = call_arena(call);
    const char *handle, *repository, *operation = "";
    struct patience patience AUTO(patience_end) = repositories_patience(call);
    patience_begin(&patience);
    struct error *error = checks_id("snapshot", request->snapshot);
    if (!error)
        error = repository_pool_choose(engine, request->repository, arena, &repository);
    if (!error)
        error = find_snapshot(engine, request->snapshot, arena, &handle);
    if (!error)
        error = start_export(engine, request, handle, repository, arena, &operation);
    if (error)
        return error;
    if (operation[0])
        reply->operation = ids_print(ID_SNAPSHOT, operation, arena);
    reply->repository = (char *)repository;
    return operation[0] ? NULL : describe_export(engine, handle, repository, arena, reply);
}

/* ---- imports ---- */

/* The router finds other nodes and connections. Without it there are none. */
static struct error *
check_target(const struct engine *engine, const Skycap__V1__ImportSnapshotRequest *request)
{
    if (request->node[0] && strcmp(request->node, engine->node_id) != 0)
        return error_new(CODE_NOT_FOUND, "there is no node \"%s\"", request->node);
    if (request->connection[0] && strcmp(request->connection, IDS_LOCAL) != 0)
        return error_new(CODE_NOT_FOUND, "there is no connection \"%s\"", request->connection);
    return NULL;
}

static struct error *
import(struct call *call, const Skycap__V1__ImportSnapshotRequest *request,
       Skycap__V1__ImportSnapshotReply *reply)
{
    struct engine *engine = controller_engine(call);
    struct arena *arena = call_arena(call);
    const char *repository, *id = "";
    volume_record *volume = NULL;
    struct patience patience AUTO(patience_end) = repositories_patience(call);
    patience_begin(&patience);
    struct error *error = checks_name("name", request->name);
    if (!error)
        error = checks_maps(&request->base);
    if (!error)
        error = checks_id("snapshot", request->snapshot);
    if (!error)
        error = check_target(engine, request);
    if (!error)
        error = repository_pool_choose(engine, request->repository, arena, &repository);
    if (error)
        return error;
    struct import_request wanted = {
        .repository = repository,
        .snapshot = request->snapshot,
        .name = request->name,
        .parameters = message_map_read(request->parameters, request->n_parameters, arena),
        .required_bytes = request->required_bytes,
        .wait_ms = WAIT_MS,
    };
    error = import_volume(engine, &wanted, arena, &id, &volume);
    reply->ready = !error;
    if (error && error->code == CODE_ABORTED && volume)
        error = error_forgive(error, CODE_ABORTED); /* it is on its way */
    if (error)
        return error;
    reply->volume_id = ids_print(ID_VOLUME, volume->handle, arena);
    reply->snapshot_id = (char *)id;
    return NULL;
}

static struct error *
remove_export(struct call *call, const Skycap__V1__RemoveExportRequest *request,
              Skycap__V1__RemoveExportReply *reply)
{
    (void)reply;
    struct repository_use use AUTO(repository_pool_release) = {0};
    const char *name;
    struct patience patience AUTO(patience_end) = repositories_patience(call);
    patience_begin(&patience);
    struct error *error = checks_id("id", request->id);
    if (!error)
        error = repository_pool_choose(controller_engine(call), request->repository,
                                       call_arena(call), &name);
    if (!error)
        error = repository_pool_open(controller_engine(call), name, &use);
    if (!error)
        error = export_forget(controller_engine(call), name, request->id);
    return error ? error : repository_snapshot_remove(use.repository, request->id);
}

const struct skycap_v1_repositories repositories_handlers = {
    .init = {init},
    .list = {list},
    .stats = {stats},
    .list_exports = {list_exports},
    .export = {export},
    .import = {import},
    .remove = {remove_export},
    .verify = {repositories_verify},
    .prune = {repositories_prune},
    .rebuild = {repositories_rebuild},
    .drill = {repositories_drill},
};
