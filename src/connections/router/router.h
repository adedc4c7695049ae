/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router of `--connections`: the CSI services as the orchestrator sees them. A request goes to
 * the connection that its ids or its parameters name. The router translates ids in both directions.
 * Calls that concern all connections (lists, capabilities, the node, Probe) go to all of them, and
 * the router merges the answers.
 */
#ifndef CONNECTIONS_ROUTER_ROUTER_H
#define CONNECTIONS_ROUTER_ROUTER_H

#include "base/buffer.h"
#include "base/text_map.h"
#include "drivers/fact_changes.h"
#include "rpc/server/server.h"

struct figures;
struct ops;
struct repository_places;
struct router;
struct tls_context;

struct router_cluster {
    const char *registry;
    const char *address;      /* where other nodes reach this one */
    struct text_map topology; /* of this node, beside its own segment */
    uint32_t renew_ms;
    uint64_t transfer_rate;  /* bytes per second that are sent to other nodes; 0: no limit */
    struct tls_context *tls; /* NULL: plaintext */
};

/* All of it must outlive the router. */
struct router_options {
    const char *directory; /* of the connections' files; NULL: there is one connection */
    const char *only;      /* then the text of its file */
    const struct router_cluster *cluster; /* NULL: this node is alone */
    const char *data_directory;           /* created if missing */
    const char *driver_name;
    const char *node_id;
    const struct repository_places *repositories; /* NULL: none */
    bool is_node;                  /* the node side is served, not only the controller's */
    const char *store_url;         /* shared by all processes of the driver; NULL: a local store */
    struct tls_context *store_tls; /* for a store_url on the network; NULL: plaintext */
    bool advertises_csi_1_13;      /* capabilities that came with CSI 1.13 */
    struct runtime *runtime;
    const struct log *log;
};

/* Opens the stores and the connections, and resumes the copies that a crash has interrupted. */
MUST_CHECK struct error *router_open(const struct router_options *options, struct router **out);
/* Registers with the cluster, once the server accepts calls. */
void router_begin(struct router *router);
/* Stops the copies; the next start resumes them. Call it before waiting for the last calls. */
void router_stop(struct router *router);
/*
 * Ends the calls that wait for other nodes with UNAVAILABLE. One of those may itself wait for this
 * node, which accepts no calls any more.
 */
void router_stop_calls(struct router *router);
/* After the server is gone, before the runtime closes. NULL is fine. */
void router_close(struct router *router);

/*
 * Adds the CSI services of these `sides` (csi/services.h), those of skycap.v1, and a fallback: a
 * call of an unknown method goes unchanged to the connection that its metadata `skycap-connection`
 * names. The router must outlive the server.
 */
void router_add(struct server *server, struct router *router, unsigned sides);

/* The router's own operations, for those of other services. They stop with router_stop. */
struct ops *router_own_operations(const struct router *router);

/*
 * The answer to Probe: true if there is no connection, or at least one is ready. `*degraded` names
 * the others, "slow, fast (its file is wrong)", in the arena; "" if there are none. Waits for the
 * local store, never for another driver. Any thread but the loop's.
 */
bool router_is_ready(struct router *router, struct arena *arena, const char **degraded);

/*
 * Appends the answer to NodeGetInfo as bytes; equal answers have equal bytes. UNAVAILABLE: a driver
 * has not been reached yet, or the store cannot be. Any thread but the loop's.
 */
MUST_CHECK struct error *router_describe_node(const struct router *router, struct buffer *out);

/* Tells when that answer may have changed. */
struct fact_changes *router_changes(const struct router *router);

/* Of all engines of this process together. False: there is none. Any thread but the loop's. */
bool router_sum_figures(struct router *router, struct figures *out);

void router_print_metrics(struct router *router, size_t most_usages, struct buffer *out);

#endif
