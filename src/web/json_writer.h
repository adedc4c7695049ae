/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON member by member. In an array, and at the top, the name is NULL. */
#ifndef WEB_JSON_WRITER_H
#define WEB_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "google/protobuf/timestamp.pb-c.h"

struct json_writer {
    struct buffer *out;
    bool needs_comma;
};

/* `bracket` is '{' or '['. */
void json_writer_begin(struct json_writer *writer, const char *name, char bracket);
/* '}' or ']'. */
void json_writer_end(struct json_writer *writer, char bracket);

/* NULL is written as "". */
void json_writer_text(struct json_writer *writer, const char *name, const char *text);
void json_writer_number(struct json_writer *writer, const char *name, int64_t number);
void json_writer_bool(struct json_writer *writer, const char *name, bool value);
void json_writer_null(struct json_writer *writer, const char *name);
/* Unix milliseconds; NULL is written as null. */
void json_writer_time(struct json_writer *writer, const char *name,
                      const Google__Protobuf__Timestamp *time);
/* A field of type map<string, string>, and its count. */
void json_writer_map(struct json_writer *writer, const char *name, const void *entries,
                     size_t count);

#endif
