/* SPDX-License-Identifier: Apache-2.0 */
/* What protobuf-c's descriptors say about fields and types, in terms of the JSON mapping. */
#ifndef MESSAGE_FIELD_H
#define MESSAGE_FIELD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* The JSON form of a message type. */
enum message_form {
    MESSAGE_FORM_OBJECT,
    MESSAGE_FORM_TIMESTAMP, /* descriptor fields 0 and 1 are seconds and nanos */
    MESSAGE_FORM_DURATION,  /* likewise */
    MESSAGE_FORM_WRAPPER,   /* descriptor field 0 is the value */
};

enum message_form message_field_form_of(const ProtobufCMessageDescriptor *type);

/* Pointer to the field's value; for a repeated field, to the pointer to its array. */
void *message_field_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* Pointer to the `n_`, `has_` or oneof case member. */
void *message_field_quantifier(const ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor *field);

bool message_field_is_map(const ProtobufCFieldDescriptor *field);
bool message_field_is_in_oneof(const ProtobufCFieldDescriptor *field);

/* Must the field be printed? True if it is set or, for a plain proto3 field, not the default. */
bool message_field_is_present(const ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field);

/* Size of one value: of the member itself, or of an array element. */
size_t message_field_value_size(ProtobufCType type);

/* Appends the name in lowerCamelCase. */
void message_field_append_json_name(const ProtobufCFieldDescriptor *field, struct buffer *out);

/* Finds a field by its name in either form, or returns NULL. */
const ProtobufCFieldDescriptor *message_field_find(const ProtobufCMessageDescriptor *type,
                                                   const char *name);

#endif
