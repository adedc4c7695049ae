/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs programs, without a shell. Each leads its own process group, has /dev/null as its input and
 * none of our descriptors, and dies when we do. Safe from any thread.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attributes.h"
#include "base/buffer.h"
#include "base/error.h"

/*
 * Runs a system program such as mkfs, waits for it and keeps its output. Searches only the usual
 * directories, never the caller's PATH; the environment is small (PATH, LC_ALL=C).
 *
 * Runs arguments[0] with the arguments that follow, NULL at the end. After `timeout_ms`, kills it
 * and everything it started: DEADLINE_EXCEEDED. FAILED_PRECONDITION if there is no such program,
 * with the package to install.
 *
 * Both outputs go to `output` (may be NULL), up to 64 KiB. With `exit_code`, any code is success;
 * without it, a code other than 0 is an error with the end of the output.
 */
MUST_CHECK struct error *process_run(const char *const *arguments, int timeout_ms,
                                     struct buffer *output, int *exit_code);

/* The end of a program's output in one line, for an error. */
void process_summarize(struct buffer *output, char *line, size_t size);

/* ---- a program that goes on ---- */

struct process {
    pid_t pid;
    int ended;  /* readable when it has ended */
    int output; /* the read end of its output; whoever closes it sets it to -1 */
    int errors; /* the same for standard error; -1: `output` has both */
};

/*
 * It is killed when the thread that started it ends, so that thread waits for it. Lists end with
 * NULL; arguments[0] is the name that the program sees.
 */
MUST_CHECK struct error *process_start(const char *path, const char *const *arguments,
                                       const char *const *environment, struct process *out);

/* The same, with a pipe of its own for standard error. */
MUST_CHECK struct error *process_start_separate(const char *path, const char *const *arguments,
                                                const char *const *environment,
                                                struct process *out);

/* Sends the signal to its process group; it must not have been reaped. */
void process_signal(const struct process *process, int number);

/* Waits until it has ended and returns its status as waitpid(2) does. Closes the descriptors. */
int process_reap(struct process *process);

#endif
