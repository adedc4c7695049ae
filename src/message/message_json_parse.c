/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing messages from JSON: see message_json.h.
 *
 * jansson parses the text into a tree, which is then walked in parallel with the descriptors. From
 * its allocation on, every message is reachable from the top one and in a state that protobuf-c can
 * free. So error paths need no cleanup except for one call at the top.
 */
#include <string.h>

#include "base/buffer.h"
#include "message/message_field.h"
#include "message/message_json.h"
#include "message/message_json_scalar.h"
#include "message/message_time.h"

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

/* Returns an empty message, or NULL if the allocator has no memory. */
static ProtobufCMessage *
new_message(const struct location *location, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = location_allocate(location, type->sizeof_message);
    if (message)
        protobuf_c_message_init(type, message);
    return message;
}

static struct error *
read_new_message(const struct location *location, const ProtobufCMessageDescriptor *type,
                 ProtobufCMessage **slot)
{
    *slot = new_message(location, type);
    return *slot ? read_message(location, *slot) : location_out_of_memory();
}

/* `slot` has room for message_field_value_size. */
static struct error *
read_value(const struct location *location, const ProtobufCFieldDescriptor *field, void *slot)
{
    return field->type == PROTOBUF_C_TYPE_MESSAGE
               ? read_new_message(location, field->descriptor, slot)
               : message_json_read_scalar(location, field, slot);
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
    void *array = location_allocate(location, count * message_field_value_size(field->type));
    if (!array)
        return location_out_of_memory();
    *(void **)message_field_value(message, field) = array;
    return NULL;
}

static struct error *
read_list(const struct location *location, ProtobufCMessage *message,
          const ProtobufCFieldDescriptor *field)
{
    if (!json_is_array(location->json))
        return location_fail(location, "expected a list");
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
        return location_out_of_memory();
    struct error *error = message_json_read_key(location, key, message_field_value(*slot, key));
    return error ? error : read_value(location, value, message_field_value(*slot, value));
}

static struct error *
read_map(const struct location *location, ProtobufCMessage *message,
         const ProtobufCFieldDescriptor *field)
{
    if (!json_is_object(location->json))
        return location_fail(location, "expected an object");
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
        return location_fail_quoting(location, "only one may be set, and there is also",
                                     buffer_text(&name));
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
    return location_fail_quoting(location, "given twice, also as", buffer_text(&json_name));
}

static struct error *
read_member(const struct location *location, ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *field = message_field_find(message->descriptor, location->name);
    if (!field) {
        struct buffer problem AUTO(buffer_clear) = {0};
        buffer_print(&problem, "%s has no field", message->descriptor->name);
        return location_fail_quoting(location->outer, buffer_text(&problem), location->name);
    }
    struct error *error = check_duplicate(location, field);
    return error ? error : read_field(location, message, field);
}

static struct error *
read_object(const struct location *location, ProtobufCMessage *message)
{
    if (!json_is_object(location->json))
        return location_fail(location, "expected an object");
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
                   : location_fail(location, "expected a time like \"2026-11-15T19:40:00Z\"");
    return text && message_time_parse_duration(text, seconds, nanos)
               ? NULL
               : location_fail(location, "expected a duration like \"1.5s\"");
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
