/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes in any pieces are messages within the limits or an error, and give back what they took
 * from the budget; a message that decodes comes back the same after encoding and decoding again.
 *
 * The input is one byte for the encoding and one for the size of the pieces, then the stream.
 */
#include <string.h>

#include "base/memory.h"
#include "input.h"
#include "proto/csi.rpc.h"
#include "require.h"
#include "rpc/grpc/framing.h"

#define MAX_MESSAGE 5000u
#define BUDGET 12000u
#define ARENA_LIMIT 20000u

static const ProtobufCMessageDescriptor *const type = &csi__v1__create_volume_request__descriptor;

static struct message *
copy_of_chunk(const struct chunk *chunk)
{
    size_t size = chunk->size - FRAMING_PREFIX_BYTES;
    struct message *message = memory_zeroed(sizeof *message + size);
    message->size = size;
    if (size)
        memcpy(message->bytes, chunk->bytes + FRAMING_PREFIX_BYTES, size);
    return message;
}

static bool has_unknown_fields(const ProtobufCMessage *message);

static bool
field_has_unknown_fields(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const uint8_t *base = (const uint8_t *)message;
    const void *member = base + field->offset;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const uint32_t *quantifier = (const void *)(base + field->quantifier_offset);
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *quantifier != field->id)
        return false;
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        const ProtobufCMessage *inner = *(ProtobufCMessage *const *)member;
        return inner && has_unknown_fields(inner);
    }
    size_t count = *(const size_t *)(const void *)quantifier;
    for (size_t i = 0; i < count; i++)
        if (has_unknown_fields((*(ProtobufCMessage * *const *)member)[i]))
            return true;
    return false;
}

static bool
has_unknown_fields(const ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++)
        if (field_has_unknown_fields(message, &message->descriptor->fields[i]))
            return true;
    return message->n_unknown_fields > 0;
}

/* Not with unknown fields: protobuf-c reads some numbers that it does not write back readably. */
static void
check_round_trip(const ProtobufCMessage *decoded)
{
    struct arena arena AUTO(arena_clear);
    struct chunk *first, *second;
    ProtobufCMessage *again;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    REQUIRE(!framing_pack(decoded, &first));
    struct message *message AUTO(memory_cleanup) = copy_of_chunk(first);
    REQUIRE(!framing_unpack(type, message, &arena, NULL, &again));
    REQUIRE(!framing_pack(again, &second));
    REQUIRE(first->size == second->size && !memcmp(first->bytes, second->bytes, first->size));
    chunk_release(first);
    chunk_release(second);
}

static void
check_message(const struct message *message)
{
    struct arena arena AUTO(arena_clear);
    ProtobufCMessage *decoded;
    REQUIRE(message->size <= MAX_MESSAGE);
    arena_init(&arena, NULL, 0, ARENA_LIMIT);
    struct error *error AUTO(error_cleanup) = framing_unpack(type, message, &arena, NULL, &decoded);
    REQUIRE(arena.used <= ARENA_LIMIT + 16);
    bool may_have_nul = message->size && memchr(message->bytes, '\0', message->size);
    REQUIRE(!error || error->code == CODE_INTERNAL || error->code == CODE_RESOURCE_EXHAUSTED ||
            (error->code == CODE_INVALID_ARGUMENT && may_have_nul));
    if (!error && !has_unknown_fields(decoded))
        check_round_trip(decoded);
}

static void
check_error(const struct error *error)
{
    REQUIRE(error->code == CODE_INTERNAL || error->code == CODE_RESOURCE_EXHAUSTED ||
            error->code == CODE_UNIMPLEMENTED);
}

/* Keeps up to two messages at once, so that the budget can be used up. */
static void
feed(struct message_reader *reader, struct input *input, size_t piece)
{
    struct message *kept = NULL;
    while (input->size) {
        size_t size = piece && piece < input->size ? piece : input->size;
        size_t taken;
        struct message *message;
        struct error *error AUTO(error_cleanup) =
            message_reader_feed(reader, input->bytes, size, &taken, &message);
        REQUIRE(atomic_load(&reader->budget->used) <= BUDGET);
        if (error) {
            check_error(error);
            break;
        }
        REQUIRE(taken && taken <= size);
        input->bytes += taken;
        input->size -= taken;
        if (!message)
            continue;
        message_free(kept, reader->budget);
        kept = message;
        struct error *inflating AUTO(error_cleanup) =
            message_inflate(&kept, reader->budget, MAX_MESSAGE);
        if (inflating)
            check_error(inflating);
        else
            check_message(kept);
    }
    message_free(kept, reader->budget);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct pool pool = {.limit = BUDGET};
    struct budget budget = {.pool = &pool, .has_no_share = true};
    struct message_reader reader;
    message_reader_init(&reader, &budget, MAX_MESSAGE);
    reader.encoding = (enum message_encoding)(input_byte(&input) % 3);
    feed(&reader, &input, input_byte(&input));
    message_reader_clear(&reader);
    REQUIRE(atomic_load(&budget.used) == 0);
    return 0;
}
