/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as a tree: see json_value.h. A struct json_value is a json_t under another name. */
#include "message/json_value.h"

#include <jansson.h>

static const json_t *
of(const struct json_value *value)
{
    return (const json_t *)value;
}

struct error *
json_value_parse(const void *text, size_t size, struct json_value **out)
{
    json_error_t why;
    *out =
        (struct json_value *)json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (*out)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "not valid JSON at line %d, column %d", why.line,
                     why.column);
}

void
json_value_free(struct json_value *root)
{
    json_decref((json_t *)root);
}

const struct json_value *
json_value_member(const struct json_value *value, const char *name)
{
    return (const struct json_value *)json_object_get(of(value), name);
}

void
json_value_each(const struct json_value *value,
                void (*take)(void *context, const char *name, const struct json_value *member),
                void *context)
{
    json_t *object = (json_t *)value;
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
        take(context, json_object_iter_key(at),
             (const struct json_value *)json_object_iter_value(at));
}

size_t
json_value_count(const struct json_value *value)
{
    return json_array_size(of(value));
}

const struct json_value *
json_value_item(const struct json_value *value, size_t index)
{
    return (const struct json_value *)json_array_get(of(value), index);
}

const char *
json_value_text(const struct json_value *value)
{
    return json_string_value(of(value));
}

bool
json_value_number(const struct json_value *value, int64_t *out)
{
    if (!json_is_integer(of(value)))
        return false;
    *out = json_integer_value(of(value));
    return true;
}

bool
json_value_is_object(const struct json_value *value)
{
    return json_is_object(of(value));
}

bool
json_value_is_array(const struct json_value *value)
{
    return json_is_array(of(value));
}

bool
json_value_is_null(const struct json_value *value)
{
    return json_is_null(of(value));
}

bool
json_value_is_true(const struct json_value *value)
{
    return json_is_true(of(value));
}

bool
json_value_is_false(const struct json_value *value)
{
    return json_is_false(of(value));
}

/* ---- changes ---- */

struct json_value *
json_value_child(struct json_value *value, const char *name)
{
    return (struct json_value *)json_object_get(of(value), name);
}

bool
json_value_set_text(struct json_value *object, const char *name, const char *text)
{
    return json_object_set_new((json_t *)object, name, json_string(text)) == 0;
}

bool
json_value_set(struct json_value *object, const char *name, struct json_value *value)
{
    return json_object_set_new((json_t *)object, name, (json_t *)value) == 0;
}

void
json_value_remove(struct json_value *object, const char *name)
{
    json_object_del((json_t *)object, name);
}

static int
append_piece(const char *bytes, size_t size, void *out)
{
    buffer_append(out, bytes, size);
    return 0;
}

void
json_value_print(const struct json_value *value, struct buffer *out)
{
    json_dump_callback(of(value), append_piece, out, JSON_COMPACT | JSON_ENCODE_ANY);
}

void
json_value_cleanup(struct json_value **value)
{
    json_value_free(*value);
}
