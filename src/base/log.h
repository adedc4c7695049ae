/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured log lines: a message and named fields, as text for people or JSON for programs.
 *
 *     log_info(log, "listening", LOG_TEXT("address", text), LOG_NUMBER("connections", 3));
 *
 * A line is written at once, with one write(2) to the log's descriptor. Frequent lines (one for
 * every call) may be collected and written together: see log_collect. Safe from any thread once
 * made. Values are escaped; the caller makes sure that they contain no secrets.
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

/* For a log that does not wait for its reader. */
struct log_losses {
    atomic_size_t lines; /* dropped and not yet reported */
    atomic_bool is_torn; /* the last line was written in part */
    bool is_socket;
};

/* The time of a line without milliseconds: many lines share it. */
struct log_second {
    int64_t second;
    char text[24];
};

/* Lines that are not written yet. */
struct log_batch {
    pthread_mutex_t lock;
    struct buffer lines;
    atomic_bool is_empty;
    struct buffer line; /* the current line */
    struct log_second second;
};

struct log {
    enum log_level level; /* lines below it are dropped */
    bool json;
    bool hclog; /* with json: names of the fields as hosts of go-plugin read them */
    int fd;
    struct log_losses *losses; /* NULL: writing a line waits for the reader */
    struct log_batch *batch;   /* NULL: all lines are written at once */
};

struct log_field {
    const char *name;
    const char *text; /* NULL: it is a number */
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
 * From now on, drops a line that a pipe, a socket or a terminal does not accept at once; the next
 * line that is written reports how many were dropped. So a slow reader of the log never delays the
 * caller. `log->fd` may be replaced by another descriptor of the same pipe or terminal, because a
 * flag of the original would affect all processes that share it. `losses` must live as long as the
 * log.
 */
void log_never_wait(struct log *log, struct log_losses *losses);

/*
 * From now on, lines of log_write_later wait for log_flush, for a line that is written at once, or
 * until there are many. `batch` must live until log_end_batch, which writes the rest.
 */
void log_collect(struct log *log, struct log_batch *batch);
void log_end_batch(struct log *log);

/* Writes the collected lines. Costs nothing if there are none. */
void log_flush(const struct log *log);

static inline bool
log_wants(const struct log *log, enum log_level level)
{
    return level >= log->level;
}

void log_write(const struct log *log, enum log_level level, const char *message,
               const struct log_field *fields, size_t count);

/* For callers that call log_flush soon. Warnings and errors are written at once nevertheless. */
void log_write_later(const struct log *log, enum log_level level, const char *message,
                     const struct log_field *fields, size_t count);

/* Each of these takes no fields, or fields made by LOG_TEXT and LOG_NUMBER. */
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
