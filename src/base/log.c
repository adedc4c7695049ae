/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines as text or JSON: see log.h. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/utf8.h"

#define LINE_LIMIT ((size_t)16 * 1024)
#define LINE_END_SIZE 2 /* "}\n" */
/* Kept free for each remaining field: its name, and a number or the start of a text. */
#define FIELD_RESERVE 64
#define BATCH_LIMIT ((size_t)32 * 1024) /* a larger batch is written at once */
#define CUT_MARK "\xe2\x80\xa6"         /* U+2026, an ellipsis */

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

/* Escapes the text as in JSON; a line for people has quotes only where they are needed. */
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
 * Appends as much of the text as fits. The size is known only after escaping, hence the repetition.
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

/* The bytes that a text may take now if `fields` more fields follow. */
static size_t
room_before(const struct buffer *line, size_t fields)
{
    size_t taken = line->size + LINE_END_SIZE + fields * FIELD_RESERVE;
    return taken < LINE_LIMIT ? LINE_LIMIT - taken : 0;
}

static void
print_second(int64_t second, struct log_second *out)
{
    struct tm parts;
    time_t time = second;
    if (out->second == second && out->text[0])
        return;
    gmtime_r(&time, &parts);
    strftime(out->text, sizeof out->text, "%Y-%m-%dT%H:%M:%S", &parts);
    out->second = second;
}

/* 2026-11-15T19:40:00.123Z; a host of go-plugin takes only six decimals for a time. */
static void
append_time(struct buffer *line, const struct log *log, struct log_second *second)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    print_second(now.tv_sec, second);
    unsigned milliseconds = (unsigned)(now.tv_nsec / 1000000);
    const char rest[] = {'.', (char)('0' + milliseconds / 100),
                         (char)('0' + milliseconds / 10 % 10), (char)('0' + milliseconds % 10)};
    buffer_append_text(line, second->text);
    buffer_append(line, rest, sizeof rest);
    buffer_append_text(line, log->hclog ? "000Z" : "Z");
}

static void
append_start(struct buffer *line, const struct log *log, enum log_level level, const char *message,
             size_t fields, struct log_second *second)
{
    bool json = log->json;
    buffer_append_text(line, log->hclog ? "{\"@timestamp\":\"" : json ? "{\"time\":\"" : "");
    append_time(line, log, second);
    buffer_append_text(line, log->hclog ? "\",\"@level\":\"" : json ? "\",\"level\":\"" : " ");
    buffer_append_text(line, json ? levels[level].name : levels[level].label);
    buffer_append_text(line, log->hclog ? "\",\"@message\":" : json ? "\",\"message\":" : " ");
    append_fitting(line, json ? STYLE_JSON : STYLE_MESSAGE, message, room_before(line, fields));
}

static void
append_number(struct buffer *line, int64_t number)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (number < 0)
        digits[--at] = '-';
    buffer_append(line, digits + at, sizeof digits - at);
}

/* Leaves out a field for which there is no room at all, so that the line stays complete. */
static void
append_field(struct buffer *line, bool json, const struct log_field *field, size_t later_fields)
{
    size_t start = line->size;
    if (json) {
        buffer_append_byte(line, ',');
        json_append_string(line, field->name, strlen(field->name));
        buffer_append_byte(line, ':');
    } else {
        buffer_append_byte(line, ' ');
        buffer_append_text(line, field->name);
        buffer_append_byte(line, '=');
    }
    if (field->text)
        append_fitting(line, json ? STYLE_JSON : STYLE_VALUE, field->text,
                       room_before(line, later_fields));
    else
        append_number(line, field->number);
    if (line->size + LINE_END_SIZE > LINE_LIMIT)
        line->size = start;
}

/* Replaces the contents of `line`. */
static void
make_line(struct buffer *line, const struct log *log, enum log_level level, const char *message,
          const struct log_field *fields, size_t count, struct log_second *second)
{
    line->size = 0;
    append_start(line, log, level, message, count, second);
    for (size_t i = 0; i < count; i++)
        append_field(line, log->json, &fields[i], count - i - 1);
    buffer_append_text(line, log->json ? "}\n" : "\n");
}

/* ---- writing ---- */

static ssize_t
write_bytes(const struct log *log, const struct buffer *lines)
{
    ssize_t written;
    do {
        written = log->losses && log->losses->is_socket
                      ? send(log->fd, lines->bytes, lines->size, MSG_DONTWAIT | MSG_NOSIGNAL)
                      : write(log->fd, lines->bytes, lines->size);
    } while (written < 0 && errno == EINTR);
    return written;
}

static size_t
count_lines(const uint8_t *bytes, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += bytes[i] == '\n';
    return count;
}

/*
 * Counts the lines that were not written because the reader is too slow. A line that was written in
 * part is not counted.
 */
static size_t
note_losses(const struct log *log, const struct buffer *lines, size_t taken)
{
    bool is_torn = taken && lines->bytes[taken - 1] != '\n';
    if (is_torn)
        atomic_store(&log->losses->is_torn, true);
    return count_lines(lines->bytes + taken, lines->size - taken) - is_torn;
}

static void
append_line_about_losses(struct buffer *out, const struct log *log, size_t lost)
{
    struct buffer line AUTO(buffer_clear) = {0};
    struct log_second second = {0};
    const struct log_field number = LOG_NUMBER("lines", lost);
    make_line(&line, log, LOG_WARN, "lines of the log were lost: they were not read in time",
              &number, 1, &second);
    buffer_append(out, line.bytes, line.size);
}

/*
 * First writes, if necessary, the end of a line that was written in part, and a line about lost
 * ones.
 */
static void
write_lines_or_lose_them(const struct log *log, const struct buffer *lines)
{
    struct log_losses *losses = log->losses;
    struct buffer all AUTO(buffer_clear) = {0};
    bool was_torn = atomic_exchange(&losses->is_torn, false);
    size_t lost = atomic_exchange(&losses->lines, 0);
    if (was_torn)
        buffer_append_byte(&all, '\n');
    if (lost)
        append_line_about_losses(&all, log, lost);
    buffer_append(&all, lines->bytes, lines->size);
    ssize_t written = write_bytes(log, &all);
    if (written < 0) {
        atomic_store(&losses->is_torn, was_torn);
        if (errno == EAGAIN)
            atomic_fetch_add(&losses->lines, lost + count_lines(lines->bytes, lines->size));
    } else if ((size_t)written < all.size) {
        atomic_fetch_add(&losses->lines, note_losses(log, &all, (size_t)written));
    }
}

static void
write_lines(const struct log *log, const struct buffer *lines)
{
    if (log->losses)
        write_lines_or_lose_them(log, lines);
    else
        write_bytes(log, lines);
}

/* ---- batches ---- */

/* The lock is held. */
static void
write_batch(const struct log *log)
{
    struct log_batch *batch = log->batch;
    if (batch->lines.size)
        write_lines(log, &batch->lines);
    batch->lines.size = 0;
    atomic_store_explicit(&batch->is_empty, true, memory_order_relaxed);
}

static void
write_with_batch(const struct log *log, enum log_level level, const char *message,
                 const struct log_field *fields, size_t count, bool later)
{
    struct log_batch *batch = log->batch;
    pthread_mutex_lock(&batch->lock);
    make_line(&batch->line, log, level, message, fields, count, &batch->second);
    buffer_append(&batch->lines, batch->line.bytes, batch->line.size);
    if (later && batch->lines.size < BATCH_LIMIT)
        atomic_store_explicit(&batch->is_empty, false, memory_order_relaxed);
    else
        write_batch(log);
    pthread_mutex_unlock(&batch->lock);
}

static void
write_alone(const struct log *log, enum log_level level, const char *message,
            const struct log_field *fields, size_t count)
{
    struct buffer line AUTO(buffer_clear) = {0};
    struct log_second second = {0};
    make_line(&line, log, level, message, fields, count, &second);
    write_lines(log, &line);
}

static void
write_one(const struct log *log, enum log_level level, const char *message,
          const struct log_field *fields, size_t count, bool later)
{
    int saved_errno = errno;
    if (log->batch)
        write_with_batch(log, level, message, fields, count, later);
    else
        write_alone(log, level, message, fields, count);
    errno = saved_errno;
}

void
log_write(const struct log *log, enum log_level level, const char *message,
          const struct log_field *fields, size_t count)
{
    write_one(log, level, message, fields, count, false);
}

void
log_write_later(const struct log *log, enum log_level level, const char *message,
                const struct log_field *fields, size_t count)
{
    write_one(log, level, message, fields, count, level < LOG_WARN);
}

void
log_flush(const struct log *log)
{
    int saved_errno = errno;
    if (!log->batch || atomic_load_explicit(&log->batch->is_empty, memory_order_relaxed))
        return;
    pthread_mutex_lock(&log->batch->lock);
    write_batch(log);
    pthread_mutex_unlock(&log->batch->lock);
    errno = saved_errno;
}

void
log_collect(struct log *log, struct log_batch *batch)
{
    *batch = (struct log_batch){.is_empty = true};
    pthread_mutex_init(&batch->lock, NULL);
    log->batch = batch;
}

void
log_end_batch(struct log *log)
{
    if (!log->batch)
        return;
    log_flush(log);
    pthread_mutex_destroy(&log->batch->lock);
    buffer_clear(&log->batch->lines);
    buffer_clear(&log->batch->line);
    log->batch = NULL;
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
            return; /* not allowed: then writes wait as before */
        log->fd = fd;
    }
    log->losses = losses;
}
