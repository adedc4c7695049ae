/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the directory of connection files. Files may be written, renamed or removed; in a mounted
 * Kubernetes Secret they are links through `..data`, a link that is replaced. Names that start with
 * '.' and names without .yaml or .yml are ignored.
 *
 * For one thread, except directory_wake.
 */
#ifndef CONNECTIONS_CONFIG_DIRECTORY_H
#define CONNECTIONS_CONFIG_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct directory;

/* INVALID_ARGUMENT: it does not exist, or is no directory. */
MUST_CHECK struct error *directory_open(const char *path, struct directory **out);
void directory_close(struct directory *directory);

/*
 * Waits until something may have changed, until directory_wake, or until the timeout. After a
 * change it waits for writers to finish, at most half a second. Where the kernel sends no events (a
 * network file system, links to files elsewhere, no watches left), it returns after the timeout. It
 * notices within a few seconds that the directory was removed, replaced or mounted over, or is
 * back.
 */
void directory_wait(struct directory *directory, uint32_t timeout_ms);

/* The current wait, or the next one, returns at once. Any thread. */
void directory_wake(struct directory *directory);

struct directory_file {
    const char *file; /* its name, printable */
    const char *name; /* the same without .yaml: the connection's */
    const char *text; /* NULL: it could not be read */
    size_t size;
    const char *trouble; /* invalid name, unreadable, too large, two files of a name; NULL: none */
};

struct directory_files {
    struct directory_file *items; /* by name; x.yaml and x.yml are both listed, with an error */
    size_t count;
};

#define DIRECTORY_MAX_FILES 1024

/* Reads all files into the arena. An error: the directory cannot be read, or has too many files. */
MUST_CHECK struct error *directory_read(struct directory *directory, struct arena *arena,
                                        struct directory_files *out);

/* Reads one file, anywhere, as directory_read would; `file` is the path. */
void directory_read_file(const char *path, struct arena *arena, struct directory_file *out);

#endif
