/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host of Velero's plugins: finds the binaries in a directory, asks each what is in it, and
 * starts them when they are needed.
 *
 * A binary that cannot be used is listed with the reason and never keeps the host from using the
 * others. The same holds for kinds that the host does not know. For one thread at a time.
 */
#ifndef VELERO_HOST_H
#define VELERO_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/log.h"
#include "velero/host_kinds.h"
#include "velero/host_process.h"

#define HOST_MAX_BINARIES 100
#define HOST_MAX_PLUGINS 1000 /* in one binary */

struct host;

struct host_options {
    const char *plugin_directory;
    bool uses_tls;             /* mutual TLS with the plugins; Velero itself does without */
    uint32_t start_timeout_ms; /* until a plugin's handshake, and for its list */
    uint32_t call_timeout_ms;  /* for every other call */
    struct runtime *runtime;
    const struct log *log;
};

struct host_binary {
    const char *path;
    const char *name;    /* below the plugin directory */
    const char *trouble; /* why it cannot be used; NULL: it can */
    size_t plugin_count;
};

struct host_plugin {
    const struct host_binary *binary;
    const char *kind;
    const char *name;
    enum host_kind known_as;
    const char *trouble; /* NULL: it may be used */
};

/* Makes a directory for sockets and, with `uses_tls`, certificates. Starts nothing yet. */
MUST_CHECK struct error *host_open(const struct host_options *options, struct host **out);

/* All processes must have been closed. Leaves no file behind. NULL is ignored. */
void host_close(struct host *host);

/*
 * Starts every binary, asks for its list, and ends it. An error: the directory cannot be read, or
 * is not one of plugins. Once.
 */
MUST_CHECK struct error *host_discover(struct host *host);

const struct host_binary *host_binaries(const struct host *host, size_t *count);
/* Sorted by kind and name. */
const struct host_plugin *host_plugins(const struct host *host, size_t *count);

/*
 * A volume snapshotter of either version, the second if there are both. The name may lack its
 * domain if that is velero.io, as in Velero's own settings. NULL: the only one there is. NOT_FOUND
 * or, without a name, FAILED_PRECONDITION say which there are.
 */
MUST_CHECK struct error *host_find_snapshotter(const struct host *host, const char *name,
                                               const struct host_plugin **out);

/* A new process of the binary, not waited for. */
MUST_CHECK struct error *host_start(struct host *host, const struct host_binary *binary,
                                    struct host_process **out);

const struct host_options *host_get_options(const struct host *host);

#endif
