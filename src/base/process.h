/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program of the system (mkfs and the like) and waits for it: no shell, a time limit, and what it said is kept.
 *
 * The program is looked for in the usual directories only, never in the caller's PATH. It gets /dev/null as its input, a small
 * environment (PATH, LC_ALL=C) and no descriptor of ours, and it dies when we do. Safe from any thread.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>

#include "base/attributes.h"
#include "base/buffer.h"
#include "base/error.h"

/* Whether there is a program of this name to run. */
bool process_exists(const char *program);

/*
 * Runs arguments[0] with the arguments that follow, NULL at the end. Beyond `timeout_ms` it is killed with all it started, and the error is
 * DEADLINE_EXCEEDED. NOT_FOUND if there is no such program.
 *
 * Both outputs go into `output` (may be NULL), the first 64 KiB of them. With `exit_code` any code is a success of this function; without
 * it a code other than 0 is an error that carries the end of what the program said.
 */
MUST_CHECK struct error *process_run(const char *const *arguments, int timeout_ms,
                                     struct buffer *output, int *exit_code);

#endif
