/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as JSON and back, as the proto3 JSON mapping has it, for any type that protobuf-c knows.
 *
 * Timestamp, Duration, Empty and the wrappers have their own forms; Any, Struct, Value and
 * FieldMask are treated as ordinary messages, and the option json_name is not known. protobuf-c
 * does not tell maps from lists: a repeated field `volume_context` is a map if its type is called
 * VolumeContextEntry and has just the fields key = 1 and value = 2.
 */
#ifndef MESSAGE_JSON_H
#define MESSAGE_JSON_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/buffer.h"
#include "base/error.h"

#define MESSAGE_JSON_MAX_SIZE ((size_t)16 * 1024 * 1024)
#define MESSAGE_JSON_MAX_DEPTH 64 /* messages within messages */

enum message_json_flag {
    MESSAGE_JSON_PRETTY = 1,       /* one member a line, indented by two spaces */
    MESSAGE_JSON_HIDE_SECRETS = 2, /* "***stripped***" for fields that service_field_is_secret */
};

/*
 * Field names are lowerCamelCase or as in the .proto file. Numbers may be strings, enums names or
 * numbers, bytes base64 of either alphabet; null is the same as absent. A number above INT64_MAX
 * must be a string. An unknown field, a field given twice and two members of a oneof are errors,
 * and so is a string with U+0000, for which protobuf-c has no room.
 *
 * Errors are INVALID_ARGUMENT and name the place ("volumeCapabilities[0].mount.fsType: expected a
 * string"), or RESOURCE_EXHAUSTED for a text that is too large or an allocator that gives NULL.
 * They quote names of fields, enum values and keys of maps, never any other string.
 *
 * All of the message is from `allocator` (NULL: the heap) and is freed with
 * protobuf_c_message_free_unpacked. After an error everything is freed already and *out is NULL.
 * The parsed text needs heap of its own meanwhile, up to some hundred bytes for every three of the
 * text if that is made to be hostile.
 */
MUST_CHECK struct error *message_json_parse(const char *text, size_t size,
                                            const ProtobufCMessageDescriptor *type,
                                            ProtobufCAllocator *allocator, ProtobufCMessage **out);

/*
 * Appends the message, without a newline at its end. Fields that have their default are left out.
 * Always gives valid JSON: bytes in strings that are not UTF-8 become U+FFFD, a Timestamp or
 * Duration out of range is written as an object.
 */
void message_json_print(const ProtobufCMessage *message, unsigned flags, struct buffer *out);

#endif
