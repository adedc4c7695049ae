/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All connections: their files are read, checked, opened and swapped in whole while calls go on. A
 * thread of this room watches the directory; nothing is looked up on the disk for a call. A file
 * that is wrong changes nothing: the last good one stays in force, and the list of connections, the
 * metrics and the log say what is wrong.
 */
#ifndef CONNECTIONS_CONFIG_CONNECTIONS_H
#define CONNECTIONS_CONFIG_CONNECTIONS_H

#include "base/buffer.h"
#include "connections/config/connection.h"
#include "store/store.h"

struct connections;

struct connections_options {
    const char *directory;      /* of the files */
    const char *data_directory; /* of this process */
    const char *node_id;
    const char *instance;         /* of this process, unique */
    struct store *store;          /* where the drivers of names are remembered */
    struct fact_changes *changes; /* where it is told that files or drivers have changed */
    struct runtime *runtime;
    const struct log *log;
};

/*
 * Has read all files once when it returns; a file that is wrong is no error here. All texts must
 * outlive it.
 */
MUST_CHECK struct error *connections_open(const struct connections_options *options,
                                          struct connections **out);

/* Drivers close when the last call that uses them ends. */
void connections_close(struct connections *connections);

/* The set in force, as a reference of the caller's. Any thread; never waits for anything slow. */
struct connection_set *connections_current(struct connections *connections);

/*
 * Looks at the files now, and returns when that is done. An error: the directory cannot be read;
 * all stays as it is. Any thread but the loop's.
 */
MUST_CHECK struct error *connections_reload(struct connections *connections);

/*
 * The name may stand for another driver from now on; then as connections_reload.
 * FAILED_PRECONDITION: its file is good, and says nothing else. NOT_FOUND: there never was such a
 * connection. Any thread but the loop's.
 */
MUST_CHECK struct error *connections_forget(struct connections *connections, const char *name);

/* In Prometheus' text form. */
void connections_print_metrics(struct connections *connections, struct buffer *out);

#endif
