/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing messages from JSON: see message_json.h.
 *
 * jansson parses the text into a tree, which is then walked in parallel with the descriptors. From
 * its allocation on, every message is reachable from the top one and in a state that protobuf-c can
 * free. So error paths need no cleanup except for one call at the top.
 */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "message/message_field.h"
#include "message/message_json.h"
#include "message/message_time.h"

#define MAX_QUOTE_BYTES 64 /* bytes of the user's text that an error quotes */

/* A value in the text and the path to it. */
struct location {
    const struct location *outer; /* NULL at the top */
    json_t *json;
    const char *name; /* field name or map key; NULL for a list element */
    bool is_key;
    size_t index;
    unsigned depth;
    ProtobufCAllocator *allocator;
};

/* An integer of any type. */
struct integer {
    bool is_negative;
    bool overflows; /* more than 64 bits */
    uint64_t magnitude;
};

static struct error *read_message(const struct location *location, ProtobufCMessage *message);

static struct location
location_of_field(const struct location *outer, const char *name, json_t *json)
{
    return (struct location){.outer = outer,
                             .json = json,
                             .name = name,
                             .depth = outer->depth + 1,
                             .allocator = outer->allocator};
}

static struct location
location_of_key(const struct location *outer, const char *key, json_t *json)
{
    struct location location = location_of_field(outer, key, json);
    location.is_key = true;
    location.depth = outer->depth;
    return location;
}

static struct location
location_of_element(const struct location *outer, size_t index, json_t *json)
{
    struct location location = location_of_key(outer, NULL, json);
    location.index = index;
    return location;
}

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

/* "path: problem" */
static struct error *
fail(const struct location *location, const char *problem)
{
    struct buffer path AUTO(buffer_clear) = {0};
    append_path(&path, location);
    return error_new(CODE_INVALID_ARGUMENT, "%s%s%s", buffer_text(&path), path.size ? ": " : "",
                     problem);
}

/* "path: problem "text"" */
static struct error *
fail_quoting(const struct location *location, const char *problem, const char *text)
{
    struct buffer quoted AUTO(buffer_clear) = {0};
    buffer_print(&quoted, "%s ", problem);
    append_quoted(&quoted, text);
    return fail(location, buffer_text(&quoted));
}

/* Returns zeroed memory, or NULL if the allocator has none. */
static void *
allocate(const struct location *location, size_t size)
{
    ProtobufCAllocator *allocator = location->allocator;
    size = size ? size : 1;
    void *block = allocator ? allocator->alloc(allocator->allocator_data, size) : malloc(size);
    return block ? memset(block, 0, size) : NULL;
}

static struct error *
out_of_memory(void)
{
    return error_new(CODE_RESOURCE_EXHAUSTED, "the message exceeds its memory limit");
}

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
        return fail(location,
                    is_unsigned(type)
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
        return fail(location, "expected an integer");
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
        return fail(location, "expected a number");
    if (type == PROTOBUF_C_TYPE_DOUBLE) {
        *(double *)slot = value;
        return NULL;
    }
    *(float *)slot = (float)value;
    if (isinf(*(float *)slot) && !isinf(value))
        return fail(location, "out of the range of float");
    return NULL;
}

static struct error *
read_enum(const struct location *location, const ProtobufCEnumDescriptor *type, int *slot)
{
    if (!json_is_string(location->json))
        return json_is_number(location->json) ? read_integer(location, PROTOBUF_C_TYPE_INT32, slot)
                                              : fail(location, "expected a name or a number");
    const char *name = json_string_value(location->json);
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    if (value) {
        *slot = value->value;
        return NULL;
    }
    struct buffer problem AUTO(buffer_clear) = {0};
    buffer_print(&problem, "%s has no value", type->name);
    return fail_quoting(location, buffer_text(&problem), name);
}

static struct error *
copy_text(const struct location *location, const char *text, char **slot)
{
    size_t size = strlen(text);
    char *copy = allocate(location, size + 1);
    if (!copy)
        return out_of_memory();
    memcpy(copy, text, size);
    *slot = copy;
    return NULL;
}

static struct error *
read_bytes(const struct location *location, ProtobufCBinaryData *slot)
{
    if (!json_is_string(location->json))
        return fail(location, "expected a base64 string");
    struct buffer bytes AUTO(buffer_clear) = {0};
    char *text AUTO(memory_cleanup) = memory_string(json_string_value(location->json));
    for (char *next = text; *next; next++)
        *next = *next == '-' ? '+' : *next == '_' ? '/' : *next;
    if (!base64_decode(text, strlen(text), &bytes))
        return fail(location, "not valid base64");
    slot->data = bytes.size ? allocate(location, bytes.size) : NULL;
    if (bytes.size && !slot->data)
        return out_of_memory();
    slot->len = bytes.size;
    if (bytes.size)
        memcpy(slot->data, bytes.bytes, bytes.size);
    return NULL;
}

/* Returns an empty message, or NULL if the allocator has no memory. */
static ProtobufCMessage *
new_message(const struct location *location, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = allocate(location, type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    return message;
}

static struct error *
read_new_message(const struct location *location, const ProtobufCMessageDescriptor *type,
                 ProtobufCMessage **slot)
{
    *slot = new_message(location, type);
    return *slot ? read_message(location, *slot) : out_of_memory();
}

/* Reads a single value. `slot` has room for message_field_value_size. */
static struct error *
read_value(const struct location *location, const ProtobufCFieldDescriptor *field, void *slot)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(location, field->type, slot);
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)slot = json_is_true(location->json);
        return json_is_boolean(location->json) ? NULL : fail(location, "expected true or false");
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(location, field->descriptor, slot);
    case PROTOBUF_C_TYPE_STRING:
        return json_is_string(location->json)
                   ? copy_text(location, json_string_value(location->json), slot)
                   : fail(location, "expected a string");
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(location, slot);
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_new_message(location, field->descriptor, slot);
    default:
        return read_integer(location, field->type, slot);
    }
}

static struct error *
read_key(const struct location *location, const ProtobufCFieldDescriptor *field, void *slot)
{
    struct integer integer;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return copy_text(location, location->name, slot);
    if (field->type == PROTOBUF_C_TYPE_BOOL) {
        *(protobuf_c_boolean *)slot = !strcmp(location->name, "true");
        return *(protobuf_c_boolean *)slot || !strcmp(location->name, "false")
                   ? NULL
                   : fail(location, "expected the key \"true\" or \"false\"");
    }
    if (!integer_of_text(location->name, &integer))
        return fail(location, "expected an integer as the key");
    return store_integer(location, &integer, field->type, slot);
}

/*
 * Allocates the array of a repeated field with a count of 0: protobuf-c frees only counted
 * elements.
 */
static struct error *
new_array(const struct location *location, ProtobufCMessage *message,
          const ProtobufCFieldDescriptor *field, size_t count)
{
    if (!count)
        return NULL;
    void *array = allocate(location, count * message_field_value_size(field->type));
    if (!array)
        return out_of_memory();
    *(void **)message_field_value(message, field) = array;
    return NULL;
}

static struct error *
read_list(const struct location *location, ProtobufCMessage *message,
          const ProtobufCFieldDescriptor *field)
{
    if (!json_is_array(location->json))
        return fail(location, "expected a list");
    size_t *counted = message_field_quantifier(message, field);
    size_t count = json_array_size(location->json);
    struct error *error = new_array(location, message, field, count);
    for (size_t i = 0; !error && i < count; i++) {
        struct location element =
            location_of_element(location, i, json_array_get(location->json, i));
        char *array = *(char **)message_field_value(message, field);
        *counted = i + 1;
        error = read_value(&element, field, array + i * message_field_value_size(field->type));
    }
    return error;
}

static struct error *
read_entry(const struct location *location, const ProtobufCMessageDescriptor *type,
           ProtobufCMessage **slot)
{
    const ProtobufCFieldDescriptor *key = &type->fields[0], *value = &type->fields[1];
    *slot = new_message(location, type);
    if (!*slot)
        return out_of_memory();
    struct error *error = read_key(location, key, message_field_value(*slot, key));
    return error ? error : read_value(location, value, message_field_value(*slot, value));
}

static struct error *
read_map(const struct location *location, ProtobufCMessage *message,
         const ProtobufCFieldDescriptor *field)
{
    if (!json_is_object(location->json))
        return fail(location, "expected an object");
    size_t *counted = message_field_quantifier(message, field);
    struct error *error = new_array(location, message, field, json_object_size(location->json));
    const char *key;
    json_t *json;
    json_object_foreach (location->json, key, json) {
        if (error)
            break;
        struct location entry = location_of_key(location, key, json);
        ProtobufCMessage **array = *(ProtobufCMessage ***)message_field_value(message, field);
        error = read_entry(&entry, field->descriptor, &array[(*counted)++]);
    }
    return error;
}

/* Selects the field of a oneof, unless another one is selected already. */
static struct error *
select_in_oneof(const struct location *location, ProtobufCMessage *message,
                const ProtobufCFieldDescriptor *field)
{
    uint32_t *chosen = message_field_quantifier(message, field);
    if (*chosen) {
        const ProtobufCFieldDescriptor *other =
            protobuf_c_message_descriptor_get_field(message->descriptor, *chosen);
        struct buffer name AUTO(buffer_clear) = {0};
        message_field_append_json_name(other, &name);
        return fail_quoting(location, "only one may be set, and there is also", buffer_text(&name));
    }
    *chosen = field->id;
    memset(message_field_value(message, field), 0, message_field_value_size(field->type));
    return NULL;
}

static struct error *
read_field(const struct location *location, ProtobufCMessage *message,
           const ProtobufCFieldDescriptor *field)
{
    if (json_is_null(location->json))
        return NULL;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return message_field_is_map(field) ? read_map(location, message, field)
                                           : read_list(location, message, field);
    if (message_field_is_in_oneof(field)) {
        struct error *error = select_in_oneof(location, message, field);
        if (error)
            return error;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset) {
        *(protobuf_c_boolean *)message_field_quantifier(message, field) = 1;
    }
    return read_value(location, field, message_field_value(message, field));
}

/* Otherwise a field given under both of its names would be read twice. */
static struct error *
check_duplicate(const struct location *location, const ProtobufCFieldDescriptor *field)
{
    struct buffer json_name AUTO(buffer_clear) = {0};
    message_field_append_json_name(field, &json_name);
    if (!strcmp(location->name, buffer_text(&json_name)) ||
        !json_object_get(location->outer->json, buffer_text(&json_name)))
        return NULL;
    return fail_quoting(location, "given twice, also as", buffer_text(&json_name));
}

static struct error *
read_member(const struct location *location, ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field = message_field_find(message->descriptor, location->name);
    if (!field) {
        struct buffer problem AUTO(buffer_clear) = {0};
        buffer_print(&problem, "%s has no field", message->descriptor->name);
        return fail_quoting(location->outer, buffer_text(&problem), location->name);
    }
    struct error *error = check_duplicate(location, field);
    return error ? error : read_field(location, message, field);
}

static struct error *
read_object(const struct location *location, ProtobufCMessage *message)
{
    if (!json_is_object(location->json))
        return fail(location, "expected an object");
    const char *name;
    json_t *json;
    json_object_foreach (location->json, name, json) {
        struct location member = location_of_field(location, name, json);
        struct error *error = read_member(&member, message);
        if (error)
            return error;
    }
    return NULL;
}

static struct error *
read_time(const struct location *location, ProtobufCMessage *message, enum message_form form)
{
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    int64_t *seconds = message_field_value(message, &fields[0]);
    int32_t *nanos = message_field_value(message, &fields[1]);
    const char *text = json_string_value(location->json);
    if (form == MESSAGE_FORM_TIMESTAMP)
        return text && message_time_parse_timestamp(text, seconds, nanos)
                   ? NULL
                   : fail(location, "expected a time like \"2026-11-15T19:40:00Z\"");
    return text && message_time_parse_duration(text, seconds, nanos)
               ? NULL
               : fail(location, "expected a duration like \"1.5s\"");
}

static struct error *
read_message(const struct location *location, ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    enum message_form form = message_field_form_of(message->descriptor);
    if (location->depth > MESSAGE_JSON_MAX_DEPTH)
        return error_new(CODE_INVALID_ARGUMENT, "nested too deeply, at most %d messages",
                         MESSAGE_JSON_MAX_DEPTH);
    if (form == MESSAGE_FORM_OBJECT)
        return read_object(location, message);
    if (form == MESSAGE_FORM_WRAPPER)
        return read_value(location, &fields[0], message_field_value(message, &fields[0]));
    return read_time(location, message, form);
}

/* jansson quotes the text near the error. That may be a secret, so it is removed. */
static struct error *
load_json(const char *text, size_t size, json_t **json)
{
    json_error_t problem;
    if (size > MESSAGE_JSON_MAX_SIZE)
        return error_new(CODE_RESOURCE_EXHAUSTED, "the JSON is larger than %zu bytes",
                         MESSAGE_JSON_MAX_SIZE);
    *json = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (*json)
        return NULL;
    char *near = strstr(problem.text, " near '");
    if (near)
        *near = '\0';
    return error_new(CODE_INVALID_ARGUMENT, "not valid JSON, line %d column %d: %s", problem.line,
                     problem.column, problem.text);
}

struct error *
message_json_parse(const char *text, size_t size, const ProtobufCMessageDescriptor *type,
                   ProtobufCAllocator *allocator, ProtobufCMessage **out)
{
    json_t *json = NULL;
    *out = NULL;
    struct error *error = load_json(text, size, &json);
    if (error)
        return error;
    struct location top = {.json = json, .allocator = allocator};
    error = read_new_message(&top, type, out);
    json_decref(json);
    if (error) {
        protobuf_c_message_free_unpacked(*out, allocator);
        *out = NULL;
    }
    return error;
}
