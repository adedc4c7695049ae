/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers a call, on the loop thread: header, messages, status.
 *
 * An error before any message is a single HEADERS frame that ends the stream (Trailers-Only).
 * Otherwise header, data and trailers are sent.
 */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buffer.h"
#include "rpc/grpc/grpc_text.h"
#include "rpc/server/call_internal.h"

/*
 * Clients based on the gRPC C core accept 8 KiB of headers by default, so message and details stay
 * well below.
 */
#define MAX_MESSAGE_BYTES 2048
#define MAX_DETAILS_BYTES 4096

#define NO_COPY (NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE)
#define FIELD(name_, value_)                                                                       \
    {                                                                                              \
        (uint8_t *)(name_), (uint8_t *)(value_), sizeof(name_) - 1, sizeof(value_) - 1, NO_COPY    \
    }

static const nghttp2_nv header_fields[] = {
    FIELD(":status", "200"),
    FIELD("content-type", "application/grpc"),
};

/*
 * Sent only to a client that used another encoding: in every answer it would cost more than it is
 * worth.
 */
static const nghttp2_nv accepted_encodings = FIELD("grpc-accept-encoding", "identity,gzip");

static nghttp2_nv ok_trailers[] = {FIELD("grpc-status", "0")};

/* ---- lists of fields ---- */

struct fields {
    nghttp2_nv *items;
    size_t count;
};

static struct fields
fields_new(struct arena *arena, size_t capacity)
{
    return (struct fields){.items = arena_alloc(arena, capacity * sizeof(nghttp2_nv))};
}

static void
fields_add(struct fields *fields, const char *name, size_t name_size, const char *value,
           size_t value_size)
{
    fields->items[fields->count++] =
        (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, name_size, value_size, NO_COPY};
}

static void
fields_add_metadata(struct fields *fields, struct arena *arena, const struct metadata *metadata)
{
    for (const struct metadata_entry *entry = metadata->first; entry; entry = entry->next) {
        if (!metadata_key_is_binary(entry->key, entry->key_size)) {
            fields_add(fields, entry->key, entry->key_size, entry->value, entry->value_size);
            continue;
        }
        struct buffer text AUTO(buffer_clear) = {0};
        base64_encode(entry->value, entry->value_size, false, &text);
        fields_add(fields, entry->key, entry->key_size, arena_copy(arena, text.bytes, text.size),
                   text.size);
    }
}

static void
fields_add_status(struct fields *fields, struct arena *arena, const struct error *error)
{
    const char *number = arena_print(arena, "%d", (int)error->code);
    fields_add(fields, "grpc-status", strlen("grpc-status"), number, strlen(number));
    struct buffer text AUTO(buffer_clear) = {0};
    grpc_text_encode_message(error->message, MAX_MESSAGE_BYTES, &text);
    fields_add(fields, "grpc-message", strlen("grpc-message"),
               arena_copy(arena, text.bytes, text.size), text.size);
    if (!error->details || error->details_size > MAX_DETAILS_BYTES)
        return;
    struct buffer details AUTO(buffer_clear) = {0};
    base64_encode(error->details, error->details_size, false, &details);
    fields_add(fields, "grpc-status-details-bin", strlen("grpc-status-details-bin"),
               arena_copy(arena, details.bytes, details.size), details.size);
}

#define STATUS_FIELDS 3

/* ---- answers ---- */

/* A running handler owns its metadata, so an answer sent meanwhile omits them. */
static const struct metadata *
metadata_if_finished(const struct call *call, const struct metadata *metadata)
{
    static const struct metadata none;
    return call_is_running(call) ? &none : metadata;
}

#define HEADER_FIELDS (COUNT_OF(header_fields) + 1)

static bool
must_send_encodings(const struct call *call)
{
    return call->header.encoding == ENCODING_UNKNOWN;
}

static void
fields_add_header(struct fields *fields, const struct call *call)
{
    memcpy(fields->items, header_fields, sizeof header_fields);
    fields->count = COUNT_OF(header_fields);
    if (must_send_encodings(call))
        fields->items[fields->count++] = accepted_encodings;
}

static void
send_header(struct call *call, const struct metadata *metadata)
{
    call->answer = ANSWER_BEGUN;
    if (!metadata->count && !must_send_encodings(call)) {
        stream_send_headers(&call->stream, header_fields, COUNT_OF(header_fields), false);
        return;
    }
    struct fields fields = fields_new(&call->wire_arena, HEADER_FIELDS + metadata->count);
    fields_add_header(&fields, call);
    fields_add_metadata(&fields, &call->wire_arena, metadata);
    stream_send_headers(&call->stream, fields.items, fields.count, false);
}

static void
send_trailers_only(struct call *call, const struct error *error)
{
    const struct metadata *headers = metadata_if_finished(call, &call->reply_headers);
    const struct metadata *trailers = metadata_if_finished(call, &call->reply_trailers);
    struct fields fields = fields_new(&call->wire_arena, HEADER_FIELDS + STATUS_FIELDS +
                                                             headers->count + trailers->count);
    fields_add_header(&fields, call);
    fields_add_metadata(&fields, &call->wire_arena, headers);
    fields_add_status(&fields, &call->wire_arena, error);
    fields_add_metadata(&fields, &call->wire_arena, trailers);
    stream_send_headers(&call->stream, fields.items, fields.count, true);
}

static void
send_trailers(struct call *call, const struct error *error)
{
    const struct metadata *metadata = metadata_if_finished(call, &call->reply_trailers);
    if (!error && !metadata->count) {
        stream_end(&call->stream, ok_trailers, COUNT_OF(ok_trailers));
        return;
    }
    struct fields fields = fields_new(&call->wire_arena, STATUS_FIELDS + metadata->count);
    if (error)
        fields_add_status(&fields, &call->wire_arena, error);
    else
        fields.items[fields.count++] = ok_trailers[0];
    fields_add_metadata(&fields, &call->wire_arena, metadata);
    stream_end(&call->stream, fields.items, fields.count);
}

struct error *
call_reply_charge(struct call *call, size_t size)
{
    if (!budget_take(call->budget, size))
        return error_new(
            CODE_RESOURCE_EXHAUSTED,
            "the memory limit for unsent answers is reached; clients do not read them");
    atomic_fetch_add_explicit(&call->out_charged, size, memory_order_relaxed);
    return NULL;
}

void
call_reply_collect(struct call *call)
{
    if (!call->has_mailbox || call->answer >= ANSWER_ENDED)
        return;
    mailbox_collect(&call->mailbox, &call->stream.out);
    if (call->stream.out.size && call->answer == ANSWER_NONE)
        send_header(call, &call->reply_headers);
    stream_resume(&call->stream);
}

/* Sends the single message of the answer. */
static struct error *
send_reply(struct call *call)
{
    if (!call->reply)
        return NULL;
    struct error *error = call_reply_charge(call, call->reply->size);
    if (error)
        return error;
    send_header(call, &call->reply_headers);
    stream_push(&call->stream, STEAL(call->reply));
    return NULL;
}

void
call_reply_status(struct call *call, struct error *taken)
{
    struct error *error AUTO(error_cleanup) = taken;
    if (call->answer >= ANSWER_ENDED)
        return;
    call_reply_collect(call);
    if (!error)
        error = send_reply(call);
    if (call->answer == ANSWER_NONE && error) {
        send_trailers_only(call, error);
    } else {
        if (call->answer == ANSWER_NONE)
            send_header(call, metadata_if_finished(call, &call->reply_headers));
        send_trailers(call, error);
    }
    call_end_answer(call);
    call_count(call, error ? error->code : CODE_OK, error ? error->message : NULL, timers_now());
}

void
call_reply_http(struct call *call, int status)
{
    static const char text[] = "This is a gRPC server: POST with content-type application/grpc.\n";
    char *number = arena_print(&call->wire_arena, "%d", status);
    nghttp2_nv fields[] = {
        {(uint8_t *)":status", (uint8_t *)number, 7, strlen(number), NGHTTP2_NV_FLAG_NONE},
        FIELD("content-type", "text/plain; charset=utf-8"),
        FIELD("allow", "POST"),
    };
    if (!call_end_answer(call))
        return;
    stream_send_headers(&call->stream, fields, COUNT_OF(fields), false);
    struct chunk *body = chunk_new(sizeof text - 1);
    memcpy(body->bytes, text, body->size);
    stream_push(&call->stream, body);
    stream_end(&call->stream, NULL, 0);
}
