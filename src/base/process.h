/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs programs, without a shell. Each leads a process group of its own, gets /dev/null as its
 * input and no descriptor of ours, and dies when we do. Safe from any thread.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attributes.h"
#include "base/buffer.h"
#include "base/error.h"

/*
 * A program of the system (mkfs and the like) that is waited for, and what it said is kept. It is
 * looked for in the usual directories only, never in the caller's PATH, and its environment is
 * small (PATH, LC_ALL=C).
 *
 * Runs arguments[0] with the arguments that follow, NULL at the end. Beyond `timeout_ms` it is
 * killed with all it started, and the error is DEADLINE_EXCEEDED. FAILED_PRECONDITION, with the
 * package to install, if there is no such program.
 *
 * Both outputs go into `output` (may be NULL), the first 64 KiB of them. With `exit_code` any code
 * is a success of this function; without it a code other than 0 is an error that carries the end of
 * what the program said.
 */
MUST_CHECK struct error *process_run(const char *const *arguments, int timeout_ms,
                                     struct buffer *output, int *exit_code);

/* The end of what a program said, in one line, for an error. */
void process_summarize(struct buffer *output, char *line, size_t size);

/* ---- a program that goes on ---- */

struct process {
    pid_t pid;
    int ended;  /* becomes readable when it has */
    int output; /* the end of both its outputs that is read; who closes it sets it to -1 */
};

/*
 * It is killed when the thread that started it ends: that thread waits for it. Lists end with NULL;
 * arguments[0] is what the program sees as its name.
 */
MUST_CHECK struct error *process_start(const char *path, const char *const *arguments,
                                       const char *const *environment, struct process *out);

/* To all of its group; it must not have been reaped. */
void process_signal(const struct process *process, int number);

/* Waits until it has ended; its status as waitpid(2) has it. Closes the descriptors. */
int process_reap(struct process *process);

#endif
