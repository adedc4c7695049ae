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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log {
    enum log_level level; /* lines below it are dropped */
    bool json;
    int fd;
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
