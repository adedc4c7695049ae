/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All connections. A thread watches the directory. When files change it reads and checks them,
 * opens the drivers and replaces the set of connections as a whole, while calls go on; no call
 * reads the disk. A file that is wrong changes nothing: the last good one stays in force, and the
 * list of connections, the metrics and the log report the error.
 */
#ifndef CONNECTIONS_CONFIG_CONNECTIONS_H
#define CONNECTIONS_CONFIG_CONNECTIONS_H

#include "base/buffer.h"
#include "connections/config/connection.h"
#include "store/store.h"

struct cluster;
struct connection_metrics_request;
struct connections;
struct drill_turns;

struct connections_options {
    const char *directory;      /* of the files; NULL: there is one connection */
    const char *only;           /* the text of its file; its name is that of the node's volumes */
    const char *data_directory; /* of this process */
    const char *node_id;
    const struct text_map *topology; /* of this node, beside its id; NULL: none */
    bool is_in_cluster;
    const atomic_bool *is_draining;               /* no new volumes are placed on this node */
    const struct repository_places *repositories; /* of this node; NULL: none */
    struct drill_turns *turns;                    /* of their drills; NULL: no repositories */
    const char *instance;                         /* of this process, unique */
    struct store *store;                          /* remembers the driver of each name */
    struct fact_changes *changes;                 /* notified when files or drivers change */
    struct runtime *runtime;
    const struct log *log;
};

/* Reads all files before it returns; a wrong file is no error here. All texts must outlive it. */
MUST_CHECK struct error *connections_open(const struct connections_options *options,
                                          struct connections **out);

/*
 * From now on the set has the connections of the other nodes, too. The cluster must outlive the
 * connections. Any thread but the loop's.
 */
void connections_join(struct connections *connections, struct cluster *cluster);
/* The members of the cluster have changed. Any thread; never waits. */
void connections_note_members(struct connections *connections);

/* Drivers close when the last call that uses them ends. */
void connections_close(struct connections *connections);

/* A new reference to the set in force. Any thread; never waits. */
struct connection_set *connections_current(struct connections *connections);

/*
 * Reads the files now. An error: the directory cannot be read, and nothing changes. Any thread but
 * the loop's.
 */
MUST_CHECK struct error *connections_reload(struct connections *connections);

/*
 * Lets another driver use the name, then reloads. FAILED_PRECONDITION: the connection is in force.
 * NOT_FOUND: there never was such a connection. Any thread but the loop's.
 */
MUST_CHECK struct error *connections_forget(struct connections *connections, const char *name);

/* In Prometheus' text format. */
void connections_print_metrics(struct connections *connections,
                               const struct connection_metrics_request *request,
                               struct buffer *out);

#endif
