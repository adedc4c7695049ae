/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured log lines: a message and named fields, as text for people or JSON for machines.
 *
 *     log_info(log, "listening", LOG_TEXT("address", text), LOG_NUMBER("connections", 3));
 *
 * One line is one write(2) to the log's descriptor. Safe from any thread once made. Values are escaped; the caller sees to it that
 * no secret is among them.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Of a log that does not wait for its reader. */
struct log_losses {
    atomic_size_t lines; /* dropped, and not told yet */
    atomic_bool is_torn; /* the last line went out in part */
    bool is_socket;
};

struct log {
    enum log_level level; /* lines below it are dropped */
    bool json;
    int fd;
    struct log_losses *losses; /* NULL: who writes a line waits until it is taken */
};

struct log_field {
    const char *name;
    const char *text; /* NULL: the number */
    int64_t number;
};

static inline struct log_field
log_text(const char *name, const char *text)
{
    return (struct log_field){name, text ? text : "", 0};
}

#define LOG_TEXT(name, text) log_text((name), (text))
#define LOG_NUMBER(name_, number_) ((struct log_field){(name_), NULL, (int64_t)(number_)})

/* "debug", "info", "warn" or "error". */
MUST_CHECK struct error *log_parse_level(const char *text, enum log_level *level);

/*
 * From now on a line that a pipe, a socket or a terminal does not take at once is dropped, and the next one that is taken tells how many were: who
 * calls is never held up by somebody who does not read the log. `log->fd` may become another one for the same pipe or terminal, because what
 * is set on the first would hold for all processes that share it. `losses` must live as long as the log.
 */
void log_never_wait(struct log *log, struct log_losses *losses);

static inline bool
log_wants(const struct log *log, enum log_level level)
{
    return level >= log->level;
}

void log_write(const struct log *log, enum log_level level, const char *message,
               const struct log_field *fields, size_t count);

/* Any of these with no field, or with fields made by LOG_TEXT and LOG_NUMBER. */
#define LOG_AT(log_, level_, message_, ...)                                                        \
    do {                                                                                           \
        if (log_wants((log_), (level_))) {                                                         \
            const struct log_field fields_[] = {{0}, ##__VA_ARGS__};                               \
            log_write((log_), (level_), (message_), fields_ + 1, COUNT_OF(fields_) - 1);           \
        }                                                                                          \
    } while (0)
#define log_debug(log, ...) LOG_AT(log, LOG_DEBUG, __VA_ARGS__)
#define log_info(log, ...) LOG_AT(log, LOG_INFO, __VA_ARGS__)
#define log_warn(log, ...) LOG_AT(log, LOG_WARN, __VA_ARGS__)
#define log_error(log, ...) LOG_AT(log, LOG_ERROR, __VA_ARGS__)

#endif
