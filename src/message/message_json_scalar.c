/* SPDX-License-Identifier: Apache-2.0 */
/* Reading single values from JSON: see message_json_scalar.h. */
#include "message/message_json_scalar.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "message/message_field.h"

#define MAX_QUOTE_BYTES 64 /* bytes of the user's text that an error quotes */

/* An integer of any type. */
struct integer {
    bool is_negative;
    bool overflows; /* more than 64 bits */
    uint64_t magnitude;
};

/* ---- errors and memory ---- */

static void
append_quoted(struct buffer *out, const char *text)
{
    json_append_string(out, text, utf8_cut(text, strlen(text), MAX_QUOTE_BYTES));
}

static void
append_path(struct buffer *out, const struct location *location)
{
    if (!location->outer)
        return;
    append_path(out, location->outer);
    if (!location->name) {
        buffer_print(out, "[%zu]", location->index);
    } else if (location->is_key) {
        buffer_append_byte(out, '[');
        append_quoted(out, location->name);
        buffer_append_byte(out, ']');
    } else {
        buffer_print(out, "%s%s", out->size ? "." : "", location->name);
    }
}

struct error *
location_fail(const struct location *location, const char *problem)
{
    struct buffer path AUTO(buffer_clear) = {0};
    append_path(&path, location);
    return error_new(CODE_INVALID_ARGUMENT, "%s%s%s", buffer_text(&path), path.size ? ": " : "",
                     problem);
}

struct error *
location_fail_quoting(const struct location *location, const char *problem, const char *text)
{
    struct buffer quoted AUTO(buffer_clear) = {0};
    buffer_print(&quoted, "%s ", problem);
    append_quoted(&quoted, text);
    return location_fail(location, buffer_text(&quoted));
}

void *
location_allocate(const struct location *location, size_t size)
{
    ProtobufCAllocator *allocator = location->allocator;
    size = size ? size : 1;
    void *block = allocator ? allocator->alloc(allocator->allocator_data, size) : malloc(size);
    return block ? memset(block, 0, size) : NULL;
}

struct error *
location_out_of_memory(void)
{
    return error_new(CODE_RESOURCE_EXHAUSTED, "the message exceeds its memory limit");
}

/* ---- numbers ---- */

/*
 * Parses an integer as in JSON: no '+', no leading zero, no "-0", so that each number has only one
 * text.
 */
static bool
integer_of_text(const char *text, struct integer *integer)
{
    *integer = (struct integer){.is_negative = text[0] == '-'};
    const char *digits = text + integer->is_negative;
    size_t count = strspn(digits, "0123456789");
    if (!count || digits[count] || (digits[0] == '0' && (count > 1 || integer->is_negative)))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (__builtin_mul_overflow(integer->magnitude, 10, &integer->magnitude) ||
            __builtin_add_overflow(integer->magnitude, digits[i] - '0', &integer->magnitude))
            integer->overflows = true;
    }
    return true;
}

/* 1e3 and 5.0 are integers too, and so is every real beyond 53 bits. */
static bool
integer_of_real(double real, struct integer *integer)
{
    double magnitude = fabs(real);
    *integer = (struct integer){.is_negative = real < 0, .overflows = magnitude >= 0x1p64};
    if (integer->overflows)
        return true;
    integer->magnitude = (uint64_t)magnitude;
    return (double)integer->magnitude == magnitude;
}

static bool
integer_of_json(const json_t *json, struct integer *integer)
{
    if (json_is_string(json))
        return integer_of_text(json_string_value(json), integer);
    if (json_is_real(json))
        return integer_of_real(json_real_value(json), integer);
    if (!json_is_integer(json))
        return false;
    json_int_t value = json_integer_value(json);
    integer->overflows = false;
    integer->is_negative = value < 0;
    integer->magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return true;
}

static bool
is_unsigned(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_UINT32 || type == PROTOBUF_C_TYPE_FIXED32 ||
           type == PROTOBUF_C_TYPE_UINT64 || type == PROTOBUF_C_TYPE_FIXED64;
}

static struct error *
store_integer(const struct location *location, const struct integer *integer, ProtobufCType type,
              void *slot)
{
    bool is_wide = message_field_value_size(type) == sizeof(uint64_t);
    uint64_t most = is_unsigned(type) ? (is_wide ? UINT64_MAX : UINT32_MAX)
                                      : (is_wide ? (uint64_t)INT64_MAX : (uint64_t)INT32_MAX);
    if (integer->is_negative)
        most = is_unsigned(type) ? 0 : most + 1;
    if (integer->overflows || integer->magnitude > most)
        return location_fail(
            location, is_unsigned(type)
                          ? (is_wide ? "out of the range of uint64" : "out of the range of uint32")
                          : (is_wide ? "out of the range of int64" : "out of the range of int32"));
    uint64_t bits = integer->is_negative ? 0 - integer->magnitude : integer->magnitude;
    if (is_wide)
        *(uint64_t *)slot = bits;
    else
        *(uint32_t *)slot = (uint32_t)bits;
    return NULL;
}

static struct error *
read_integer(const struct location *location, ProtobufCType type, void *slot)
{
    struct integer integer;
    if (!integer_of_json(location->json, &integer))
        return location_fail(location, "expected an integer");
    return store_integer(location, &integer, type, slot);
}

static bool
real_of_text(const char *text, double *value)
{
    static const struct {
        const char *name;
        double value;
    } names[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(text, names[i].name)) {
            *value = names[i].value;
            return true;
        }
    }
    char *end;
    *value = strtod(text, &end);
    return text[0] && !text[strspn(text, "0123456789+-.eE")] && !*end && isfinite(*value);
}

static struct error *
read_real(const struct location *location, ProtobufCType type, void *slot)
{
    double value = json_number_value(location->json);
    if (!json_is_number(location->json) &&
        !(json_is_string(location->json) &&
          real_of_text(json_string_value(location->json), &value)))
        return location_fail(location, "expected a number");
    if (type == PROTOBUF_C_TYPE_DOUBLE) {
        *(double *)slot = value;
        return NULL;
    }
    *(float *)slot = (float)value;
    if (isinf(*(float *)slot) && !isinf(value))
        return location_fail(location, "out of the range of float");
    return NULL;
}

static struct error *
read_enum(const struct location *location, const ProtobufCEnumDescriptor *type, int *slot)
{
    if (!json_is_string(location->json))
        return json_is_number(location->json)
                   ? read_integer(location, PROTOBUF_C_TYPE_INT32, slot)
                   : location_fail(location, "expected a name or a number");
    const char *name = json_string_value(location->json);
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    if (value) {
        *slot = value->value;
        return NULL;
    }
    struct buffer problem AUTO(buffer_clear) = {0};
    buffer_print(&problem, "%s has no value", type->name);
    return location_fail_quoting(location, buffer_text(&problem), name);
}

static struct error *
copy_text(const struct location *location, const char *text, char **slot)
{
    size_t size = strlen(text);
    char *copy = location_allocate(location, size + 1);
    if (!copy)
        return location_out_of_memory();
    memcpy(copy, text, size);
    *slot = copy;
    return NULL;
}

static struct error *
read_bytes(const struct location *location, ProtobufCBinaryData *slot)
{
    if (!json_is_string(location->json))
        return location_fail(location, "expected a base64 string");
    struct buffer bytes AUTO(buffer_clear) = {0};
    char *text AUTO(memory_cleanup) = memory_string(json_string_value(location->json));
    for (char *next = text; *next; next++)
        *next = *next == '-' ? '+' : *next == '_' ? '/' : *next;
    if (!base64_decode(text, strlen(text), &bytes))
        return location_fail(location, "not valid base64");
    slot->data = bytes.size ? location_allocate(location, bytes.size) : NULL;
    if (bytes.size && !slot->data)
        return location_out_of_memory();
    slot->len = bytes.size;
    if (bytes.size)
        memcpy(slot->data, bytes.bytes, bytes.size);
    return NULL;
}

struct error *
message_json_read_scalar(const struct location *location, const ProtobufCFieldDescriptor *field,
                         void *slot)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(location, field->type, slot);
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)slot = json_is_true(location->json);
        return json_is_boolean(location->json) ? NULL
                                               : location_fail(location, "expected true or false");
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(location, field->descriptor, slot);
    case PROTOBUF_C_TYPE_STRING:
        return json_is_string(location->json)
                   ? copy_text(location, json_string_value(location->json), slot)
                   : location_fail(location, "expected a string");
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(location, slot);
    default:
        return read_integer(location, field->type, slot);
    }
}

struct error *
message_json_read_key(const struct location *location, const ProtobufCFieldDescriptor *field,
                      void *slot)
{
    struct integer integer;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return copy_text(location, location->name, slot);
    if (field->type == PROTOBUF_C_TYPE_BOOL) {
        *(protobuf_c_boolean *)slot = !strcmp(location->name, "true");
        return *(protobuf_c_boolean *)slot || !strcmp(location->name, "false")
                   ? NULL
                   : location_fail(location, "expected the key \"true\" or \"false\"");
    }
    if (!integer_of_text(location->name, &integer))
        return location_fail(location, "expected an integer as the key");
    return store_integer(location, &integer, field->type, slot);
}
