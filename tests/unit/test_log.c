/* SPDX-License-Identifier: Apache-2.0 */
/*
 * src/base/log.c: what stands in the lines, read back from a socket that keeps each write(2) apart.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define LINE_LIMIT (16 * 1024)
#define TIME_SIZE 24 /* 2026-11-15T19:40:00.123Z */

struct capture {
    struct log log;
    int reader;
    char line[4 * LINE_LIMIT];
};

static void
capture_open(struct capture *capture, bool json)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends))
        abort();
    capture->log = (struct log){.level = LOG_DEBUG, .json = json, .fd = ends[0]};
    capture->reader = ends[1];
}

static void
capture_close(struct capture *capture)
{
    close(capture->log.fd);
    close(capture->reader);
}

/* The next write, which is one line: without its newline, or NULL if there was none. */
static char *
capture_read(struct capture *capture)
{
    ssize_t size = recv(capture->reader, capture->line, sizeof capture->line - 1, 0);
    if (size <= 0)
        return NULL;
    capture->line[size] = '\0';
    CHECK(strchr(capture->line, '\n') == capture->line + size - 1);
    CHECK(size <= LINE_LIMIT);
    capture->line[size - 1] = '\0';
    return capture->line;
}

static const char *
capture_read_after_time(struct capture *capture)
{
    const char *line = capture_read(capture);
    CHECK(line && strlen(line) > TIME_SIZE);
    return line && strlen(line) > TIME_SIZE ? line + TIME_SIZE : "";
}

static json_t *
capture_read_json(struct capture *capture)
{
    const char *line = capture_read(capture);
    json_t *json = line ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;
    CHECK(json);
    return json;
}

static const char *
text_of(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

static void
a_line_starts_with_the_time_in_utc(void)
{
    struct capture capture;
    capture_open(&capture, false);
    time_t before = time(NULL);
    log_info(&capture.log, "ready");
    const char *line = capture_read(&capture);
    struct tm parts = {0};
    int milliseconds = -1, end = 0;
    CHECK(line && sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ INFO  ready%n", &parts.tm_year,
                         &parts.tm_mon, &parts.tm_mday, &parts.tm_hour, &parts.tm_min,
                         &parts.tm_sec, &milliseconds, &end) == 7);
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    time_t printed = timegm(&parts);
    /* Not time(NULL): that is a tick behind the clock, and at the end of a second a second. */
    struct timespec after;
    clock_gettime(CLOCK_REALTIME, &after);
    CHECK(printed >= before && printed <= after.tv_sec);
    CHECK(milliseconds >= 0 && milliseconds <= 999);
    CHECK_NUMBER(end, TIME_SIZE + strlen(" INFO  ready"));
    capture_close(&capture);
}

static void
fields_follow_the_message(void)
{
    struct capture capture;
    capture_open(&capture, false);
    log_warn(&capture.log, "it is listening", LOG_TEXT("address", "unix:/x"),
             LOG_NUMBER("connections", 3), LOG_NUMBER("least", INT64_MIN));
    CHECK_TEXT(capture_read_after_time(&capture),
               " WARN  it is listening address=unix:/x connections=3 least=-9223372036854775808");
    log_error(&capture.log, "x");
    CHECK_TEXT(capture_read_after_time(&capture), " ERROR x");
    log_debug(&capture.log, "x");
    CHECK_TEXT(capture_read_after_time(&capture), " DEBUG x");
    capture_close(&capture);
}

static void
values_are_quoted_where_needed(void)
{
    struct capture capture;
    capture_open(&capture, false);
    log_info(&capture.log, "m", LOG_TEXT("a", ""), LOG_TEXT("b", NULL), LOG_TEXT("c", "x y"),
             LOG_TEXT("d", "say \"hi\"\n"), LOG_TEXT("e", "k=v"), LOG_TEXT("f", "caf\xc3\xa9"),
             LOG_TEXT("g", "\x1b[31m"), LOG_TEXT("h", "\xff"));
    CHECK_TEXT(capture_read_after_time(&capture),
               " INFO  m a=\"\" b=\"\" c=\"x y\" d=\"say \\\"hi\\\"\\n\" e=k=v f=caf\xc3\xa9 "
               "g=\"\\u001b[31m\" h=\"\xef\xbf\xbd\"");
    log_info(&capture.log, "two\nlines");
    CHECK_TEXT(capture_read_after_time(&capture), " INFO  \"two\\nlines\"");
    capture_close(&capture);
}

/* As hosts of go-plugin read it: other names, and a time with six decimals. */
static void
hclog_has_names_of_its_own(void)
{
    struct capture capture;
    capture_open(&capture, true);
    capture.log.hclog = true;
    log_warn(&capture.log, "careful", LOG_NUMBER("code", 7));
    json_t *json = capture_read_json(&capture);
    CHECK_NUMBER(json_object_size(json), 4);
    CHECK_TEXT(text_of(json, "@level"), "warn");
    CHECK_TEXT(text_of(json, "@message"), "careful");
    const char *time = text_of(json, "@timestamp");
    CHECK_NUMBER(strlen(time), strlen("2026-11-15T19:40:00.123000Z"));
    CHECK_TEXT(time + strlen(time) - 4, "000Z");
    json_decref(json);
    capture_close(&capture);
}

static void
json_has_texts_and_numbers(void)
{
    struct capture capture;
    capture_open(&capture, true);
    log_error(&capture.log, "it \"broke\"", LOG_TEXT("path", "a\tb\xff"), LOG_NUMBER("code", -2),
              LOG_TEXT("empty", ""));
    json_t *json = capture_read_json(&capture);
    CHECK_NUMBER(json_object_size(json), 6);
    CHECK_TEXT(text_of(json, "level"), "error");
    CHECK_TEXT(text_of(json, "message"), "it \"broke\"");
    CHECK_TEXT(text_of(json, "path"), "a\tb\xef\xbf\xbd");
    CHECK_TEXT(text_of(json, "empty"), "");
    CHECK(json_is_integer(json_object_get(json, "code")));
    CHECK_NUMBER(json_integer_value(json_object_get(json, "code")), -2);
    CHECK_NUMBER(strlen(text_of(json, "time")), TIME_SIZE);
    json_decref(json);
    capture_close(&capture);
}

static void
lines_below_the_level_are_dropped(void)
{
    struct capture capture;
    capture_open(&capture, false);
    capture.log.level = LOG_WARN;
    log_debug(&capture.log, "x");
    log_info(&capture.log, "x");
    CHECK(!capture_read(&capture));
    log_warn(&capture.log, "x");
    CHECK(capture_read(&capture));
    capture_close(&capture);
}

/* A text of `size` bytes made of copies of `unit`. The caller frees it. */
static char *
repeat(const char *unit, size_t size)
{
    char *text = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        text[i] = unit[i % strlen(unit)];
    text[size] = '\0';
    return text;
}

static bool
ends_with(const char *text, const char *end)
{
    return text && strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

/* The message's length moves the place of the cut. */
static void
check_long_value(const char *message, const char *unit)
{
    struct capture capture;
    char *value = repeat(unit, 100000 / strlen(unit) * strlen(unit));
    capture_open(&capture, true);
    log_info(&capture.log, message, LOG_TEXT("value", value), LOG_NUMBER("code", 5),
             LOG_TEXT("last", "here"));
    json_t *json = capture_read_json(&capture);
    const char *cut = text_of(json, "value");
    CHECK(ends_with(cut, "\xe2\x80\xa6"));
    size_t kept = cut ? strlen(cut) - 3 : 0;
    CHECK_NUMBER(kept % strlen(unit), 0);
    CHECK(!strncmp(cut, value, kept));
    CHECK(kept > LINE_LIMIT / 7); /* an escape has six bytes for one */
    CHECK_NUMBER(json_integer_value(json_object_get(json, "code")), 5);
    CHECK_TEXT(text_of(json, "last"), "here");
    json_decref(json);
    capture.log.json = false;
    log_info(&capture.log, message, LOG_TEXT("value", value), LOG_NUMBER("code", 5));
    CHECK(ends_with(capture_read(&capture), " code=5"));
    capture_close(&capture);
    free(value);
}

static void
a_long_value_is_cut_and_marked(void)
{
    static const char *const units[] = {"v", "\x01", "\xc3\xa9", "\xf0\x9f\x9a\x80"};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        check_long_value("m", units[i]);
        check_long_value("me", units[i]);
        check_long_value("mes", units[i]);
        check_long_value("mess", units[i]);
    }
}

static void
a_long_message_is_cut_and_marked(void)
{
    struct capture capture;
    char *message = repeat("m", 20000);
    capture_open(&capture, true);
    log_write(&capture.log, LOG_INFO, message, NULL, 0);
    json_t *json = capture_read_json(&capture);
    CHECK(ends_with(text_of(json, "message"), "m\xe2\x80\xa6"));
    json_decref(json);
    capture_close(&capture);
    free(message);
}

static void
a_value_that_just_fits_is_not_cut(void)
{
    struct capture capture;
    capture_open(&capture, false);
    for (size_t size = LINE_LIMIT - 50; size < LINE_LIMIT - 30; size++) {
        char *value = repeat("v", size);
        log_info(&capture.log, "m", LOG_TEXT("v", value));
        const char *line = capture_read(&capture);
        /* One byte of the limit is kept for JSON's closing brace. */
        bool fits = TIME_SIZE + strlen(" INFO  m v=") + size + 2 <= LINE_LIMIT;
        CHECK(ends_with(line, fits ? "v" : "\xe2\x80\xa6"));
        free(value);
    }
    capture_close(&capture);
}

static void
many_fields_leave_a_whole_line(void)
{
    struct capture capture;
    struct log_field fields[1000];
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        fields[i] = i % 2 ? LOG_NUMBER("a_number", i) : LOG_TEXT("a_text", "some words of text");
    capture_open(&capture, true);
    log_write(&capture.log, LOG_INFO, "m", fields, COUNT_OF(fields));
    const char *line = capture_read(&capture);
    json_t *json = line ? json_loads(line, 0, NULL) : NULL; /* names come twice here */
    CHECK(json_is_object(json));
    json_decref(json);
    capture_close(&capture);
}

static void
a_descriptor_that_fails_is_ignored(void)
{
    struct log log = {.level = LOG_DEBUG, .fd = -1};
    errno = ENOENT;
    log_info(&log, "nobody hears this");
    CHECK_NUMBER(errno, ENOENT);
}

/* Writes lines until the pipe or socket takes no more, and some beyond; tells how many are lost. */
static size_t
overfill(const struct log *log)
{
    for (int i = 0; i < 100000 && !atomic_load(&log->losses->lines); i++)
        log_info(log, "a line", LOG_NUMBER("number", i));
    for (int i = 0; i < 9; i++)
        log_info(log, "a line too much");
    return atomic_load(&log->losses->lines);
}

/* Empties it; every line must be whole. */
static size_t
read_all_lines(int fd)
{
    static char text[1 << 20];
    size_t size = 0, lines = 0;
    ssize_t got;
    while ((got = read(fd, text + size, sizeof text - size - 1)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    CHECK(size == 0 || text[size - 1] == '\n');
    for (const char *end = text; (end = strchr(end, '\n')); end++)
        lines++;
    return lines;
}

static void
check_never_waits(int reader, int writer)
{
    struct log log = {.level = LOG_INFO, .fd = writer};
    struct log_losses losses;
    char line[256];
    fcntl(reader, F_SETFL, O_NONBLOCK);
    log_never_wait(&log, &losses);
    CHECK(!(fcntl(writer, F_GETFL) & O_NONBLOCK)); /* others may have it too */
    CHECK(overfill(&log) >= 10);
    size_t lost = atomic_load(&losses.lines);
    CHECK(read_all_lines(reader) > 100);
    log_info(&log, "somebody reads again");
    ssize_t size = read(reader, line, sizeof line - 1);
    line[size > 0 ? size : 0] = '\0';
    char expected[64];
    snprintf(expected, sizeof expected, "not read in time lines=%zu\n", lost);
    if (!strstr(line, expected))
        CHECK_TEXT(line, expected);
    CHECK_NUMBER(atomic_load(&losses.lines), 0);
    if (log.fd != writer)
        close(log.fd);
}

static void
a_full_pipe_holds_nobody_up(void)
{
    int ends[2];
    if (pipe(ends))
        abort();
    check_never_waits(ends[0], ends[1]);
    close(ends[0]);
    close(ends[1]);
}

static void
a_full_socket_holds_nobody_up(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        abort();
    check_never_waits(ends[0], ends[1]);
    close(ends[0]);
    close(ends[1]);
}

/* A line is larger than what is left: the rest is lost, and the next line begins on its own. */
static void
a_line_that_was_torn_ends_before_the_next(void)
{
    struct log log = {.level = LOG_INFO};
    struct log_losses losses;
    static char text[11000], all[1 << 20]; /* three pages of the pipe each, of sixteen */
    int ends[2];
    memset(text, 't', sizeof text - 1);
    if (pipe2(ends, O_NONBLOCK))
        abort();
    log.fd = ends[1];
    log_never_wait(&log, &losses);
    for (int i = 0; i < 10; i++)
        log_info(&log, "long", LOG_TEXT("text", text));
    CHECK(atomic_load(&losses.is_torn));
    ssize_t size = read(ends[0], all, sizeof all - 1);
    CHECK(size > 0 && all[size - 1] == 't');
    log_info(&log, "short");
    size = read(ends[0], all, sizeof all - 1);
    CHECK(size > 0 && all[0] == '\n' && all[size - 1] == '\n');
    close(log.fd);
    close(ends[0]);
    close(ends[1]);
}

static void
levels_are_parsed_by_name(void)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        enum log_level level = LOG_ERROR;
        struct error *error AUTO(error_cleanup) = log_parse_level(names[i], &level);
        CHECK(!error);
        CHECK_NUMBER(level, i);
    }
    enum log_level level = LOG_WARN;
    struct error *error AUTO(error_cleanup) = log_parse_level("INFO", &level);
    CHECK(error && error->code == CODE_INVALID_ARGUMENT);
    CHECK_TEXT(error ? error->message : NULL, "log level \"INFO\": use debug, info, warn or error");
    CHECK_NUMBER(level, LOG_WARN);
}

/* ---- lines that are collected ---- */

/* All lines of the next write. */
static const char *
read_write(struct capture *capture)
{
    ssize_t size = recv(capture->reader, capture->line, sizeof capture->line - 1, 0);
    capture->line[size > 0 ? size : 0] = '\0';
    return capture->line;
}

static size_t
count_of_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void
lines_for_later_are_written_together(void)
{
    struct capture capture;
    struct log_batch batch;
    capture_open(&capture, false);
    log_collect(&capture.log, &batch);
    for (int i = 0; i < 10; i++)
        LOG_LATER(&capture.log, LOG_INFO, "call", LOG_NUMBER("number", i));
    CHECK_TEXT(read_write(&capture), "");
    log_flush(&capture.log);
    CHECK_NUMBER(count_of_lines(read_write(&capture)), 10);
    log_flush(&capture.log);
    CHECK_TEXT(read_write(&capture), "");
    log_end_batch(&capture.log);
    capture_close(&capture);
}

static void
a_line_at_once_takes_those_before_it_along(void)
{
    struct capture capture;
    struct log_batch batch;
    capture_open(&capture, true);
    log_collect(&capture.log, &batch);
    LOG_LATER(&capture.log, LOG_INFO, "first");
    log_info(&capture.log, "second");
    const char *lines = read_write(&capture);
    CHECK_NUMBER(count_of_lines(lines), 2);
    CHECK(strstr(lines, "first") && strstr(lines, "first") < strstr(lines, "second"));
    LOG_LATER(&capture.log, LOG_INFO, "third");
    LOG_LATER(&capture.log, LOG_WARN, "fourth");
    CHECK_NUMBER(count_of_lines(read_write(&capture)), 2);
    LOG_LATER(&capture.log, LOG_INFO, "last");
    log_end_batch(&capture.log);
    CHECK_NUMBER(count_of_lines(read_write(&capture)), 1);
    capture_close(&capture);
}

static void
many_lines_do_not_wait_for_the_flush(void)
{
    struct capture capture;
    struct log_batch batch;
    size_t seen = 0, lines;
    capture_open(&capture, false);
    log_collect(&capture.log, &batch);
    for (int i = 0; i < 1000; i++) {
        LOG_LATER(&capture.log, LOG_INFO, "a line of some length, as that of a call is");
        CHECK(batch.lines.size < 64u << 10);
        while ((lines = count_of_lines(read_write(&capture))))
            seen += lines;
    }
    CHECK(seen > 500);
    log_flush(&capture.log);
    CHECK_NUMBER(seen + count_of_lines(read_write(&capture)), 1000);
    log_end_batch(&capture.log);
    capture_close(&capture);
}

/* A pipe that takes a part of a batch: each line is written, told as lost, or is the one that was torn. */
static void
of_a_batch_that_fits_in_part_the_rest_is_counted(void)
{
    struct log_losses losses;
    struct log_batch batch;
    static char room[1 << 20];
    int ends[2];
    if (pipe2(ends, O_NONBLOCK) || fcntl(ends[1], F_SETPIPE_SZ, 4096) != 4096)
        abort();
    struct log log = {.level = LOG_INFO, .fd = ends[1]};
    log_never_wait(&log, &losses);
    log_collect(&log, &batch);
    for (int i = 0; i < 200; i++)
        LOG_LATER(&log, LOG_INFO, "a line of some length, as that of a call is");
    log_flush(&log);
    ssize_t size = read(ends[0], room, sizeof room - 1);
    CHECK(size > 0 && size < 200 * 60);
    room[size > 0 ? size : 0] = '\0';
    size_t whole = count_of_lines(room), torn = room[size - 1] != '\n';
    CHECK_NUMBER(whole + torn + atomic_load(&losses.lines), 200);
    char expected[32];
    snprintf(expected, sizeof expected, " lines=%zu\n", 200 - whole - torn);
    log_info(&log, "read again");
    size = read(ends[0], room, sizeof room - 1);
    room[size > 0 ? size : 0] = '\0';
    CHECK_NUMBER(room[0] == '\n', torn);
    CHECK(strstr(room, expected) && strstr(room, "read again"));
    log_end_batch(&log);
    close(log.fd);
    close(ends[0]);
    close(ends[1]);
}

int
main(void)
{
    a_line_starts_with_the_time_in_utc();
    fields_follow_the_message();
    values_are_quoted_where_needed();
    json_has_texts_and_numbers();
    hclog_has_names_of_its_own();
    lines_below_the_level_are_dropped();
    a_long_value_is_cut_and_marked();
    a_long_message_is_cut_and_marked();
    a_value_that_just_fits_is_not_cut();
    many_fields_leave_a_whole_line();
    a_descriptor_that_fails_is_ignored();
    a_full_pipe_holds_nobody_up();
    a_full_socket_holds_nobody_up();
    a_line_that_was_torn_ends_before_the_next();
    levels_are_parsed_by_name();
    lines_for_later_are_written_together();
    a_line_at_once_takes_those_before_it_along();
    many_lines_do_not_wait_for_the_flush();
    of_a_batch_that_fits_in_part_the_rest_is_counted();
    return check_report("log");
}
