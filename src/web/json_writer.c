/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON: see json_writer.h. */
#include "web/json_writer.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "message/message_map.h"

static void
begin_value(struct json_writer *writer, const char *name)
{
    if (writer->needs_comma)
        buffer_append_byte(writer->out, ',');
    writer->needs_comma = true;
    if (name) {
        json_append_string(writer->out, name, strlen(name));
        buffer_append_byte(writer->out, ':');
    }
}

void
json_writer_begin(struct json_writer *writer, const char *name, char bracket)
{
    begin_value(writer, name);
    buffer_append_byte(writer->out, (uint8_t)bracket);
    writer->needs_comma = false;
}

void
json_writer_end(struct json_writer *writer, char bracket)
{
    buffer_append_byte(writer->out, (uint8_t)bracket);
    writer->needs_comma = true;
}

void
json_writer_text(struct json_writer *writer, const char *name, const char *text)
{
    begin_value(writer, name);
    json_append_string(writer->out, text ? text : "", text ? strlen(text) : 0);
}

void
json_writer_number(struct json_writer *writer, const char *name, int64_t number)
{
    begin_value(writer, name);
    buffer_print(writer->out, "%" PRId64, number);
}

void
json_writer_bool(struct json_writer *writer, const char *name, bool value)
{
    begin_value(writer, name);
    buffer_append_text(writer->out, value ? "true" : "false");
}

void
json_writer_null(struct json_writer *writer, const char *name)
{
    begin_value(writer, name);
    buffer_append_text(writer->out, "null");
}

void
json_writer_time(struct json_writer *writer, const char *name,
                 const Google__Protobuf__Timestamp *time)
{
    const int64_t most = INT64_MAX / 1000 - 1;
    if (time && time->seconds >= 0 && time->seconds < most)
        json_writer_number(writer, name, time->seconds * 1000 + time->nanos / 1000000);
    else
        json_writer_null(writer, name);
}

void
json_writer_map(struct json_writer *writer, const char *name, const void *entries, size_t count)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct text_map map = message_map_read(entries, count, &arena);
    json_writer_begin(writer, name, '{');
    for (size_t i = 0; i < map.count; i++)
        json_writer_text(writer, map.pairs[i].key, map.pairs[i].value);
    json_writer_end(writer, '}');
}
