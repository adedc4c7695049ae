/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log lines of a plugin, passed on to our log with their level. Plugins write one JSON object
 * per line ("@level", "@message"), or plain text.
 *
 * Bounded: a line has HOST_LOG_LINE_BYTES, the rest of a longer one is dropped; beyond
 * HOST_LOG_LINES_PER_SECOND they are counted only. For one thread at a time.
 */
#ifndef VELERO_HOST_LOG_H
#define VELERO_HOST_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

#define HOST_LOG_LINE_BYTES 8192u
#define HOST_LOG_MESSAGE_BYTES 1024u
#define HOST_LOG_LINES_PER_SECOND 100u

struct host_log {
    const struct log *log;
    const char *plugin;                 /* for the lines */
    char line[HOST_LOG_LINE_BYTES + 1]; /* the current one */
    size_t size;
    bool is_cut;     /* the rest of the line is dropped */
    bool is_panic;   /* the runtime of Go is printing why it ends: every line counts as an error */
    char last[256];  /* the last message, or the first of a panic, for the error */
    uint64_t second; /* of `count` */
    unsigned count;  /* lines passed on in this second */
    size_t dropped;  /* lines since then */
};

void host_log_init(struct host_log *log, const struct log *to, const char *plugin);

/* Takes bytes as they were read. */
void host_log_take(struct host_log *log, const void *bytes, size_t size);

/* The last line may have no line feed. */
void host_log_end(struct host_log *log);

/* A line's level, and its message without control characters, cut to HOST_LOG_MESSAGE_BYTES. */
enum log_level host_log_parse(const char *line, size_t size, char message[HOST_LOG_MESSAGE_BYTES]);

#endif
