/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending snapshots: see transfer_send.h.
 *
 * Differences of trees are made by btrfs, those of images from the places of their extents. Places
 * may change between two attempts, when the file system is balanced or defragmented; so an image's
 * difference that continues is made from its beginning and compared (stream_skip.h).
 */
#include "csi/transfer_send.h"
#include "csi/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "csi/controller.h"
#include "csi/transfer_outlet.h"
#include "stream/stream_btrfs.h"
#include "stream/stream_image.h"
#include "stream/stream_skip.h"
#include "stream/stream_walk.h"
#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes/move_rows.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

/* What is sent. */
struct sending {
    struct engine *engine;
    struct data data;
    struct data base; /* if has_base: only the difference from it */
    bool has_base;
    bool is_moving; /* a volume, as long as it is MOVING at this epoch to a node */
    uint64_t epoch;
    struct stream_position from;
};

#define LOOK_MS 1000 /* how often it is seen that a volume is not MOVING any more */

/* ---- which snapshot ---- */

struct error *
transfer_check_handle(const char *field, const char *handle)
{
    size_t size = strlen(handle);
    if (size && size < BACKEND_HANDLE_SIZE &&
        strspn(handle, "abcdefghijklmnopqrstuvwxyz0123456789-") == size)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "%s is not a handle", field);
}

struct error *
transfer_find_snapshot(struct engine *engine, const char *handle, struct arena *arena,
                       snapshot_record **out)
{
    struct error *error = snapshot_get_any(engine, handle, arena, out);
    if (!error && (*out)->state != SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__READY)
        error = error_new(CODE_ABORTED, "the snapshot \"%s\" is not ready yet; try again", handle);
    return error;
}

static struct error *
refuse_base(const char *handle)
{
    return error_new(CODE_FAILED_PRECONDITION,
                     "the difference from the snapshot \"%s\" cannot be told", handle);
}

struct error *
transfer_find_base(struct engine *engine, const char *handle, const snapshot_record *snapshot,
                   struct data *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct data data = snapshot_data(snapshot);
    snapshot_record *base;
    struct error *error AUTO(error_cleanup) = transfer_check_handle("base", handle);
    if (!error)
        error = transfer_find_snapshot(engine, handle, &arena, &base);
    if (error || base->kind != snapshot->kind ||
        strcmp(base->source_handle, snapshot->source_handle) != 0)
        return refuse_base(handle);
    *out = snapshot_data(base);
    bool is_together =
        backend_of(engine->backend, out->handle) == backend_of(engine->backend, data.handle);
    return is_together && bases_can_tell_difference(engine, &data) ? NULL : refuse_base(handle);
}

/* ---- messages ---- */

/* How many bytes a difference has is known only for images. */
static struct error *
add_size(void *context, const struct extent *extent)
{
    *(uint64_t *)context += extent->size;
    return NULL;
}

static uint64_t
measure(const struct sending *sending)
{
    struct backend *backend = sending->engine->backend;
    struct data_usage usage = {0};
    uint64_t bytes = 0;
    struct error *error AUTO(error_cleanup) = NULL;
    if (!sending->has_base) {
        error = backend_usage(backend, &sending->data, &usage);
        return error || usage.used_bytes == DATA_USAGE_UNKNOWN ? 0 : usage.used_bytes;
    }
    if (sending->data.kind == KIND_IMAGE)
        error = backend_extents(backend, &sending->data, &sending->base, 0,
                                &(struct extent_sink){add_size, &bytes});
    return error ? 0 : bytes;
}

static struct error *
send_expected(struct outlet *outlet, const struct sending *sending)
{
    Skycap__V1__FetchReply message = SKYCAP__V1__FETCH_REPLY__INIT;
    message.what_case = SKYCAP__V1__FETCH_REPLY__WHAT_EXPECTED_BYTES;
    message.expected_bytes = measure(sending);
    return call_send(outlet->call, &message.base);
}

static struct error *
send_end(struct outlet *outlet, const struct stream_position *end)
{
    Skycap__V1__FetchReply message = SKYCAP__V1__FETCH_REPLY__INIT;
    Skycap__V1__TransferPosition position = SKYCAP__V1__TRANSFER_POSITION__INIT;
    struct error *error = outlet_flush(outlet);
    if (error)
        return error;
    position.offset = end->offset;
    position.sum.data = (uint8_t *)end->sum;
    position.sum.len = sizeof end->sum;
    message.what_case = SKYCAP__V1__FETCH_REPLY__WHAT_END;
    message.end = &position;
    return call_send(outlet->call, &message.base);
}

/* ---- data ---- */

static struct error *
open_data(struct engine *engine, const struct data *data, int *out)
{
    char path[PATH_MAX];
    struct error *error = backend_path(engine->backend, data, path, sizeof path);
    if (error)
        return error;
    *out = open(path, O_RDONLY | O_CLOEXEC);
    return *out < 0 ? error_from_errno(errno, "open %s", path) : NULL;
}

static struct error *
add_extent(void *context, const struct extent *extent)
{
    return stream_image_add(context, extent->offset, extent->size);
}

static struct error *
send_extents(const struct sending *sending, int fd, const struct stream_position *from,
             const struct stream_sink *sink, struct stream_position *end)
{
    struct stream_image image AUTO(stream_image_close) = {0};
    struct error *error = stream_image_open(&image, fd, from, sink);
    if (!error)
        error = backend_extents(sending->engine->backend, &sending->data,
                                sending->has_base ? &sending->base : NULL, 0,
                                &(struct extent_sink){add_extent, &image});
    return error ? error : stream_image_finish(&image, end);
}

static struct error *
send_image(const struct sending *sending, int fd, const struct stream_sink *sink,
           struct stream_position *end)
{
    const struct stream_position beginning = {0};
    struct stream_skip skip AUTO(stream_skip_clear) = {.from = &sending->from, .sink = sink};
    struct stream_sink all = {stream_skip_take, &skip};
    if (!sending->has_base)
        return send_extents(sending, fd, &sending->from, sink, end);
    struct error *error = send_extents(sending, fd, &beginning, &all, end);
    return error ? error : stream_skip_finish(&skip, end);
}

static struct error *
send_data(const struct sending *sending, const struct stream_sink *sink,
          struct stream_position *end)
{
    struct engine *engine = sending->engine;
    int fd AUTO(files_close) = -1;
    int base AUTO(files_close) = -1;
    struct error *error = open_data(engine, &sending->data, &fd);
    if (!error && sending->has_base)
        error = open_data(engine, &sending->base, &base);
    if (error)
        return error;
    if (sending->data.kind == KIND_IMAGE)
        return send_image(sending, fd, sink, end);
    const struct backend *backend = backend_of(engine->backend, sending->data.handle);
    return strcmp(backend->ops->name, "btrfs") == 0
               ? stream_btrfs_send(fd, base, &sending->from, sink, end)
               : stream_walk_send(fd, &sending->from, sink, end);
}

/* ---- Fetch ---- */

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

/* Both snapshots are locked while they are sent. */
struct locks {
    struct name_lock *data;
    struct name_lock *base;
};

static void
release_locks(struct locks *locks)
{
    name_lock_release(&locks->data);
    name_lock_release(&locks->base);
}

/* A volume that is MOVING is as good as a snapshot, until it is to be deleted. */
static bool
is_moving(struct engine *engine, const char *handle, struct data *out, uint64_t *epoch)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct row row;
    struct error *error AUTO(error_cleanup) = rows_get(engine, &volume_rows, handle, &arena, &row);
    const volume_record *volume = error ? NULL : (const volume_record *)row.record;
    if (!volume || volume->state != VOLUME_STATE(MOVING) || move_rows_is_deletion(volume))
        return false;
    *out = volume_data(volume);
    *epoch = volume->epoch;
    return true;
}

/* Only the node that it moves to may have it. */
static struct error *
check_target(struct call *call, struct engine *engine, const char *handle)
{
    struct row row;
    struct error *error = rows_get(engine, &volume_rows, handle, call_arena(call), &row);
    const volume_record *volume = error ? NULL : (const volume_record *)row.record;
    if (error || !volume->move || !volume->move->node_id[0])
        return error;
    return caller_check_node(call, volume->move->node_id);
}

static struct error *
prepare(struct call *call, const Skycap__V1__FetchRequest *request, struct locks *locks,
        struct sending *out)
{
    struct engine *engine = out->engine;
    const char *base = request->base_snapshot;
    snapshot_record *snapshot;
    struct error *error = transfer_check_handle("snapshot", request->snapshot);
    if (!error)
        error = read_position(request->from, &out->from);
    if (!error && is_moving(engine, request->snapshot, &out->data, &out->epoch)) {
        out->is_moving = true;
        error = check_target(call, engine, request->snapshot);
        return error ? error
                     : data_lock_shared(engine, &volume_rows, request->snapshot, &locks->data);
    }
    if (!error)
        error = data_lock_shared(engine, &snapshot_rows, request->snapshot, &locks->data);
    if (!error)
        error = transfer_find_snapshot(engine, request->snapshot, call_arena(call), &snapshot);
    if (error)
        return error;
    out->data = snapshot_data(snapshot);
    out->has_base = base[0];
    if (!out->has_base)
        return NULL;
    error = transfer_check_handle("base_snapshot", base);
    if (!error && strcmp(base, request->snapshot) != 0)
        error = data_lock_shared(engine, &snapshot_rows, base, &locks->base);
    return error ? error : transfer_find_base(engine, base, snapshot, &out->base);
}

/* ---- as long as the volume is moving ---- */

struct watch {
    struct outlet *outlet;
    const struct sending *sending;
    const char *handle;
    uint64_t looked_ms;
};

/* The move may have been given up, and the volume changed since (rule 3), or deleted. */
static struct error *
check_moving(struct watch *watch)
{
    const struct sending *sending = watch->sending;
    struct data data;
    uint64_t epoch;
    watch->looked_ms = clock_now_ms();
    if (!sending->is_moving ||
        (is_moving(sending->engine, watch->handle, &data, &epoch) && epoch == sending->epoch))
        return NULL;
    return error_new(CODE_NOT_FOUND, "the volume is not moving any more");
}

/* Whoever deletes the volume waits for the end of the stream. */
static struct error *
write_watched(void *context, const uint8_t *bytes, size_t size)
{
    struct watch *watch = context;
    struct error *error = NULL;
    if (clock_now_ms() - watch->looked_ms >= LOOK_MS)
        error = check_moving(watch);
    return error ? error : outlet_write(watch->outlet, bytes, size);
}

static struct error *
send_all(struct outlet *outlet, struct sending *sending, const char *handle)
{
    struct stream_position end;
    struct watch watch = {outlet, sending, handle, clock_now_ms()};
    struct error *error = send_expected(outlet, sending);
    if (!error)
        error = send_data(sending, &(struct stream_sink){write_watched, &watch}, &end);
    if (!error)
        error = check_moving(&watch);
    return error ? error : send_end(outlet, &end);
}

/* Of snapshots that many nodes want, each node sends only a few at a time. */
static struct error *
begin_spread(const struct sending *sending, const Skycap__V1__FetchRequest *request)
{
    if (!request->spread_node[0])
        return NULL;
    return stream_slots_begin(&sending->engine->slots, request->snapshot, request->spread_node,
                              clock_now_ms());
}

struct error *
transfer_fetch(struct call *call, const Skycap__V1__FetchRequest *request)
{
    struct controller *controller = call_context(call);
    struct sender *sender = atomic_load(&controller->sender);
    struct sending sending = {.engine = controller->engine};
    struct locks locks AUTO(release_locks) = {0};
    struct outlet outlet AUTO(outlet_close) = {0};
    struct error *error = prepare(call, request, &locks, &sending);
    if (error && error->code == CODE_ABORTED) /* here it means another stream */
        error->code = CODE_UNAVAILABLE;
    if (error)
        return error;
    error = begin_spread(&sending, request);
    if (error)
        return error;
    outlet_open(&outlet, call, sender, request->bytes_per_second, request->takes_zstd);
    if (sender)
        sender_begin(sender);
    error = send_all(&outlet, &sending, request->snapshot);
    if (sender)
        sender_end(sender, error != NULL);
    if (request->spread_node[0])
        stream_slots_end(&sending.engine->slots, request->snapshot, request->spread_node,
                         clock_now_ms());
    return error;
}
