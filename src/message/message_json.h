/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts messages of any protobuf-c type to JSON and back, by the proto3 JSON mapping.
 *
 * Timestamp, Duration, Empty and the wrappers have their special forms. Any, Struct, Value and
 * FieldMask are treated as ordinary messages, and the option json_name is not supported. protobuf-c
 * does not distinguish maps from lists: a repeated field `volume_context` counts as a map if its
 * type is named VolumeContextEntry and has exactly the fields key = 1 and value = 2.
 */
#ifndef MESSAGE_JSON_H
#define MESSAGE_JSON_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/buffer.h"
#include "base/error.h"

#define MESSAGE_JSON_MAX_SIZE ((size_t)16 * 1024 * 1024)
#define MESSAGE_JSON_MAX_DEPTH 64 /* nested messages */

enum message_json_flag {
    MESSAGE_JSON_PRETTY = 1, /* one member per line, indented by two spaces */
    /* print "***stripped***" for secret fields (service_field_is_secret) */
    MESSAGE_JSON_HIDE_SECRETS = 2,
};

/*
 * Field names may be in lowerCamelCase or as in the .proto file. Numbers may be strings, enums
 * names or numbers, bytes base64 in either alphabet; null is the same as absent. A number above
 * INT64_MAX must be a string. Errors are: an unknown field, a field given twice, two members of a
 * oneof, and a string with U+0000, which protobuf-c cannot represent.
 *
 * Errors are INVALID_ARGUMENT with the location ("volumeCapabilities[0].mount.fsType: expected a
 * string"), or RESOURCE_EXHAUSTED if the text is too large or the allocator returns NULL. They
 * quote field names, enum values and map keys, but no other strings.
 *
 * The whole message comes from `allocator` (NULL: the heap); free it with
 * protobuf_c_message_free_unpacked. On error everything has been freed and *out is NULL. The parse
 * tree temporarily needs heap memory, for hostile input up to some hundred bytes per three bytes of
 * text.
 */
MUST_CHECK struct error *message_json_parse(const char *text, size_t size,
                                            const ProtobufCMessageDescriptor *type,
                                            ProtobufCAllocator *allocator, ProtobufCMessage **out);

/*
 * Appends the message without a final newline. Fields with their default value are omitted. The
 * output is always valid JSON: invalid UTF-8 in strings becomes U+FFFD, and a Timestamp or Duration
 * out of range is printed as an object.
 */
void message_json_print(const ProtobufCMessage *message, unsigned flags, struct buffer *out);

#endif
