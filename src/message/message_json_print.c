/* SPDX-License-Identifier: Apache-2.0 */
/* Printing messages as JSON: see message_json.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "message/message_field.h"
#include "message/message_json.h"
#include "message/message_time.h"
#include "message/service.h"

#define SECRET_TEXT "***stripped***"

struct printer {
    struct buffer *out;
    unsigned flags;
    unsigned depth; /* open brackets */
};

static void print_message(struct printer *printer, const ProtobufCMessage *message);

static void
print_text(struct printer *printer, const char *text)
{
    json_append_string(printer->out, text, strlen(text));
}

static void
start_line(struct printer *printer)
{
    if (printer->flags & MESSAGE_JSON_PRETTY)
        buffer_print(printer->out, "\n%*s", (int)(2 * printer->depth), "");
}

static void
open_bracket(struct printer *printer, char bracket)
{
    buffer_append_byte(printer->out, (uint8_t)bracket);
    printer->depth++;
}

/* Call before each member or element. */
static void
start_item(struct printer *printer, bool is_first)
{
    if (!is_first)
        buffer_append_byte(printer->out, ',');
    start_line(printer);
}

static void
close_bracket(struct printer *printer, char bracket, bool is_empty)
{
    printer->depth--;
    if (!is_empty)
        start_line(printer);
    buffer_append_byte(printer->out, (uint8_t)bracket);
}

static void
print_colon(struct printer *printer)
{
    buffer_append_text(printer->out, printer->flags & MESSAGE_JSON_PRETTY ? ": " : ":");
}

/* Prints the fewest digits that parse to the same number. */
static void
print_real(struct printer *printer, double value, bool is_float)
{
    char text[40];
    if (isnan(value) || isinf(value)) {
        print_text(printer, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    for (int digits = is_float ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double again = strtod(text, NULL);
        if (again == value || (is_float && (float)again == (float)value))
            break;
    }
    /* "-0" would be parsed as the integer 0. */
    buffer_append_text(printer->out, strcmp(text, "-0") ? text : "-0.0");
}

static void
print_enum(struct printer *printer, const ProtobufCEnumDescriptor *type, int number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);
    if (value)
        print_text(printer, value->name);
    else
        buffer_print(printer->out, "%d", number);
}

static void
print_bytes(struct printer *printer, const ProtobufCBinaryData *bytes)
{
    buffer_append_byte(printer->out, '"');
    base64_encode(bytes->data, bytes->len, true, printer->out);
    buffer_append_byte(printer->out, '"');
}

static void
print_value(struct printer *printer, const ProtobufCFieldDescriptor *field, const void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        buffer_print(printer->out, "%" PRId32, *(const int32_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        buffer_print(printer->out, "%" PRIu32, *(const uint32_t *)value);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        buffer_print(printer->out, "\"%" PRId64 "\"", *(const int64_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        buffer_print(printer->out, "\"%" PRIu64 "\"", *(const uint64_t *)value);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        print_real(printer, (double)*(const float *)value, true);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        print_real(printer, *(const double *)value, false);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        buffer_append_text(printer->out, *(const protobuf_c_boolean *)value ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        print_enum(printer, field->descriptor, *(const int *)value);
        break;
    case PROTOBUF_C_TYPE_STRING:
        print_text(printer, *(char *const *)value ? *(char *const *)value : "");
        break;
    case PROTOBUF_C_TYPE_BYTES:
        print_bytes(printer, value);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        print_message(printer, *(ProtobufCMessage *const *)value);
        break;
    }
}

static void
print_list(struct printer *printer, const ProtobufCFieldDescriptor *field, const void *values,
           size_t count)
{
    size_t value_size = message_field_value_size(field->type);
    open_bracket(printer, '[');
    for (size_t i = 0; i < count; i++) {
        start_item(printer, i == 0);
        print_value(printer, field, (const char *)values + i * value_size);
    }
    close_bracket(printer, ']', count == 0);
}

/* A key is always a string; 64-bit numbers and strings are quoted already. */
static void
print_key(struct printer *printer, const ProtobufCFieldDescriptor *field, const void *value)
{
    size_t start = printer->out->size;
    print_value(printer, field, value);
    if (printer->out->bytes[start] == '"')
        return;
    struct buffer bare AUTO(buffer_clear) = {0};
    buffer_append(&bare, printer->out->bytes + start, printer->out->size - start);
    printer->out->size = start;
    print_text(printer, buffer_text(&bare));
}

static void
print_map(struct printer *printer, ProtobufCMessage *const *entries, size_t count)
{
    open_bracket(printer, '{');
    for (size_t i = 0; i < count; i++) {
        const ProtobufCFieldDescriptor *fields = entries[i]->descriptor->fields;
        start_item(printer, i == 0);
        print_key(printer, &fields[0], message_field_value(entries[i], &fields[0]));
        print_colon(printer);
        print_value(printer, &fields[1], message_field_value(entries[i], &fields[1]));
    }
    close_bracket(printer, '}', count == 0);
}

static void
print_field(struct printer *printer, const ProtobufCMessage *message,
            const ProtobufCFieldDescriptor *field)
{
    const void *value = message_field_value(message, field);
    if ((printer->flags & MESSAGE_JSON_HIDE_SECRETS) &&
        service_field_is_secret(message->descriptor, field->id)) {
        print_text(printer, SECRET_TEXT);
    } else if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t count = *(const size_t *)message_field_quantifier(message, field);
        if (message_field_is_map(field))
            print_map(printer, *(ProtobufCMessage *const *const *)value, count);
        else
            print_list(printer, field, *(const void *const *)value, count);
    } else {
        print_value(printer, field, value);
    }
}

static void
print_object(struct printer *printer, const ProtobufCMessage *message)
{
    bool is_first = true;
    open_bracket(printer, '{');
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (!message_field_is_present(message, field))
            continue;
        start_item(printer, is_first);
        is_first = false;
        buffer_append_byte(printer->out, '"');
        message_field_append_json_name(field, printer->out);
        buffer_append_byte(printer->out, '"');
        print_colon(printer);
        print_field(printer, message, field);
    }
    close_bracket(printer, '}', is_first);
}

/* Returns false for a time out of range, which has no text form. */
static bool
print_time(struct printer *printer, const ProtobufCMessage *message, enum message_form form)
{
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    int64_t seconds = *(const int64_t *)message_field_value(message, &fields[0]);
    int32_t nanos = *(const int32_t *)message_field_value(message, &fields[1]);
    struct buffer text AUTO(buffer_clear) = {0};
    bool is_printed = form == MESSAGE_FORM_TIMESTAMP
                          ? message_time_print_timestamp(seconds, nanos, &text)
                          : message_time_print_duration(seconds, nanos, &text);
    if (is_printed)
        print_text(printer, buffer_text(&text));
    return is_printed;
}

/* `message` is NULL if a map entry was sent without a value. */
static void
print_message(struct printer *printer, const ProtobufCMessage *message)
{
    if (!message) {
        buffer_append_text(printer->out, "{}");
        return;
    }
    enum message_form form = message_field_form_of(message->descriptor);
    if (form == MESSAGE_FORM_WRAPPER)
        print_field(printer, message, &message->descriptor->fields[0]);
    else if (form == MESSAGE_FORM_OBJECT || !print_time(printer, message, form))
        print_object(printer, message);
}

void
message_json_print(const ProtobufCMessage *message, unsigned flags, struct buffer *out)
{
    struct printer printer = {.out = out, .flags = flags};
    print_message(&printer, message);
}
