/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections, and the set of them that is in force. Both are immutable and shared by reference: a
 * call holds a reference to its connection and finishes there, even if the file changes meanwhile.
 * Any thread.
 */
#ifndef CONNECTIONS_CONFIG_CONNECTION_H
#define CONNECTIONS_CONFIG_CONNECTION_H

#include "connections/config/spec.h"
#include "drivers/driver.h"
#include "volumes/engine.h"

/* Calls to the connection of a name, for metrics; they outlive the connections of that name. */
struct connection_counters {
    atomic_uint_fast64_t calls;
    atomic_uint_fast64_t failures; /* answered with an error, by the driver or by the router */
    atomic_uint_fast64_t microseconds;
};

struct connection {
    atomic_uint references;
    struct arena arena; /* of the spec and the text */
    struct connection_spec *spec;
    struct driver *driver;
    struct connection_counters *counters;
    uint64_t loaded_ms; /* Unix time */
    const char *text;   /* of its file; NULL: it is a connection of another node */
    size_t text_size;
    /*
     * Unique in its set: the name; in a cluster NAME@HOME, with the home of its node, if the driver
     * has_homes. What other drivers have is the same from every node.
     */
    const char *place;
    const char *node_address; /* of another node; NULL: the connection is this node's */
    bool is_lost;             /* its node, which is another one, has not renewed its registration */
    bool is_draining;         /* its node, which is another one: no new volumes are placed there */
};

/* Takes the arena's content and the driver. */
struct connection *connection_new(struct arena *arena, struct connection_spec *spec,
                                  struct driver *driver, struct connection_counters *counters);
struct connection *connection_share(struct connection *connection);
void connection_release(struct connection *connection);

/* Are its capabilities known? Its driver has been reached once, or the file lists them. */
bool connection_is_known(const struct connection *connection);
/*
 * The same, or the store has what the driver reported before a restart. That is reported to the
 * orchestrator, but no call is refused because of it.
 */
bool connection_is_told(const struct connection *connection);
/*
 * Are its capabilities, or its answer to NodeGetInfo, still unknown? Never true of a connection
 * that leads back to this server, because nothing will become known of it.
 */
bool connection_is_awaited(const struct connection *connection);
bool connection_is_node_awaited(const struct connection *connection);
/* UNAVAILABLE: the capabilities are not known yet. */
MUST_CHECK struct error *connection_unknown_error(const struct connection *connection);

/*
 * The capabilities of the driver, as bits 1 << Type: those that the file lists, else those that the
 * driver has reported, without those that the file excludes.
 */
uint64_t connection_services(const struct connection *connection);
uint64_t connection_expansion(const struct connection *connection);
uint64_t connection_controller_capabilities(const struct connection *connection);
uint64_t connection_node_capabilities(const struct connection *connection);
uint64_t connection_group_capabilities(const struct connection *connection);

/* One of the controller's: CONNECTION_CAN(connection, LIST_VOLUMES). */
bool connection_can(const struct connection *connection,
                    Csi__V1__ControllerServiceCapability__RPC__Type capability);
#define CONNECTION_CAN(connection, name)                                                           \
    connection_can(connection, CSI__V1__CONTROLLER_SERVICE_CAPABILITY__RPC__TYPE__##name)

/* A name that has a file. */
struct connection_slot {
    const char *name;
    struct connection *connection; /* NULL: there was never a good file */
    const char *trouble;           /* what is wrong with the newest file; NULL: nothing */
};

struct connection_set {
    atomic_uint references;
    struct arena arena;
    struct connection_slot *slots; /* of this node, by name */
    size_t count;
    char home[HANDLE_HOME_SIZE];   /* of this node; "": it is in no cluster */
    bool is_waiting;               /* the other nodes of the cluster are not known yet */
    const char *missing;           /* nodes that are not registered any more: "a, b"; NULL, "" */
    struct connection **elsewhere; /* of other nodes, by place */
    size_t elsewhere_count;
};

struct connection_set *connection_set_new(size_t count);
struct connection_set *connection_set_share(struct connection_set *set);
void connection_set_release(struct connection_set *set);
void connection_set_cleanup(struct connection_set **set);

/* This node's, by name or alias; NULL: there is none. The set keeps the reference. */
struct connection *connection_set_find(const struct connection_set *set, const char *name);

/* UNAVAILABLE while the set is_waiting. */
MUST_CHECK struct error *connection_set_check_nodes(const struct connection_set *set);
/* UNAVAILABLE while nodes are missing: they may have what no other node has. */
MUST_CHECK struct error *connection_set_check_missing(const struct connection_set *set);

/* By place, on any node; NULL: there is none. */
struct connection *connection_set_find_place(const struct connection_set *set, const char *place);

/*
 * The connection that keeps the handle: that of the name on this node, or, if the handle has
 * another home, on that node. NULL: there is no connection of the name. UNAVAILABLE: the home is
 * not a node of the cluster.
 */
MUST_CHECK struct error *connection_set_locate(const struct connection_set *set, const char *name,
                                               const char *handle, struct connection **out);

/* Does the handle tell its home, in the form of the connection's driver, which has_homes? */
bool connection_reads_home(const struct connection *connection, const char *handle);

/* A slot with a valid name for which there was never a good file; NULL: there is none. */
const struct connection_slot *connection_set_wrong(const struct connection_set *set);

/*
 * The connection whose file says `default: true`, the first by name if there are several; else the
 * only one; else NULL. While a file is wrong no connection counts as the only one: the wrong file
 * may be that of the default.
 */
struct connection *connection_set_default(const struct connection_set *set);

/*
 * This node's connection that works with repositories where no snapshot or volume tells it: the
 * default, or else the first by name, with the driver `local`. NULL: there is none.
 */
struct connection *connection_set_engine(const struct connection_set *set);

/* "fast, slow", for messages. */
const char *connection_set_names(const struct connection_set *set, struct arena *arena);

#endif
