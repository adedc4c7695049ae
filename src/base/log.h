/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured log lines: a message and named fields, as text for people or JSON for machines.
 *
 *     log_info(log, "listening", LOG_TEXT("address", text), LOG_NUMBER("connections", 3));
 *
 * A line is written at once, with one write(2) to the log's descriptor. Lines of which there are
 * many (one for every call) may be collected instead, and are written together: see log_collect.
 * Safe from any thread once made. Values are escaped; the caller sees to it that no secret is among
 * them.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/buffer.h"
#include "base/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Of a log that does not wait for its reader. */
struct log_losses {
    atomic_size_t lines; /* dropped, and not told yet */
    atomic_bool is_torn; /* the last line went out in part */
    bool is_socket;
};

/* The time of a line without its milliseconds: many lines have the same. */
struct log_second {
    int64_t second;
    char text[24];
};

/* Lines that are made and not written yet. */
struct log_batch {
    pthread_mutex_t lock;
    struct buffer lines;
    atomic_bool is_empty;
    struct buffer line; /* the one that is being made */
    struct log_second second;
};

struct log {
    enum log_level level; /* lines below it are dropped */
    bool json;
    int fd;
    struct log_losses *losses; /* NULL: who writes a line waits until it is taken */
    struct log_batch *batch;   /* NULL: all lines are written at once */
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
 * From now on a line that a pipe, a socket or a terminal does not take at once is dropped, and the
 * next one that is taken tells how many were: who calls is never held up by somebody who does not
 * read the log. `log->fd` may become another one for the same pipe or terminal, because what is set
 * on the first would hold for all processes that share it. `losses` must live as long as the log.
 */
void log_never_wait(struct log *log, struct log_losses *losses);

/*
 * From now on lines of log_write_later wait for log_flush, for a line that is written at once, or
 * until there are many. `batch` must live until log_end_batch, which writes what is left.
 */
void log_collect(struct log *log, struct log_batch *batch);
void log_end_batch(struct log *log);

/* Writes what was collected. Costs nothing where nothing was. */
void log_flush(const struct log *log);

static inline bool
log_wants(const struct log *log, enum log_level level)
{
    return level >= log->level;
}

void log_write(const struct log *log, enum log_level level, const char *message,
               const struct log_field *fields, size_t count);

/* For who calls log_flush soon. A warning or an error is written at once all the same. */
void log_write_later(const struct log *log, enum log_level level, const char *message,
                     const struct log_field *fields, size_t count);

/* Any of these with no field, or with fields made by LOG_TEXT and LOG_NUMBER. */
#define LOG_BY(write_, log_, level_, message_, ...)                                                \
    do {                                                                                           \
        if (log_wants((log_), (level_))) {                                                         \
            const struct log_field fields_[] = {{0}, ##__VA_ARGS__};                               \
            write_((log_), (level_), (message_), fields_ + 1, COUNT_OF(fields_) - 1);              \
        }                                                                                          \
    } while (0)
#define LOG_AT(log, level, ...) LOG_BY(log_write, log, level, __VA_ARGS__)
#define LOG_LATER(log, level, ...) LOG_BY(log_write_later, log, level, __VA_ARGS__)
#define log_debug(log, ...) LOG_AT(log, LOG_DEBUG, __VA_ARGS__)
#define log_info(log, ...) LOG_AT(log, LOG_INFO, __VA_ARGS__)
#define log_warn(log, ...) LOG_AT(log, LOG_WARN, __VA_ARGS__)
#define log_error(log, ...) LOG_AT(log, LOG_ERROR, __VA_ARGS__)

#endif
