/* SPDX-License-Identifier: Apache-2.0 */
/* The log lines of a plugin: see host_log.h. */
#include "velero/host_log.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "message/json_value.h"

/* ---- one line ---- */

static bool
starts_with(const char *line, size_t size, const char *prefix)
{
    return size >= strlen(prefix) && memcmp(line, prefix, strlen(prefix)) == 0;
}

static void
append(char *message, const char *text, size_t size)
{
    size_t at = strlen(message);
    for (size_t i = 0; i < size && at < HOST_LOG_MESSAGE_BYTES - 1; i++)
        message[at++] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
    message[at] = '\0';
}

/* An unknown level is one for developers. */
static enum log_level
level_of(const char *name)
{
    static const struct {
        const char *name;
        enum log_level level;
    } levels[] = {{"trace", LOG_DEBUG},
                  {"debug", LOG_DEBUG},
                  {"info", LOG_INFO},
                  {"warn", LOG_WARN},
                  {"error", LOG_ERROR}};
    for (size_t i = 0; name && i < COUNT_OF(levels); i++)
        if (strcmp(levels[i].name, name) == 0)
            return levels[i].level;
    return LOG_DEBUG;
}

static enum log_level
parse_object(const struct json_value *object, char *message)
{
    const char *text = json_value_text(json_value_member(object, "@message"));
    const char *why = json_value_text(json_value_member(object, "error"));
    append(message, text, strlen(text));
    if (why && why[0]) {
        append(message, ": ", 2);
        append(message, why, strlen(why));
    }
    return level_of(json_value_text(json_value_member(object, "@level")));
}

static enum log_level
parse_text(const char *line, size_t size, char *message)
{
    static const struct {
        const char *prefix;
        enum log_level level;
        bool is_kept;
    } prefixes[] = {{"[TRACE] ", LOG_DEBUG, false},    {"[DEBUG] ", LOG_DEBUG, false},
                    {"[INFO] ", LOG_INFO, false},      {"[WARN] ", LOG_WARN, false},
                    {"[ERROR] ", LOG_ERROR, false},    {"panic: ", LOG_ERROR, true},
                    {"fatal error: ", LOG_ERROR, true}};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        if (!starts_with(line, size, prefixes[i].prefix))
            continue;
        size_t skip = prefixes[i].is_kept ? 0 : strlen(prefixes[i].prefix);
        append(message, line + skip, size - skip);
        return prefixes[i].level;
    }
    append(message, line, size);
    return LOG_DEBUG;
}

enum log_level
host_log_parse(const char *line, size_t size, char message[HOST_LOG_MESSAGE_BYTES])
{
    struct json_value *object = NULL;
    enum log_level level;
    message[0] = '\0';
    if (starts_with(line, size, "{"))
        error_free(json_value_parse(line, size, &object));
    if (json_value_text(json_value_member(object, "@message")))
        level = parse_object(object, message);
    else
        level = parse_text(line, size, message);
    json_value_free(object);
    return level;
}

/* ---- all of them ---- */

void
host_log_init(struct host_log *log, const struct log *to, const char *plugin)
{
    *log = (struct host_log){.log = to, .plugin = plugin};
}

static void
tell_dropped(struct host_log *log)
{
    if (log->dropped)
        log_warn(log->log, "plugin says more than is passed on", LOG_TEXT("plugin", log->plugin),
                 LOG_NUMBER("lines_dropped", log->dropped));
    log->dropped = 0;
}

/* Whether this second has room for one more. */
static bool
has_room(struct host_log *log)
{
    uint64_t second = clock_now_ms() / 1000;
    if (second != log->second) {
        tell_dropped(log);
        log->second = second;
        log->count = 0;
    }
    if (log->count++ < HOST_LOG_LINES_PER_SECOND)
        return true;
    log->dropped++;
    return false;
}

static void
pass_on(struct host_log *log)
{
    char message[HOST_LOG_MESSAGE_BYTES];
    enum log_level level = host_log_parse(log->line, log->size, message);
    bool was_panic = log->is_panic;
    log->is_panic |= starts_with(log->line, log->size, "panic: ") ||
                     starts_with(log->line, log->size, "fatal error: ");
    if (log->is_panic)
        level = LOG_ERROR;
    if (message[0] && !was_panic)
        snprintf(log->last, sizeof log->last, "%.*s", (int)sizeof log->last - 1, message);
    if (message[0] && log_wants(log->log, level) && has_room(log))
        LOG_AT(log->log, level, message, LOG_TEXT("plugin", log->plugin));
}

static void
end_line(struct host_log *log)
{
    log->line[log->size] = '\0';
    pass_on(log);
    log->size = 0;
    log->is_cut = false;
}

void
host_log_take(struct host_log *log, const void *bytes, size_t size)
{
    const char *at = bytes, *end = at + size;
    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        size_t part = (size_t)((feed ? feed : end) - at);
        size_t room = log->is_cut ? 0 : HOST_LOG_LINE_BYTES - log->size;
        log->is_cut |= part > room;
        memcpy(log->line + log->size, at, part < room ? part : room);
        log->size += part < room ? part : room;
        if (feed)
            end_line(log);
        at += part + (feed ? 1 : 0);
    }
}

void
host_log_end(struct host_log *log)
{
    if (log->size)
        end_line(log);
    tell_dropped(log);
}
