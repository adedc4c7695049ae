/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON of a peer as a tree of values. Nothing of it is trusted: every question has an answer for values of the wrong kind, and for
 * NULL, so that questions can be put one behind the other.
 */
#ifndef MESSAGE_JSON_VALUE_H
#define MESSAGE_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct json_value;

/* One value and nothing behind it but space. INVALID_ARGUMENT does not quote it. Names that come twice in an object are refused. */
MUST_CHECK struct error *json_value_parse(const void *text, size_t size, struct json_value **out);

/* The whole tree; only of what json_value_parse gave. NULL is fine. */
void json_value_free(struct json_value *root);

/* NULL: it is no object, or has no such member. */
const struct json_value *json_value_member(const struct json_value *value, const char *name);

/* 0 of what is no array. */
size_t json_value_count(const struct json_value *value);
/* NULL beyond the end. */
const struct json_value *json_value_item(const struct json_value *value, size_t index);

/* NULL: it is no string. */
const char *json_value_text(const struct json_value *value);
/* False: it is no whole number of 64 bits. */
bool json_value_number(const struct json_value *value, int64_t *out);
bool json_value_is_array(const struct json_value *value);
bool json_value_is_null(const struct json_value *value);
bool json_value_is_true(const struct json_value *value);
bool json_value_is_false(const struct json_value *value);

#endif
