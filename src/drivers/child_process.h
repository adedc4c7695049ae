/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Supervises a CSI driver's program: a thread starts it, copies its output to our log, and restarts
 * it when it ends, with a growing delay.
 *
 * The program gets our environment without the variables that are for us alone, plus CSI_ENDPOINT
 * and those of the connection's file. If it listens on a path, "PATH.lock" is locked while it runs.
 * So the program of a removed connection ends before its successor starts; otherwise its clean-up
 * could remove the successor's socket.
 */
#ifndef DRIVERS_CHILD_PROCESS_H
#define DRIVERS_CHILD_PROCESS_H

#include "base/error.h"
#include "base/log.h"
#include "base/text_map.h"

/* All of it must outlive the child process. */
struct child_process_options {
    const char *connection;
    const char *const *command; /* the absolute path and the arguments, NULL-terminated */
    const struct text_map *environment;
    const char *endpoint;
    /* Called by the thread: the program has started (NULL), or why it does not run. */
    void (*changed)(void *context, const char *trouble);
    void *context;
    const struct log *log;
};

struct child_process;

/* The program starts later. An error: the thread cannot be started. */
MUST_CHECK struct error *child_process_open(const struct child_process_options *options,
                                            struct child_process **out);

/* Sends SIGTERM to its process group, and SIGKILL after 5 s. Waits for the end. NULL is fine. */
void child_process_close(struct child_process *child);

#endif
