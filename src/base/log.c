/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines as text or JSON: see log.h. */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json.h"
#include "base/utf8.h"

#define LINE_LIMIT ((size_t)16 * 1024)
#define LINE_END_SIZE 2 /* "}\n" */
/* Kept free for each field still to come: its name, and a number or the start of a text. */
#define FIELD_RESERVE 64
#define CUT_MARK "\xe2\x80\xa6" /* U+2026, three dots */

enum style { STYLE_JSON, STYLE_MESSAGE, STYLE_VALUE };

static const struct {
    const char *name;
    const char *label;
} levels[] = {
    [LOG_DEBUG] = {"debug", "DEBUG"},
    [LOG_INFO] = {"info", "INFO "},
    [LOG_WARN] = {"warn", "WARN "},
    [LOG_ERROR] = {"error", "ERROR"},
};

struct error *
log_parse_level(const char *text, enum log_level *level)
{
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        if (!strcmp(text, levels[i].name)) {
            *level = (enum log_level)i;
            return NULL;
        }
    }
    return error_new(CODE_INVALID_ARGUMENT, "log level \"%.32s\": use debug, info, warn or error",
                     text);
}

/* Text as JSON has it; a line for people gets it without the quotes where nobody needs them. */
static void
append_text(struct buffer *line, enum style style, const char *text, size_t size)
{
    size_t start = line->size;
    json_append_string(line, text, size);
    bool is_escaped = line->size - start != size + 2;
    bool is_ambiguous = style == STYLE_VALUE && (!size || memchr(text, ' ', size));
    if (style == STYLE_JSON || is_escaped || is_ambiguous)
        return;
    memmove(line->bytes + start, line->bytes + start + 1, size);
    line->size -= 2;
}

/*
 * As much of the text as fits: what it costs is known only when it is escaped, hence the
 * repetition.
 */
static void
append_fitting(struct buffer *line, enum style style, const char *text, size_t room)
{
    size_t start = line->size;
    size_t size = strnlen(text, LINE_LIMIT + 1);
    size_t kept = size;
    append_text(line, style, text, size);
    while (line->size - start > room && kept) {
        size_t wanted = kept * room / (line->size - start);
        kept = utf8_cut(text, size, wanted < kept ? wanted : kept - 1);
        struct buffer cut AUTO(buffer_clear) = {0};
        buffer_append(&cut, text, kept);
        buffer_append_text(&cut, CUT_MARK);
        line->size = start;
        append_text(line, style, (const char *)cut.bytes, cut.size);
    }
}

/* The bytes that a text may take now if `fields` more fields are to come. */
static size_t
room_before(const struct buffer *line, size_t fields)
{
    size_t taken = line->size + LINE_END_SIZE + fields * FIELD_RESERVE;
    return taken < LINE_LIMIT ? LINE_LIMIT - taken : 0;
}

static void
append_start(struct buffer *line, bool json, enum log_level level, const char *message,
             size_t fields)
{
    struct timespec now;
    struct tm parts;
    char seconds[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    int milliseconds = (int)(now.tv_nsec / 1000000);
    if (json)
        buffer_print(line, "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"message\":", seconds,
                     milliseconds, levels[level].name);
    else
        buffer_print(line, "%s.%03dZ %s ", seconds, milliseconds, levels[level].label);
    append_fitting(line, json ? STYLE_JSON : STYLE_MESSAGE, message, room_before(line, fields));
}

/* A field for which there is no room at all is left out, so that the line stays whole. */
static void
append_field(struct buffer *line, bool json, const struct log_field *field, size_t later_fields)
{
    size_t start = line->size;
    if (json) {
        buffer_append_byte(line, ',');
        json_append_string(line, field->name, strlen(field->name));
        buffer_append_byte(line, ':');
    } else {
        buffer_print(line, " %s=", field->name);
    }
    if (field->text)
        append_fitting(line, json ? STYLE_JSON : STYLE_VALUE, field->text,
                       room_before(line, later_fields));
    else
        buffer_print(line, "%" PRId64, field->number);
    if (line->size + LINE_END_SIZE > LINE_LIMIT)
        line->size = start;
}

static void
write_line(int fd, const struct buffer *line)
{
    ssize_t written;
    do {
        written = write(fd, line->bytes, line->size);
    } while (written < 0 && errno == EINTR);
}

void
log_write(const struct log *log, enum log_level level, const char *message,
          const struct log_field *fields, size_t count)
{
    struct buffer line AUTO(buffer_clear) = {0};
    int saved_errno = errno;
    append_start(&line, log->json, level, message, count);
    for (size_t i = 0; i < count; i++)
        append_field(&line, log->json, &fields[i], count - i - 1);
    buffer_append_text(&line, log->json ? "}\n" : "\n");
    write_line(log->fd, &line);
    errno = saved_errno;
}
