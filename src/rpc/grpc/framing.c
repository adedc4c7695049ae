/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC message framing, protobuf encoding and decoding: see framing.h. */
#include "rpc/grpc/framing.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "message/message_text.h"
#include "rpc/grpc/gzip.h"

#define INITIAL_CAPACITY (16u * 1024)
/*
 * Growing copies the bytes received so far. With these steps most messages grow at most once, and a
 * peer that announces a large message but sends little costs little memory.
 */
#define SECOND_CAPACITY (128u * 1024)
/* Deflate compresses at most by this factor. */
#define MAX_INFLATION 1032u
/* Bytes of arenas are charged in steps of this size. */
#define DECODED_STEP_BYTES (16u * 1024)
#define FLAG_PLAIN 0
#define FLAG_COMPRESSED 1

void
message_reader_init(struct message_reader *reader, struct budget *budget, size_t max_message_bytes)
{
    *reader = (struct message_reader){.budget = budget, .max_message_bytes = max_message_bytes};
}

void
message_reader_clear(struct message_reader *reader)
{
    if (reader->partial)
        message_free(STEAL(reader->partial), reader->budget);
}

void
message_free(struct message *message, struct budget *budget)
{
    if (!message)
        return;
    budget_give_back(budget, message->charged);
    free(message);
}

static struct error *
charge(struct budget *budget, size_t size)
{
    if (budget_take(budget, size))
        return NULL;
    return error_new(CODE_RESOURCE_EXHAUSTED,
                     "the memory limit for buffered requests is reached; try again later");
}

static struct error *
grow(struct message_reader *reader)
{
    size_t wanted = !reader->partial                     ? INITIAL_CAPACITY
                    : reader->capacity < SECOND_CAPACITY ? SECOND_CAPACITY
                                                         : reader->capacity * 2;
    if (wanted > reader->expected)
        wanted = reader->expected;
    size_t overhead = reader->partial ? 0 : sizeof *reader->partial;
    struct error *error = charge(reader->budget, wanted - reader->capacity + overhead);
    if (error)
        return error;
    size_t filled = reader->partial ? reader->partial->size : 0;
    reader->partial = memory_resize(reader->partial, sizeof *reader->partial + wanted);
    reader->partial->size = filled;
    reader->partial->charged = wanted + sizeof *reader->partial;
    reader->partial->next = NULL;
    reader->capacity = wanted;
    return NULL;
}

static struct error *
check_flag(const struct message_reader *reader)
{
    uint8_t flag = reader->prefix[0];
    if (flag == FLAG_PLAIN)
        return NULL;
    if (flag != FLAG_COMPRESSED)
        return error_new(CODE_INTERNAL, "a message has unknown flags 0x%02x", flag);
    if (reader->encoding == ENCODING_UNKNOWN)
        return error_new(CODE_UNIMPLEMENTED,
                         "message compressed with an encoding other than identity and gzip");
    if (reader->encoding == ENCODING_IDENTITY)
        return error_new(CODE_INTERNAL, "compressed message without a grpc-encoding");
    return NULL;
}

static struct error *
begin_message(struct message_reader *reader)
{
    struct error *error = check_flag(reader);
    if (error)
        return error;
    const uint8_t *prefix = reader->prefix;
    reader->expected = (size_t)prefix[1] << 24 | (size_t)prefix[2] << 16 | (size_t)prefix[3] << 8 |
                       (size_t)prefix[4];
    if (reader->expected > reader->max_message_bytes)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "message of %zu bytes is larger than the limit of %zu", reader->expected,
                         reader->max_message_bytes);
    reader->capacity = 0;
    return grow(reader);
}

static void
end_message(struct message_reader *reader, struct message **out)
{
    *out = STEAL(reader->partial);
    (*out)->is_compressed = reader->prefix[0] == FLAG_COMPRESSED;
    reader->prefix_filled = 0;
}

static size_t
min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

struct error *
message_reader_feed(struct message_reader *reader, const uint8_t *bytes, size_t size, size_t *taken,
                    struct message **out)
{
    *out = NULL;
    *taken = 0;
    if (reader->prefix_filled < FRAMING_PREFIX_BYTES) {
        size_t missing = FRAMING_PREFIX_BYTES - reader->prefix_filled;
        *taken = min_size(missing, size);
        memcpy(reader->prefix + reader->prefix_filled, bytes, *taken);
        reader->prefix_filled += *taken;
        if (reader->prefix_filled < FRAMING_PREFIX_BYTES)
            return NULL;
        struct error *error = begin_message(reader);
        if (error)
            return error;
    }
    while (*taken < size && reader->partial->size < reader->expected) {
        if (reader->partial->size == reader->capacity) {
            struct error *error = grow(reader);
            if (error)
                return error;
        }
        size_t part = min_size(size - *taken, reader->capacity - reader->partial->size);
        memcpy(reader->partial->bytes + reader->partial->size, bytes + *taken, part);
        reader->partial->size += part;
        *taken += part;
    }
    if (reader->partial->size == reader->expected)
        end_message(reader, out);
    return NULL;
}

struct error *
message_reader_finish(const struct message_reader *reader)
{
    if (!reader->prefix_filled)
        return NULL;
    return error_new(CODE_INTERNAL, "the stream ended in the middle of a message");
}

size_t
message_reader_pending(const struct message_reader *reader)
{
    return reader->prefix_filled + (reader->partial ? reader->partial->size : 0);
}

struct error *
message_inflate(struct message **message, struct budget *budget, size_t limit)
{
    const struct message *packed = *message;
    if (!packed->is_compressed)
        return NULL;
    size_t most = packed->size < limit / MAX_INFLATION ? packed->size * MAX_INFLATION : limit;
    struct error *error = charge(budget, sizeof(struct message) + most);
    if (error)
        return error;
    struct message *plain = memory_new(sizeof *plain + most);
    *plain = (struct message){.next = packed->next, .charged = sizeof *plain + most};
    error = gzip_inflate(packed->bytes, packed->size, plain->bytes, most, &plain->size);
    if (error) {
        message_free(plain, budget);
        return error;
    }
    budget_give_back(budget, most - plain->size);
    plain->charged = sizeof *plain + plain->size;
    message_free(*message, budget);
    *message = memory_resize(plain, sizeof *plain + plain->size);
    return NULL;
}

struct error *
framing_pack(const ProtobufCMessage *message, struct chunk **out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > UINT32_MAX)
        return error_new(CODE_RESOURCE_EXHAUSTED, "a message of %zu bytes is too large to send",
                         size);
    struct chunk *chunk = chunk_new(FRAMING_PREFIX_BYTES + size);
    chunk->bytes[0] = FLAG_PLAIN;
    for (unsigned i = 0; i < 4; i++)
        chunk->bytes[1 + i] = (uint8_t)(size >> (24 - 8 * i));
    protobuf_c_message_pack(message, chunk->bytes + FRAMING_PREFIX_BYTES);
    *out = chunk;
    return NULL;
}

bool
charge_arena(struct charge *charge, const struct arena *arena, size_t more)
{
    size_t wanted = arena->used + more, covered = charge->size + charge->free;
    if (wanted <= covered)
        return true;
    size_t step = wanted - covered;
    step = step < DECODED_STEP_BYTES ? DECODED_STEP_BYTES : step;
    if (!budget_take(charge->budget, step))
        return false;
    charge->size += step;
    return true;
}

struct decoder {
    struct arena *arena;
    struct charge *charge;
    bool is_refused; /* by the budget */
};

void
charge_clear(struct charge *charge)
{
    if (charge->size)
        budget_give_back(charge->budget, charge->size);
    charge->size = 0;
}

static void *
allocate_in_arena(void *argument, size_t size)
{
    struct decoder *decoder = argument;
    if (!decoder->charge || charge_arena(decoder->charge, decoder->arena, size))
        return arena_try(decoder->arena, size);
    decoder->is_refused = true;
    return NULL;
}

static void
free_nothing(void *decoder, void *block)
{
    (void)decoder;
    (void)block;
}

static struct error *
check_text(const ProtobufCMessageDescriptor *type, const struct message *message)
{
    switch (message_text_check(type, message->bytes, message->size)) {
    case MESSAGE_TEXT_HAS_NUL:
        return error_new(CODE_INVALID_ARGUMENT, "%s: a string contains a NUL byte", type->name);
    case MESSAGE_TEXT_NOT_UTF8:
        return error_new(CODE_INTERNAL, "%s: a string is not valid UTF-8", type->name);
    default:
        return NULL;
    }
}

struct error *
framing_unpack(const ProtobufCMessageDescriptor *type, const struct message *message,
               struct arena *arena, struct charge *charge, ProtobufCMessage **out)
{
    struct decoder decoder = {.arena = arena, .charge = charge};
    ProtobufCAllocator allocator = {
        .alloc = allocate_in_arena, .free = free_nothing, .allocator_data = &decoder};
    *out = protobuf_c_message_unpack(type, &allocator, message->size, message->bytes);
    if (*out)
        return check_text(type, message);
    if (decoder.is_refused)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "the memory limit for buffered requests is reached; try again later");
    if (arena->has_refused)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "%s: the decoded message exceeds the memory limit of a call", type->name);
    return error_new(CODE_INTERNAL, "%s: the message cannot be decoded", type->name);
}
