/* SPDX-License-Identifier: Apache-2.0 */
/* Sending chunks: see transfer_outlet.h. */
#include "csi/transfer_outlet.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define CHUNK_BYTES STREAM_ZSTD_MOST
#define LONGEST_SLEEP_NS UINT64_C(50000000)

void
outlet_open(struct outlet *outlet, struct call *call, struct sender *sender,
            uint64_t bytes_per_second, bool may_pack)
{
    *outlet = (struct outlet){.call = call, .sender = sender};
    rate_init(&outlet->rate, bytes_per_second);
    outlet->bytes = arena_alloc(call_arena(call), CHUNK_BYTES);
    if (!may_pack)
        return;
    outlet->packed = arena_alloc(call_arena(call), CHUNK_BYTES);
    outlet->zstd = stream_zstd_new();
}

void
outlet_close(struct outlet *outlet)
{
    if (outlet->call)
        rate_clear(&outlet->rate);
    stream_zstd_free(outlet->zstd);
}

static struct error *
check_is_wanted(const struct outlet *outlet)
{
    if (call_is_cancelled(outlet->call))
        return error_new(CODE_CANCELLED, "the transfer was cancelled");
    if (outlet->sender && sender_is_stopped(outlet->sender))
        return error_new(CODE_UNAVAILABLE,
                         "this node is stopping; the transfer goes on when it is back");
    return NULL;
}

/* Waits as the limits of the node and of the stream demand. */
static struct error *
wait_for_turn(struct outlet *outlet, uint64_t bytes)
{
    uint64_t wait_ns = outlet->sender ? sender_take(outlet->sender, bytes) : 0;
    uint64_t own_ns = rate_take(&outlet->rate, bytes);
    if (own_ns > wait_ns)
        wait_ns = own_ns;
    struct error *error = check_is_wanted(outlet);
    while (wait_ns && !error) {
        uint64_t part = wait_ns < LONGEST_SLEEP_NS ? wait_ns : LONGEST_SLEEP_NS;
        usleep((useconds_t)(part / 1000));
        wait_ns -= part;
        error = check_is_wanted(outlet);
    }
    return error;
}

static struct error *
send_message(struct outlet *outlet, const Skycap__V1__FetchReply *message, uint64_t bytes,
             uint64_t plain)
{
    struct error *error = wait_for_turn(outlet, bytes);
    if (!error)
        error = call_send(outlet->call, &message->base);
    if (!error && outlet->sender)
        sender_count(outlet->sender, bytes, plain);
    return error;
}

static struct error *
send_plain(struct outlet *outlet)
{
    Skycap__V1__FetchReply message = SKYCAP__V1__FETCH_REPLY__INIT;
    uint64_t start = clock_now_ns();
    message.what_case = SKYCAP__V1__FETCH_REPLY__WHAT_DATA;
    message.data.data = outlet->bytes;
    message.data.len = outlet->size;
    struct error *error = send_message(outlet, &message, outlet->size, outlet->size);
    packing_take_plain(&outlet->packing, outlet->size, clock_now_ns() - start);
    return error;
}

static struct error *
send_packed(struct outlet *outlet, size_t size)
{
    Skycap__V1__FetchReply message = SKYCAP__V1__FETCH_REPLY__INIT;
    Skycap__V1__CompressedData packed = SKYCAP__V1__COMPRESSED_DATA__INIT;
    packed.data.data = outlet->packed;
    packed.data.len = size;
    packed.size = (uint32_t)outlet->size;
    message.what_case = SKYCAP__V1__FETCH_REPLY__WHAT_COMPRESSED;
    message.compressed = &packed;
    return send_message(outlet, &message, size, outlet->size);
}

/* Only whole chunks are compressed: a smaller one may not be worth it, and measures nothing. */
struct error *
outlet_flush(struct outlet *outlet)
{
    struct error *error;
    size_t packed = 0;
    if (!outlet->size)
        return NULL;
    if (outlet->zstd && outlet->size == CHUNK_BYTES && packing_wants(&outlet->packing)) {
        uint64_t start = clock_now_ns();
        packed = stream_zstd_pack(outlet->zstd, outlet->bytes, outlet->size, outlet->packed,
                                  CHUNK_BYTES);
        if (!packing_take_packed(&outlet->packing, outlet->size, packed, clock_now_ns() - start))
            packed = 0;
    }
    error = packed ? send_packed(outlet, packed) : send_plain(outlet);
    outlet->size = 0;
    return error;
}

struct error *
outlet_write(void *context, const uint8_t *bytes, size_t size)
{
    struct outlet *outlet = context;
    while (size) {
        size_t room = CHUNK_BYTES - outlet->size, part = size < room ? size : room;
        memcpy(outlet->bytes + outlet->size, bytes, part);
        outlet->size += part;
        bytes += part;
        size -= part;
        struct error *error = outlet->size == CHUNK_BYTES ? outlet_flush(outlet) : NULL;
        if (error)
            return error;
    }
    return NULL;
}
