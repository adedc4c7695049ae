/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.Transfer: see transfer.h.
 *
 * Other nodes fetch snapshots only. For a copy of a volume a snapshot is taken, whose name begins
 * with "transfer-"; the other node deletes it when the copy has ended. If that node never comes
 * back, the snapshot is deleted when another transfer is opened, a day later.
 */
#include "csi/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "csi/controller.h"
#include "stream/stream_btrfs.h"
#include "stream/stream_image.h"
#include "stream/stream_walk.h"
#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/snapshot.h"

#define PREFIX "transfer-"
#define LONGEST_NS (INT64_C(24) * 3600 * 1000000000)
#define WAIT_MS 3600000 /* for a snapshot that is a full copy */
#define CHUNK_BYTES (256u << 10)
#define PAGE 500

static struct engine *
engine_of(const struct call *call)
{
    const struct controller *controller = call_context(call);
    return controller->engine;
}

/* Its name ends with a handle; a user's name hardly does. */
static bool
is_ours(const snapshot_record *snapshot)
{
    char home[HANDLE_HOME_SIZE];
    return strncmp(snapshot->name, PREFIX, sizeof PREFIX - 1) == 0 &&
           handle_read_home(snapshot->name + sizeof PREFIX - 1, home);
}

static struct error *
check_handle(const char *field, const char *handle)
{
    size_t size = strlen(handle);
    if (size && size < BACKEND_HANDLE_SIZE &&
        strspn(handle, "abcdefghijklmnopqrstuvwxyz0123456789-") == size)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "%s is not a handle", field);
}

/* ---- Open and Close ---- */

/* Returns where the next page begins, in the arena; NULL: this was the last one. */
static const char *
delete_old_of_page(struct engine *engine, const char *after, struct arena *arena)
{
    struct snapshot_page page;
    struct error *error AUTO(error_cleanup) =
        snapshot_list(engine, NULL, after, PAGE, arena, &page);
    for (size_t i = 0; !error && i < page.count; i++)
        if (is_ours(page.snapshots[i]) &&
            clock_unix_ns() - page.snapshots[i]->created_ns > LONGEST_NS)
            error_free(snapshot_delete(engine, page.snapshots[i]->handle)); /* the next time */
    return error ? NULL : page.next;
}

/* Left by nodes that did not come back. */
static void
delete_old(struct engine *engine)
{
    char after[BACKEND_HANDLE_SIZE];
    const char *next = NULL;
    do {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        next = delete_old_of_page(engine, next, &arena);
        if (next)
            next = memcpy(after, next, strlen(next) + 1);
    } while (next);
}

static struct error *
take_snapshot(struct call *call, const char *handle, const char *transfer_id, snapshot_record **out)
{
    struct arena *arena = call_arena(call);
    struct engine *engine = engine_of(call);
    struct text_map parameters = {0};
    delete_old(engine);
    struct error *error = snapshot_create(engine, arena_print(arena, PREFIX "%s", transfer_id),
                                          handle, &parameters, WAIT_MS, arena, out);
    if (!error && (*out)->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        error =
            error_new(CODE_ABORTED, "the snapshot for the transfer is not ready yet; try again");
    return error;
}

static struct error *
find_snapshot(struct call *call, const char *handle, snapshot_record **out)
{
    struct error *error = snapshot_get(engine_of(call), handle, call_arena(call), out);
    if (!error && (*out)->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        error = error_new(CODE_ABORTED, "the snapshot \"%s\" is not ready yet; try again", handle);
    return error;
}

static struct error *
open_transfer(struct call *call, const Skycap__V1__OpenTransferRequest *request,
              Skycap__V1__OpenTransferReply *reply)
{
    snapshot_record *found;
    struct error *error = check_handle("handle", request->handle);
    if (!error)
        error = check_handle("transfer_id", request->transfer_id);
    if (!error)
        error = request->is_snapshot
                    ? find_snapshot(call, request->handle, &found)
                    : take_snapshot(call, request->handle, request->transfer_id, &found);
    if (error)
        return error;
    reply->snapshot = found->handle;
    reply->is_image = snapshot_data(found).kind == KIND_IMAGE;
    reply->size_bytes = found->size_bytes;
    reply->fs_type = found->fs_type;
    reply->formatted_bytes = found->formatted_bytes;
    reply->blank = found->blank;
    reply->sector_bytes = found->sector_bytes;
    reply->nocow = found->nocow;
    return NULL;
}

static struct error *
close_transfer(struct call *call, const Skycap__V1__CloseTransferRequest *request,
               Skycap__V1__CloseTransferReply *reply)
{
    (void)reply;
    snapshot_record *snapshot;
    struct error *error = check_handle("snapshot", request->snapshot);
    if (!error)
        error = snapshot_get(engine_of(call), request->snapshot, call_arena(call), &snapshot);
    if (!error && is_ours(snapshot))
        error = snapshot_delete(engine_of(call), request->snapshot);
    return error_forgive(error, CODE_NOT_FOUND);
}

/* ---- Fetch ---- */

/* Collects the stream into messages. */
struct outlet {
    struct call *call;
    uint8_t *bytes;
    size_t size;
};

static struct error *
flush(struct outlet *outlet)
{
    Skycap__V1__FetchReply message = SKYCAP__V1__FETCH_REPLY__INIT;
    if (!outlet->size)
        return NULL;
    message.what_case = SKYCAP__V1__FETCH_REPLY__WHAT_DATA;
    message.data.data = outlet->bytes;
    message.data.len = outlet->size;
    outlet->size = 0;
    return call_send(outlet->call, &message.base);
}

static struct error *
send_bytes(void *context, const uint8_t *bytes, size_t size)
{
    struct outlet *outlet = context;
    while (size) {
        size_t room = CHUNK_BYTES - outlet->size, part = size < room ? size : room;
        memcpy(outlet->bytes + outlet->size, bytes, part);
        outlet->size += part;
        bytes += part;
        size -= part;
        struct error *error = outlet->size == CHUNK_BYTES ? flush(outlet) : NULL;
        if (error)
            return error;
    }
    return NULL;
}

static struct error *
send_expected(struct outlet *outlet, struct engine *engine, const struct data *data)
{
    Skycap__V1__FetchReply message = SKYCAP__V1__FETCH_REPLY__INIT;
    struct data_usage usage = {0};
    struct error *unknown AUTO(error_cleanup) = backend_usage(engine->backend, data, &usage);
    bool is_known = !unknown && usage.used_bytes != DATA_USAGE_UNKNOWN;
    message.what_case = SKYCAP__V1__FETCH_REPLY__WHAT_EXPECTED_BYTES;
    message.expected_bytes = is_known ? usage.used_bytes : 0;
    return call_send(outlet->call, &message.base);
}

static struct error *
send_end(struct outlet *outlet, const struct stream_position *end)
{
    Skycap__V1__FetchReply message = SKYCAP__V1__FETCH_REPLY__INIT;
    Skycap__V1__TransferPosition position = SKYCAP__V1__TRANSFER_POSITION__INIT;
    struct error *error = flush(outlet);
    if (error)
        return error;
    position.offset = end->offset;
    position.sum.data = (uint8_t *)end->sum;
    position.sum.len = sizeof end->sum;
    message.what_case = SKYCAP__V1__FETCH_REPLY__WHAT_END;
    message.end = &position;
    return call_send(outlet->call, &message.base);
}

static struct error *
add_extent(void *context, const struct extent *extent)
{
    return stream_image_add(context, extent->offset, extent->size);
}

static struct error *
send_image(struct engine *engine, const struct data *data, int fd,
           const struct stream_position *from, const struct stream_sink *sink,
           struct stream_position *end)
{
    struct stream_image image AUTO(stream_image_close) = {0};
    struct error *error = stream_image_open(&image, fd, from, sink);
    if (!error)
        error = backend_extents(engine->backend, data, NULL, 0,
                                &(struct extent_sink){add_extent, &image});
    return error ? error : stream_image_finish(&image, end);
}

static struct error *
send_data(struct engine *engine, const struct data *data, const struct stream_position *from,
          const struct stream_sink *sink, struct stream_position *end)
{
    char path[PATH_MAX];
    struct error *error = backend_path(engine->backend, data, path, sizeof path);
    if (error)
        return error;
    int fd AUTO(files_close) = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_from_errno(errno, "open %s", path);
    if (data->kind == KIND_IMAGE)
        return send_image(engine, data, fd, from, sink, end);
    const struct backend *backend = backend_of(engine->backend, data->handle);
    return strcmp(backend->ops->name, "btrfs") == 0 ? stream_btrfs_send(fd, -1, from, sink, end)
                                                    : stream_walk_send(fd, from, sink, end);
}

static struct error *
read_position(const Skycap__V1__TransferPosition *message, struct stream_position *out)
{
    *out = (struct stream_position){0};
    if (!message || !message->offset)
        return NULL;
    if (message->sum.len != sizeof out->sum)
        return error_new(CODE_INVALID_ARGUMENT, "the sum of a position has %zu bytes",
                         sizeof out->sum);
    out->offset = message->offset;
    memcpy(out->sum, message->sum.data, sizeof out->sum);
    return NULL;
}

static struct error *
fetch(struct call *call, const Skycap__V1__FetchRequest *request)
{
    struct engine *engine = engine_of(call);
    const char *handle = request->snapshot;
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct outlet outlet = {call, arena_alloc(call_arena(call), CHUNK_BYTES), 0};
    struct stream_position from, end;
    snapshot_record *snapshot;
    struct error *error = check_handle("snapshot", handle);
    if (!error)
        error = read_position(request->from, &from);
    if (!error)
        error = data_lock_shared(engine, &snapshot_rows, handle, &lock);
    if (!error)
        error = find_snapshot(call, handle, &snapshot);
    if (error && error->code == CODE_ABORTED) /* here it means another stream */
        error->code = CODE_UNAVAILABLE;
    if (error)
        return error;
    struct data data = snapshot_data(snapshot);
    error = send_expected(&outlet, engine, &data);
    if (!error)
        error = send_data(engine, &data, &from, &(struct stream_sink){send_bytes, &outlet}, &end);
    return error ? error : send_end(&outlet, &end);
}

const struct skycap_v1_transfer transfer_handlers = {
    .open = {open_transfer},
    .fetch = {fetch},
    .close = {close_transfer},
};
