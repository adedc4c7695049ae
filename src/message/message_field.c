/* SPDX-License-Identifier: Apache-2.0 */
/* Fields and types by their descriptors: see message_field.h. */
#include "message/message_field.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static const struct {
    const char *name;
    enum message_form form;
} forms[] = {
    {"google.protobuf.Timestamp", MESSAGE_FORM_TIMESTAMP},
    {"google.protobuf.Duration", MESSAGE_FORM_DURATION},
    {"google.protobuf.DoubleValue", MESSAGE_FORM_WRAPPER},
    {"google.protobuf.FloatValue", MESSAGE_FORM_WRAPPER},
    {"google.protobuf.Int64Value", MESSAGE_FORM_WRAPPER},
    {"google.protobuf.UInt64Value", MESSAGE_FORM_WRAPPER},
    {"google.protobuf.Int32Value", MESSAGE_FORM_WRAPPER},
    {"google.protobuf.UInt32Value", MESSAGE_FORM_WRAPPER},
    {"google.protobuf.BoolValue", MESSAGE_FORM_WRAPPER},
    {"google.protobuf.StringValue", MESSAGE_FORM_WRAPPER},
    {"google.protobuf.BytesValue", MESSAGE_FORM_WRAPPER},
};

enum message_form
message_field_form_of(const ProtobufCMessageDescriptor *type)
{
    if (strcmp(type->package_name, "google.protobuf") != 0)
        return MESSAGE_FORM_OBJECT;
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        if (!strcmp(type->name, forms[i].name))
            return forms[i].form;
    }
    return MESSAGE_FORM_OBJECT;
}

void *
message_field_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->offset;
}

void *
message_field_quantifier(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->quantifier_offset;
}

/*
 * Converts a name of the .proto file to CamelCase, one character per call: returns the next
 * character and advances, '\0' at the end. `upper` makes the next letter upper case.
 */
static char
next_camel(const char **name, bool upper)
{
    for (; **name == '_'; (*name)++)
        upper = true;
    char character = **name;
    if (character)
        (*name)++;
    return upper ? (char)(toupper)((unsigned char)character) : character;
}

bool
message_field_is_map(const ProtobufCFieldDescriptor *field)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const ProtobufCMessageDescriptor *entry = field->descriptor;
    if (entry->n_fields != 2 || entry->fields[0].id != 1 || entry->fields[1].id != 2 ||
        strcmp(entry->fields[0].name, "key") != 0 || strcmp(entry->fields[1].name, "value") != 0)
        return false;
    const char *name = field->name, *entry_name = entry->short_name;
    char character = next_camel(&name, true);
    for (; character && character == *entry_name; entry_name++)
        character = next_camel(&name, false);
    return !character && !strcmp(entry_name, "Entry");
}

bool
message_field_is_in_oneof(const ProtobufCFieldDescriptor *field)
{
    return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

size_t
message_field_value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    }
    return 0;
}

static bool
is_default(const ProtobufCFieldDescriptor *field, const void *value)
{
    static const char zeros[sizeof(ProtobufCBinaryData)];
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(char *const *)value;
        return !text || !text[0];
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return ((const ProtobufCBinaryData *)value)->len == 0;
    return !memcmp(value, zeros, message_field_value_size(field->type));
}

/*
 * Fields declared optional, in proto2 or proto3: pointers are NULL if unset, other types have a
 * flag.
 */
static bool
is_optional_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        const void *pointer = *(void *const *)message_field_value(message, field);
        return pointer && pointer != field->default_value;
    }
    return *(const protobuf_c_boolean *)message_field_quantifier(message, field);
}

bool
message_field_is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (message_field_is_in_oneof(field))
        return *(const uint32_t *)message_field_quantifier(message, field) == field->id;
    switch (field->label) {
    case PROTOBUF_C_LABEL_REPEATED:
        return *(const size_t *)message_field_quantifier(message, field) > 0;
    case PROTOBUF_C_LABEL_OPTIONAL:
        return is_optional_set(message, field);
    case PROTOBUF_C_LABEL_REQUIRED:
        return true;
    case PROTOBUF_C_LABEL_NONE:
        return !is_default(field, message_field_value(message, field));
    }
    return false;
}

void
message_field_append_json_name(const ProtobufCFieldDescriptor *field, struct buffer *out)
{
    const char *name = field->name;
    for (char character; (character = next_camel(&name, false));)
        buffer_append_byte(out, (uint8_t)character);
}

static bool
is_json_name(const char *name, const char *text)
{
    char character = next_camel(&name, false);
    for (; character && character == *text; text++)
        character = next_camel(&name, false);
    return !character && !*text;
}

const ProtobufCFieldDescriptor *
message_field_find(const ProtobufCMessageDescriptor *type, const char *name)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (!strcmp(field->name, name) || is_json_name(field->name, name))
            return field;
    }
    return NULL;
}
