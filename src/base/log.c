/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines as text or JSON: see log.h. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

static ssize_t
write_bytes(const struct log *log, const struct buffer *line)
{
    ssize_t written;
    do {
        written = log->losses && log->losses->is_socket
                      ? send(log->fd, line->bytes, line->size, MSG_DONTWAIT | MSG_NOSIGNAL)
                      : write(log->fd, line->bytes, line->size);
    } while (written < 0 && errno == EINTR);
    return written;
}

/* False: nobody has read enough of what came before. */
static bool
write_line(const struct log *log, enum log_level level, const char *message,
           const struct log_field *fields, size_t count)
{
    struct buffer line AUTO(buffer_clear) = {0};
    bool after_torn = log->losses && atomic_exchange(&log->losses->is_torn, false);
    if (after_torn)
        buffer_append_byte(&line, '\n');
    append_start(&line, log->json, level, message, count);
    for (size_t i = 0; i < count; i++)
        append_field(&line, log->json, &fields[i], count - i - 1);
    buffer_append_text(&line, log->json ? "}\n" : "\n");
    ssize_t written = write_bytes(log, &line);
    if (log->losses && (written < 0 ? after_torn : (size_t)written < line.size))
        atomic_store(&log->losses->is_torn, true);
    return written >= 0 || errno != EAGAIN;
}

/* With a line about those that were lost before it. */
static void
write_line_or_lose_it(const struct log *log, enum log_level level, const char *message,
                      const struct log_field *fields, size_t count)
{
    size_t lost = atomic_exchange(&log->losses->lines, 0);
    const struct log_field lines = LOG_NUMBER("lines", lost);
    if (lost && !write_line(log, LOG_WARN, "lines of the log were lost: they were not read in time",
                            &lines, 1))
        lost++;
    else
        lost = write_line(log, level, message, fields, count) ? 0 : 1;
    atomic_fetch_add(&log->losses->lines, lost);
}

void
log_write(const struct log *log, enum log_level level, const char *message,
          const struct log_field *fields, size_t count)
{
    int saved_errno = errno;
    if (log->losses)
        write_line_or_lose_it(log, level, message, fields, count);
    else
        write_line(log, level, message, fields, count);
    errno = saved_errno;
}

void
log_never_wait(struct log *log, struct log_losses *losses)
{
    struct stat status;
    char path[32];
    if (fstat(log->fd, &status) != 0)
        return;
    *losses = (struct log_losses){.is_socket = S_ISSOCK(status.st_mode)};
    if (S_ISFIFO(status.st_mode) || isatty(log->fd)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", log->fd);
        int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
            return; /* not ours to open: then it waits as before */
        log->fd = fd;
    }
    log->losses = losses;
}
