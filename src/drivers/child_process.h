/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a CSI driver's program running: a thread starts it, puts what it says into our log, and
 * starts it again when it ends, after pauses that grow.
 *
 * The program gets our environment without what is meant for us alone, CSI_ENDPOINT with where it
 * is to listen, and what the connection's file says. Where it listens on a path, "PATH.lock" is
 * locked while it runs: the program of a connection that has gone ends before that of its successor
 * starts, which would otherwise lose its socket to the other's last clean-up.
 */
#ifndef DRIVERS_CHILD_PROCESS_H
#define DRIVERS_CHILD_PROCESS_H

#include "base/error.h"
#include "base/log.h"
#include "base/text_map.h"

/* All of it must outlive the child process. */
struct child_process_options {
    const char *connection;
    const char *const *command; /* program, with its whole path, and arguments; NULL at the end */
    const struct text_map *environment;
    const char *endpoint;
    /* On the thread, whenever it has started (NULL) or does not run: why not. */
    void (*changed)(void *context, const char *trouble);
    void *context;
    const struct log *log;
};

struct child_process;

/* The program starts some time later. An error: there is no thread for it. */
MUST_CHECK struct error *child_process_open(const struct child_process_options *options,
                                            struct child_process **out);

/* SIGTERM to it and all it started, 5 s later SIGKILL; returns when it is gone. NULL is fine. */
void child_process_close(struct child_process *child);

#endif
