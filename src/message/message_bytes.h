/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs and unpacks messages in an arena, for data of the program itself. (framing.c decodes what
 * peers send, with limits.)
 */
#ifndef MESSAGE_BYTES_H
#define MESSAGE_BYTES_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/arena.h"

uint8_t *message_bytes_pack(const ProtobufCMessage *message, struct arena *arena, size_t *size);

/* Returns NULL if the bytes cannot be decoded as this type. */
ProtobufCMessage *message_bytes_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                                       size_t size, struct arena *arena);

/* Do both pack to the same bytes? */
bool message_bytes_equal(const ProtobufCMessage *a, const ProtobufCMessage *b);

/* A copy of the message and of all that it holds, in the arena. */
void *message_bytes_copy(const ProtobufCMessage *message, struct arena *arena);

#endif
