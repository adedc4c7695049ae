/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections, and the set of them that is in force at an instant. Both are immutable and shared: a
 * call takes a reference to the connection that it goes to, and finishes on it whatever happens to
 * its file meanwhile. Any thread.
 */
#ifndef CONNECTIONS_CONFIG_CONNECTION_H
#define CONNECTIONS_CONFIG_CONNECTION_H

#include "connections/config/spec.h"
#include "drivers/driver.h"

/* What has gone to a connection's name, for metrics; it outlives the connections of that name. */
struct connection_counters {
    atomic_uint_fast64_t calls;
    atomic_uint_fast64_t failures; /* answered with an error, whoever made it */
    atomic_uint_fast64_t microseconds;
};

struct connection {
    atomic_uint references;
    struct arena arena; /* of the spec and the text */
    struct connection_spec *spec;
    struct driver *driver;
    struct connection_counters *counters;
    uint64_t loaded_ms; /* Unix time */
    const char *text;   /* of its file */
    size_t text_size;
};

/* Takes the arena's content and the driver. */
struct connection *connection_new(struct arena *arena, struct connection_spec *spec,
                                  struct driver *driver, struct connection_counters *counters);
struct connection *connection_share(struct connection *connection);
void connection_release(struct connection *connection);

/* Whether what it can do is known: its driver has been reached once, or the file says it. */
bool connection_is_known(const struct connection *connection);
/*
 * The same, or the store has what the driver reported before. An orchestrator is told it; no call
 * is rejected because of it.
 */
bool connection_is_told(const struct connection *connection);
/*
 * Whether what it can do, or what it says to NodeGetInfo, is not known but will be: not so of one
 * that leads back to this server.
 */
bool connection_is_awaited(const struct connection *connection);
bool connection_is_node_awaited(const struct connection *connection);
/* UNAVAILABLE, for callers who need to know it. */
MUST_CHECK struct error *connection_unknown_error(const struct connection *connection);

/*
 * What its driver can, as the file says it, else as far as is known, less what the file takes away:
 * 1 << Type.
 */
uint64_t connection_services(const struct connection *connection);
uint64_t connection_expansion(const struct connection *connection);
uint64_t connection_controller_capabilities(const struct connection *connection);
uint64_t connection_node_capabilities(const struct connection *connection);
uint64_t connection_group_capabilities(const struct connection *connection);

/* One of the first. */
bool connection_can(const struct connection *connection,
                    Csi__V1__ControllerServiceCapability__RPC__Type capability);

/* A name that there is a file for. */
struct connection_slot {
    const char *name;
    struct connection *connection; /* NULL: no good file was ever seen */
    const char *trouble;           /* with the newest file; NULL: none */
};

struct connection_set {
    atomic_uint references;
    struct arena arena;
    struct connection_slot *slots; /* by name */
    size_t count;
};

struct connection_set *connection_set_new(size_t count);
struct connection_set *connection_set_share(struct connection_set *set);
void connection_set_release(struct connection_set *set);
void connection_set_cleanup(struct connection_set **set);

/* By name, or by an alias. NULL: there is none. It stays the set's. */
struct connection *connection_set_find(const struct connection_set *set, const char *name);

/* One that has a name and a file, of which no good one was ever seen; NULL: there is none. */
const struct connection_slot *connection_set_wrong(const struct connection_set *set);

/*
 * The one that says so, else the only one; NULL: there is no such. Of several that say so, the
 * first by name. Beside a wrong file none is the only one: that may be the one that says so.
 */
struct connection *connection_set_default(const struct connection_set *set);

/* "fast, slow", for messages. */
const char *connection_set_names(const struct connection_set *set, struct arena *arena);

#endif
