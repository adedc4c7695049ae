/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON to messages: see message_json.h.
 *
 * jansson makes a tree of the text, which is then walked beside the descriptors. A message is
 * reachable from the top message, and in a state that protobuf-c can free, from the moment that it
 * is allocated; so an error needs no cleanup on its way up but one call at the top.
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

#define QUOTE_LIMIT 64 /* bytes of the user's text that an error shows */

/* A value in the text, and the way to it. */
struct place {
    const struct place *outer; /* NULL at the top */
    json_t *json;
    const char *name; /* of a field or a map's key; NULL for an element of a list */
    bool is_key;
    size_t index;
    unsigned depth;
    ProtobufCAllocator *allocator;
};

/* A whole number of any integer type. */
struct whole {
    bool is_negative;
    bool is_huge; /* more than 64 bits */
    uint64_t magnitude;
};

static struct error *read_message(const struct place *place, ProtobufCMessage *message);

static struct place
place_of_field(const struct place *outer, const char *name, json_t *json)
{
    return (struct place){.outer = outer,
                          .json = json,
                          .name = name,
                          .depth = outer->depth + 1,
                          .allocator = outer->allocator};
}

static struct place
place_of_key(const struct place *outer, const char *key, json_t *json)
{
    struct place place = place_of_field(outer, key, json);
    place.is_key = true;
    place.depth = outer->depth;
    return place;
}

static struct place
place_of_element(const struct place *outer, size_t index, json_t *json)
{
    struct place place = place_of_key(outer, NULL, json);
    place.index = index;
    return place;
}

static void
append_quoted(struct buffer *out, const char *text)
{
    json_append_string(out, text, utf8_cut(text, strlen(text), QUOTE_LIMIT));
}

static void
append_path(struct buffer *out, const struct place *place)
{
    if (!place->outer)
        return;
    append_path(out, place->outer);
    if (!place->name) {
        buffer_print(out, "[%zu]", place->index);
    } else if (place->is_key) {
        buffer_append_byte(out, '[');
        append_quoted(out, place->name);
        buffer_append_byte(out, ']');
    } else {
        buffer_print(out, "%s%s", out->size ? "." : "", place->name);
    }
}

/* "path: problem" */
static struct error *
fail(const struct place *place, const char *problem)
{
    struct buffer path AUTO(buffer_clear) = {0};
    append_path(&path, place);
    return error_new(CODE_INVALID_ARGUMENT, "%s%s%s", buffer_text(&path), path.size ? ": " : "",
                     problem);
}

/* "path: problem "text"" */
static struct error *
fail_quoting(const struct place *place, const char *problem, const char *text)
{
    struct buffer whole AUTO(buffer_clear) = {0};
    buffer_print(&whole, "%s ", problem);
    append_quoted(&whole, text);
    return fail(place, buffer_text(&whole));
}

/* Zeroed; NULL when the allocator has no more. */
static void *
allocate(const struct place *place, size_t size)
{
    ProtobufCAllocator *allocator = place->allocator;
    size = size ? size : 1;
    void *block = allocator ? allocator->alloc(allocator->allocator_data, size) : malloc(size);
    return block ? memset(block, 0, size) : NULL;
}

static struct error *
fail_without_memory(void)
{
    return error_new(CODE_RESOURCE_EXHAUSTED, "the message needs more memory than it may have");
}

/*
 * Digits with a '-' or not, as JSON has them: no '+', no zero in front, no "-0". So each number has
 * one text.
 */
static bool
whole_of_text(const char *text, struct whole *whole)
{
    *whole = (struct whole){.is_negative = text[0] == '-'};
    const char *digits = text + whole->is_negative;
    size_t count = strspn(digits, "0123456789");
    if (!count || digits[count] || (digits[0] == '0' && (count > 1 || whole->is_negative)))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (__builtin_mul_overflow(whole->magnitude, 10, &whole->magnitude) ||
            __builtin_add_overflow(whole->magnitude, digits[i] - '0', &whole->magnitude))
            whole->is_huge = true;
    }
    return true;
}

/* 1e3 and 5.0 are whole numbers too, and so is every real of that many bits. */
static bool
whole_of_real(double real, struct whole *whole)
{
    double magnitude = fabs(real);
    *whole = (struct whole){.is_negative = real < 0, .is_huge = magnitude >= 0x1p64};
    if (whole->is_huge)
        return true;
    whole->magnitude = (uint64_t)magnitude;
    return (double)whole->magnitude == magnitude;
}

static bool
whole_of_json(const json_t *json, struct whole *whole)
{
    if (json_is_string(json))
        return whole_of_text(json_string_value(json), whole);
    if (json_is_real(json))
        return whole_of_real(json_real_value(json), whole);
    if (!json_is_integer(json))
        return false;
    json_int_t value = json_integer_value(json);
    whole->is_huge = false;
    whole->is_negative = value < 0;
    whole->magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return true;
}

static bool
is_unsigned(ProtobufCType type)
{
    return type == PROTOBUF_C_TYPE_UINT32 || type == PROTOBUF_C_TYPE_FIXED32 ||
           type == PROTOBUF_C_TYPE_UINT64 || type == PROTOBUF_C_TYPE_FIXED64;
}

static struct error *
store_whole(const struct place *place, const struct whole *whole, ProtobufCType type, void *slot)
{
    bool is_wide = message_field_value_size(type) == sizeof(uint64_t);
    uint64_t most = is_unsigned(type) ? (is_wide ? UINT64_MAX : UINT32_MAX)
                                      : (is_wide ? (uint64_t)INT64_MAX : (uint64_t)INT32_MAX);
    if (whole->is_negative)
        most = is_unsigned(type) ? 0 : most + 1;
    if (whole->is_huge || whole->magnitude > most)
        return fail(place,
                    is_unsigned(type)
                        ? (is_wide ? "out of the range of uint64" : "out of the range of uint32")
                        : (is_wide ? "out of the range of int64" : "out of the range of int32"));
    uint64_t bits = whole->is_negative ? 0 - whole->magnitude : whole->magnitude;
    if (is_wide)
        *(uint64_t *)slot = bits;
    else
        *(uint32_t *)slot = (uint32_t)bits;
    return NULL;
}

static struct error *
read_integer(const struct place *place, ProtobufCType type, void *slot)
{
    struct whole whole;
    if (!whole_of_json(place->json, &whole))
        return fail(place, "expected a whole number");
    return store_whole(place, &whole, type, slot);
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
read_real(const struct place *place, ProtobufCType type, void *slot)
{
    double value = json_number_value(place->json);
    if (!json_is_number(place->json) &&
        !(json_is_string(place->json) && real_of_text(json_string_value(place->json), &value)))
        return fail(place, "expected a number");
    if (type == PROTOBUF_C_TYPE_DOUBLE) {
        *(double *)slot = value;
        return NULL;
    }
    *(float *)slot = (float)value;
    if (isinf(*(float *)slot) && !isinf(value))
        return fail(place, "out of the range of float");
    return NULL;
}

static struct error *
read_enum(const struct place *place, const ProtobufCEnumDescriptor *type, int *slot)
{
    if (!json_is_string(place->json))
        return json_is_number(place->json) ? read_integer(place, PROTOBUF_C_TYPE_INT32, slot)
                                           : fail(place, "expected a name or a number");
    const char *name = json_string_value(place->json);
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value_by_name(type, name);
    if (value) {
        *slot = value->value;
        return NULL;
    }
    struct buffer problem AUTO(buffer_clear) = {0};
    buffer_print(&problem, "%s has no value", type->name);
    return fail_quoting(place, buffer_text(&problem), name);
}

static struct error *
copy_text(const struct place *place, const char *text, char **slot)
{
    size_t size = strlen(text);
    char *copy = allocate(place, size + 1);
    if (!copy)
        return fail_without_memory();
    memcpy(copy, text, size);
    *slot = copy;
    return NULL;
}

static struct error *
read_bytes(const struct place *place, ProtobufCBinaryData *slot)
{
    if (!json_is_string(place->json))
        return fail(place, "expected a string of base64");
    struct buffer bytes AUTO(buffer_clear) = {0};
    char *text AUTO(memory_cleanup) = memory_string(json_string_value(place->json));
    for (char *next = text; *next; next++)
        *next = *next == '-' ? '+' : *next == '_' ? '/' : *next;
    if (!base64_decode(text, strlen(text), &bytes))
        return fail(place, "this is not base64");
    slot->data = bytes.size ? allocate(place, bytes.size) : NULL;
    if (bytes.size && !slot->data)
        return fail_without_memory();
    slot->len = bytes.size;
    if (bytes.size)
        memcpy(slot->data, bytes.bytes, bytes.size);
    return NULL;
}

/* Empty, or NULL when the allocator has no more. */
static ProtobufCMessage *
new_message(const struct place *place, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = allocate(place, type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    return message;
}

static struct error *
read_new_message(const struct place *place, const ProtobufCMessageDescriptor *type,
                 ProtobufCMessage **slot)
{
    *slot = new_message(place, type);
    return *slot ? read_message(place, *slot) : fail_without_memory();
}

/* One value, not a list. `slot` has room for message_field_value_size. */
static struct error *
read_value(const struct place *place, const ProtobufCFieldDescriptor *field, void *slot)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(place, field->type, slot);
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)slot = json_is_true(place->json);
        return json_is_boolean(place->json) ? NULL : fail(place, "expected true or false");
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(place, field->descriptor, slot);
    case PROTOBUF_C_TYPE_STRING:
        return json_is_string(place->json) ? copy_text(place, json_string_value(place->json), slot)
                                           : fail(place, "expected a string");
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(place, slot);
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_new_message(place, field->descriptor, slot);
    default:
        return read_integer(place, field->type, slot);
    }
}

static struct error *
read_key(const struct place *place, const ProtobufCFieldDescriptor *field, void *slot)
{
    struct whole whole;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return copy_text(place, place->name, slot);
    if (field->type == PROTOBUF_C_TYPE_BOOL) {
        *(protobuf_c_boolean *)slot = !strcmp(place->name, "true");
        return *(protobuf_c_boolean *)slot || !strcmp(place->name, "false")
                   ? NULL
                   : fail(place, "expected the key \"true\" or \"false\"");
    }
    if (!whole_of_text(place->name, &whole))
        return fail(place, "expected a whole number as the key");
    return store_whole(place, &whole, field->type, slot);
}

/*
 * The array of a repeated field. It counts no elements yet: what is not counted is not freed one by
 * one.
 */
static struct error *
new_array(const struct place *place, ProtobufCMessage *message,
          const ProtobufCFieldDescriptor *field, size_t count)
{
    if (!count)
        return NULL;
    void *array = allocate(place, count * message_field_value_size(field->type));
    if (!array)
        return fail_without_memory();
    *(void **)message_field_value(message, field) = array;
    return NULL;
}

static struct error *
read_list(const struct place *place, ProtobufCMessage *message,
          const ProtobufCFieldDescriptor *field)
{
    if (!json_is_array(place->json))
        return fail(place, "expected a list");
    size_t *counted = message_field_quantifier(message, field);
    size_t count = json_array_size(place->json);
    struct error *error = new_array(place, message, field, count);
    for (size_t i = 0; !error && i < count; i++) {
        struct place element = place_of_element(place, i, json_array_get(place->json, i));
        char *array = *(char **)message_field_value(message, field);
        *counted = i + 1;
        error = read_value(&element, field, array + i * message_field_value_size(field->type));
    }
    return error;
}

static struct error *
read_entry(const struct place *place, const ProtobufCMessageDescriptor *type,
           ProtobufCMessage **slot)
{
    const ProtobufCFieldDescriptor *key = &type->fields[0], *value = &type->fields[1];
    *slot = new_message(place, type);
    if (!*slot)
        return fail_without_memory();
    struct error *error = read_key(place, key, message_field_value(*slot, key));
    return error ? error : read_value(place, value, message_field_value(*slot, value));
}

static struct error *
read_map(const struct place *place, ProtobufCMessage *message,
         const ProtobufCFieldDescriptor *field)
{
    if (!json_is_object(place->json))
        return fail(place, "expected an object");
    size_t *counted = message_field_quantifier(message, field);
    struct error *error = new_array(place, message, field, json_object_size(place->json));
    const char *key;
    json_t *json;
    json_object_foreach (place->json, key, json) {
        if (error)
            break;
        struct place entry = place_of_key(place, key, json);
        ProtobufCMessage **array = *(ProtobufCMessage ***)message_field_value(message, field);
        error = read_entry(&entry, field->descriptor, &array[(*counted)++]);
    }
    return error;
}

/* Notes that the field is chosen, unless another of its oneof is. */
static struct error *
choose_in_oneof(const struct place *place, ProtobufCMessage *message,
                const ProtobufCFieldDescriptor *field)
{
    uint32_t *chosen = message_field_quantifier(message, field);
    if (*chosen) {
        const ProtobufCFieldDescriptor *other =
            protobuf_c_message_descriptor_get_field(message->descriptor, *chosen);
        struct buffer name AUTO(buffer_clear) = {0};
        message_field_append_json_name(other, &name);
        return fail_quoting(place, "only one may be set, and there is also", buffer_text(&name));
    }
    *chosen = field->id;
    memset(message_field_value(message, field), 0, message_field_value_size(field->type));
    return NULL;
}

static struct error *
read_field(const struct place *place, ProtobufCMessage *message,
           const ProtobufCFieldDescriptor *field)
{
    if (json_is_null(place->json))
        return NULL;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return message_field_is_map(field) ? read_map(place, message, field)
                                           : read_list(place, message, field);
    if (message_field_is_in_oneof(field)) {
        struct error *error = choose_in_oneof(place, message, field);
        if (error)
            return error;
    } else if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset) {
        *(protobuf_c_boolean *)message_field_quantifier(message, field) = 1;
    }
    return read_value(place, field, message_field_value(message, field));
}

/* The same field under both of its names would be read twice. */
static struct error *
check_given_once(const struct place *place, const ProtobufCFieldDescriptor *field)
{
    struct buffer json_name AUTO(buffer_clear) = {0};
    message_field_append_json_name(field, &json_name);
    if (!strcmp(place->name, buffer_text(&json_name)) ||
        !json_object_get(place->outer->json, buffer_text(&json_name)))
        return NULL;
    return fail_quoting(place, "given twice, also as", buffer_text(&json_name));
}

static struct error *
read_member(const struct place *place, ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field = message_field_find(message->descriptor, place->name);
    if (!field) {
        struct buffer problem AUTO(buffer_clear) = {0};
        buffer_print(&problem, "%s has no field", message->descriptor->name);
        return fail_quoting(place->outer, buffer_text(&problem), place->name);
    }
    struct error *error = check_given_once(place, field);
    return error ? error : read_field(place, message, field);
}

static struct error *
read_object(const struct place *place, ProtobufCMessage *message)
{
    if (!json_is_object(place->json))
        return fail(place, "expected an object");
    const char *name;
    json_t *json;
    json_object_foreach (place->json, name, json) {
        struct place member = place_of_field(place, name, json);
        struct error *error = read_member(&member, message);
        if (error)
            return error;
    }
    return NULL;
}

static struct error *
read_time(const struct place *place, ProtobufCMessage *message, enum message_form form)
{
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    int64_t *seconds = message_field_value(message, &fields[0]);
    int32_t *nanos = message_field_value(message, &fields[1]);
    const char *text = json_string_value(place->json);
    if (form == MESSAGE_FORM_TIMESTAMP)
        return text && message_time_parse_timestamp(text, seconds, nanos)
                   ? NULL
                   : fail(place, "expected a time like \"2026-11-15T19:40:00Z\"");
    return text && message_time_parse_duration(text, seconds, nanos)
               ? NULL
               : fail(place, "expected a duration like \"1.5s\"");
}

static struct error *
read_message(const struct place *place, ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    enum message_form form = message_field_form_of(message->descriptor);
    if (place->depth > MESSAGE_JSON_MAX_DEPTH)
        return error_new(CODE_INVALID_ARGUMENT, "nested too deep, at most %d messages",
                         MESSAGE_JSON_MAX_DEPTH);
    if (form == MESSAGE_FORM_OBJECT)
        return read_object(place, message);
    if (form == MESSAGE_FORM_WRAPPER)
        return read_value(place, &fields[0], message_field_value(message, &fields[0]));
    return read_time(place, message, form);
}

/* jansson puts the text near the error behind its own words; that may be a secret and stays out. */
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
    struct place top = {.json = json, .allocator = allocator};
    error = read_new_message(&top, type, out);
    json_decref(json);
    if (error) {
        protobuf_c_message_free_unpacked(*out, allocator);
        *out = NULL;
    }
    return error;
}
