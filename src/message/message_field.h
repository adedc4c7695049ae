/* SPDX-License-Identifier: Apache-2.0 */
/* What protobuf-c's descriptors tell about fields and types, in the terms of the JSON mapping. */
#ifndef MESSAGE_FIELD_H
#define MESSAGE_FIELD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* How a type looks as JSON. */
enum message_form {
    MESSAGE_FORM_OBJECT,
    MESSAGE_FORM_TIMESTAMP, /* fields 0 and 1 of its descriptor are seconds and nanos */
    MESSAGE_FORM_DURATION,  /* likewise */
    MESSAGE_FORM_WRAPPER,   /* field 0 of its descriptor is the value */
};

enum message_form message_field_form_of(const ProtobufCMessageDescriptor *type);

/* Where the field's value is: of a repeated one the pointer to its array. */
void *message_field_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* Where `n_`, `has_` or the case of the oneof is. */
void *message_field_quantifier(const ProtobufCMessage *message,
                               const ProtobufCFieldDescriptor *field);

bool message_field_is_map(const ProtobufCFieldDescriptor *field);
bool message_field_is_in_oneof(const ProtobufCFieldDescriptor *field);

/*
 * Is there something to print, that is: is it set, or for a plain proto3 field: is it not its
 * default?
 */
bool message_field_is_present(const ProtobufCMessage *message,
                              const ProtobufCFieldDescriptor *field);

/* Bytes of one value: of the member itself, or of an element of its array. */
size_t message_field_value_size(ProtobufCType type);

/* Appends the name as lowerCamelCase. */
void message_field_append_json_name(const ProtobufCFieldDescriptor *field, struct buffer *out);

/* The field of that name in either form, or NULL. */
const ProtobufCFieldDescriptor *message_field_find(const ProtobufCMessageDescriptor *type,
                                                   const char *name);

#endif
