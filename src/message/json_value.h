/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON from a peer, as a tree of values. All functions accept values of the wrong type, and NULL,
 * so that lookups can be chained without checks.
 */
#ifndef MESSAGE_JSON_VALUE_H
#define MESSAGE_JSON_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct json_value;

/*
 * Parses a single value; only white space may follow it. Duplicate names in an object are refused.
 * The error, INVALID_ARGUMENT, does not quote the text.
 */
MUST_CHECK struct error *json_value_parse(const void *text, size_t size, struct json_value **out);

/* Frees the whole tree; only for results of json_value_parse. NULL is ignored. */
void json_value_free(struct json_value *root);

/* Returns NULL if it is not an object or has no such member. */
const struct json_value *json_value_member(const struct json_value *value, const char *name);

/* Calls `take` for each member, in the order in which they came; of an object only. */
void json_value_each(const struct json_value *value,
                     void (*take)(void *context, const char *name, const struct json_value *member),
                     void *context);

/* Returns 0 if it is not an array. */
size_t json_value_count(const struct json_value *value);
/* Returns NULL beyond the end. */
const struct json_value *json_value_item(const struct json_value *value, size_t index);

/* Returns NULL if it is not a string. */
const char *json_value_text(const struct json_value *value);
/* Returns false if it is not a 64-bit integer. */
bool json_value_number(const struct json_value *value, int64_t *out);
bool json_value_is_object(const struct json_value *value);
bool json_value_is_array(const struct json_value *value);
bool json_value_is_null(const struct json_value *value);
bool json_value_is_true(const struct json_value *value);
bool json_value_is_false(const struct json_value *value);

/* ---- changes ---- */

/* As json_value_member, of a tree that may be changed. */
struct json_value *json_value_child(struct json_value *value, const char *name);

/* Sets a member; no effect if it is not an object. The text must be UTF-8: false if it is not. */
bool json_value_set_text(struct json_value *object, const char *name, const char *text);
/* The same with a tree, which is taken over in any case. */
bool json_value_set(struct json_value *object, const char *name, struct json_value *value);
void json_value_remove(struct json_value *object, const char *name);

/* Appends the value in one line; members stay in the order in which they came. */
void json_value_print(const struct json_value *value, struct buffer *out);

/* For `struct json_value *v AUTO(json_value_cleanup) = NULL`. */
void json_value_cleanup(struct json_value **value);

#endif
