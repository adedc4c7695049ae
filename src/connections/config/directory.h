/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of connection files, watched: files that are written, renamed, removed, and a
 * mounted Kubernetes Secret, whose files are links through `..data`, a link that is swapped. Names
 * that start with '.' and names without .yaml or .yml are not looked at.
 *
 * For one thread, but for directory_wake.
 */
#ifndef CONNECTIONS_CONFIG_DIRECTORY_H
#define CONNECTIONS_CONFIG_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct directory;

/* INVALID_ARGUMENT: it is not there, or no directory. */
MUST_CHECK struct error *directory_open(const char *path, struct directory **out);
void directory_close(struct directory *directory);

/*
 * Waits until something may have changed and nothing more has for a moment (writers are given the
 * time to finish, at most half a second of it), until directory_wake, or for so long. Without
 * notice from the kernel (a network file system, links to files elsewhere, no watches left) time
 * alone makes it return. A directory that is removed, replaced or mounted over is seen within a few
 * seconds, and so is its return.
 */
void directory_wait(struct directory *directory, uint32_t timeout_ms);

/* Any thread: the wait under way, or the next one, returns at once. */
void directory_wake(struct directory *directory);

struct directory_file {
    const char *file; /* its own name, fit to be shown */
    const char *name; /* the same without .yaml: the connection's */
    const char *text; /* NULL: it could not be read */
    size_t size;
    const char *trouble; /* why not: no name, unreadable, too large, a name twice; NULL: none */
};

struct directory_files {
    struct directory_file
        *items; /* by name; x.yaml and x.yml are both there, and both in trouble */
    size_t count;
};

#define DIRECTORY_MAX_FILES 1024

/*
 * All files as they are now, in the arena. An error: the directory itself cannot be read, or has
 * too many.
 */
MUST_CHECK struct error *directory_read(struct directory *directory, struct arena *arena,
                                        struct directory_files *out);

/* One file, wherever it is, as directory_read would give it; `file` is the path. */
void directory_read_file(const char *path, struct arena *arena, struct directory_file *out);

#endif
