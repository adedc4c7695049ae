/* SPDX-License-Identifier: Apache-2.0 */
/* Packing and unpacking messages: see message_bytes.h. */
#include "message/message_bytes.h"

#include <string.h>

static void *
allocate(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void
free_nothing(void *arena, void *block)
{
    (void)arena;
    (void)block;
}

uint8_t *
message_bytes_pack(const ProtobufCMessage *message, struct arena *arena, size_t *size)
{
    *size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(arena, *size);
    protobuf_c_message_pack(message, bytes);
    return bytes;
}

ProtobufCMessage *
message_bytes_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t size,
                     struct arena *arena)
{
    ProtobufCAllocator allocator = {allocate, free_nothing, arena};
    return protobuf_c_message_unpack(type, &allocator, size, bytes);
}

bool
message_bytes_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    struct arena arena AUTO(arena_clear);
    size_t a_size, b_size;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const uint8_t *a_bytes = message_bytes_pack(a, &arena, &a_size);
    const uint8_t *b_bytes = message_bytes_pack(b, &arena, &b_size);
    return a_size == b_size && memcmp(a_bytes, b_bytes, a_size) == 0;
}

void *
message_bytes_copy(const ProtobufCMessage *message, struct arena *arena)
{
    size_t size;
    uint8_t *bytes = message_bytes_pack(message, arena, &size);
    return message_bytes_unpack(message->descriptor, bytes, size, arena);
}
