/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as bytes and back, both in an arena: for what the program keeps itself. (What peers send is decoded in framing.c, with limits.) */
#ifndef MESSAGE_BYTES_H
#define MESSAGE_BYTES_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

uint8_t *message_bytes_pack(const ProtobufCMessage *message, struct arena *arena, size_t *size);

/* NULL if these are no bytes of such a message. */
ProtobufCMessage *message_bytes_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                                       size_t size, struct arena *arena);

#endif
