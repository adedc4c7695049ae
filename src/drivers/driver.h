/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver serves the volumes of a connection: this node's engine (local), a third-party CSI driver
 * behind its socket (csi), or an accelerator behind the registry (oim). All of them take CSI
 * messages, so one function carries every RPC; ids in the messages are the driver's own. A new
 * driver is one file and one line in table.c.
 *
 * A driver is shared by the connection and by its calls in progress. It closes with the last
 * reference.
 */
#ifndef DRIVERS_DRIVER_H
#define DRIVERS_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/settings.h"
#include "drivers/fact_changes.h"
#include "message/service.h"
#include "proto/csi.pb-c.h"
#include "rpc/runtime/runtime.h"
#include "rpc/server/call.h"

/*
 * What is known of a driver. Immutable, and shared by reference. Capabilities are bits: 1 << Type.
 * Until the driver is first reached everything but `trouble` is zero, or comes from the store.
 * Afterwards the last answers stay, also while it is down.
 */
struct driver_facts {
    atomic_uint references;
    struct arena arena; /* of the texts */
    bool is_known;      /* it has been reached once */
    bool is_node_known; /* its Node service too, if it has one */
    bool is_remembered; /* not reached yet; the facts come from the store */
    bool leads_back;    /* to this server itself: nothing will be known of it */
    bool is_ready;
    const char *trouble; /* why it is not ready; NULL when it is */
    uint64_t since_ms;   /* Unix time of the last change of is_ready */
    const char *plugin_name;
    const char *plugin_version;
    uint64_t services;            /* PluginCapability.Service.Type */
    uint64_t expansion;           /* PluginCapability.VolumeExpansion.Type */
    uint64_t controller;          /* ControllerServiceCapability.RPC.Type */
    uint64_t node;                /* NodeServiceCapability.RPC.Type */
    uint64_t group;               /* GroupControllerServiceCapability.RPC.Type */
    const char *node_id;          /* its own name for this node; NULL: it has no node service */
    int64_t max_volumes_per_node; /* 0: no limit */
    struct text_map topology;     /* of this node */
};

struct driver_options {
    const char *connection;          /* whose driver it is */
    const struct text_list *aliases; /* other names of the connection; NULL: none */
    const struct setting *settings;  /* `options:` of its file; NULL: none */
    const char *data_directory;      /* of the process; drivers keep their data below it */
    const char *node_id;             /* of this node, as the orchestrator knows it */
    const struct text_map *topology; /* of this node, beside its id; NULL: none */
    bool is_in_cluster;              /* other nodes have connections of the same name */
    const struct repository_places *repositories; /* for exports; NULL: none */
    struct drill_turns *turns;                    /* NULL: no repositories */
    const char *instance; /* of this process, unique; sent with calls to find loops */
    int64_t max_calls;    /* at a time */
    uint32_t timeout_ms;  /* of a call */
    const struct driver_facts *remembered; /* from the store; NULL: none */
    struct fact_changes *changes;          /* notified of changes; may be NULL */
    struct runtime *runtime;
    const struct log *log;
};

struct buffer;
struct cluster;
struct drill_turns;
struct driver;
struct figures;
struct figures_request;
struct ops;

/*
 * Metadata of calls to drivers: the `instance` of each process on the way. A process that finds its
 * own in a call has found a loop.
 */
#define DRIVER_VIA "skycap-via"
#define DRIVER_INSTANCE_SIZE 17

/* A random one. */
void driver_make_instance(char out[DRIVER_INSTANCE_SIZE]);

/*
 * Ends a relayed call, on the loop thread. As in rpc/proxy/relay.h: may change `reply` in place,
 * takes `error`, and returns the client's error; NULL: the client gets `reply`.
 */
typedef struct error *driver_finish(struct call *call, void *context, ProtobufCMessage *reply,
                                    struct error *error);

struct driver_ops {
    const char *name;
    /* Its ids are of the form v:local/HANDLE: see csi/ids.h. */
    bool speaks_our_ids;
    /*
     * In a cluster an id tells the node that has the volume, so the routers of all nodes find it:
     * connection_set_locate.
     */
    bool has_homes;
    /* Its capabilities come from its server. Until that is reached it uses `remembered`. */
    bool must_ask;
    /* The id of a volume of this name, if it exists. NULL: ids do not follow from names. */
    const char *(*id_of_name)(const char *name, struct arena *arena);
    /* INVALID_ARGUMENT: the settings are wrong. Connects to nothing. */
    struct error *(*check)(const struct setting *settings);
    /*
     * The normalized address of the server, for valid settings: two connections with the same text
     * are one storage system. NULL: they never are. `node_id` is this node's; "": not known.
     */
    const char *(*server)(const struct setting *settings, const char *node_id, struct arena *arena);
    struct error *(*open)(const struct driver_options *options, struct driver **out);
    void (*close)(struct driver *driver);
    /* A unary RPC, on a worker. `reply` is initialised. The call may be a detached one. */
    struct error *(*call)(struct driver *driver, struct call *call, const struct method *method,
                          const ProtobufCMessage *request, ProtobufCMessage *reply);
    /*
     * The same without a thread, in the method's handler on the loop, which then returns NULL. The
     * request is in the call's arena. After an error `finish` does not run. NULL: the driver needs
     * a thread.
     */
    struct error *(*relay)(struct driver *driver, struct call *call, const struct method *method,
                           const ProtobufCMessage *request, driver_finish *finish, void *context);
    /* Hands over the whole call, of any method, on the loop (rpc_proxy). NULL: not possible. */
    struct error *(*proxy)(struct driver *driver, struct call *call);
    /* A server-streaming RPC, on a worker: messages go to the client of `call`. */
    struct error *(*stream)(struct driver *driver, struct call *call, const struct method *method,
                            const ProtobufCMessage *request);
    /*
     * Its long-running operations; NULL: none. A driver with operations also serves
     * skycap.v1.Operations and skycap.v1.Inventory by `call`.
     */
    struct ops *(*operations)(struct driver *driver);
    /* For metrics. NULL: the driver has none. */
    void (*figures)(struct driver *driver, const struct figures_request *request,
                    struct figures *out);
    /* Metrics of the exports and drills of its engine. NULL: it has none. */
    void (*print_drills)(struct driver *driver, struct buffer *out);
    /*
     * From now on its engine can copy what other nodes have. May be called repeatedly, by one
     * thread at a time. NULL: it has no engine.
     */
    void (*join)(struct driver *driver, struct cluster *cluster);
};

/* What all drivers start with. */
struct driver {
    const struct driver_ops *ops;
    struct runtime *runtime;
    char *connection;
    int64_t max_calls;
    atomic_llong calls; /* in progress */
    atomic_uint references;
    pthread_mutex_t facts_lock;
    struct driver_facts *facts;
    struct fact_changes *changes;
};

/* ---- table.c ---- */

/* All drivers, NULL-terminated, and their names for messages: "local, csi, oim". */
extern const struct driver_ops *const all_drivers[];
const char *driver_names(void);

/* NULL: there is no driver of that name. */
const struct driver_ops *driver_find(const char *name);

/* ---- a driver ---- */

MUST_CHECK struct error *driver_open(const struct driver_ops *ops,
                                     const struct driver_options *options, struct driver **out);
struct driver *driver_share(struct driver *driver);
/*
 * Any thread, also the loop's; never waits. With the last reference another thread closes the
 * driver; runtime_close waits for it. NULL is fine.
 */
void driver_release(struct driver *driver);

/* ---- facts ---- */

/* The current facts, never NULL; the caller releases them. Any thread. */
struct driver_facts *driver_facts(struct driver *driver);
/* NULL is fine. */
void driver_facts_release(struct driver_facts *facts);
void driver_facts_cleanup(struct driver_facts **facts);

/* ---- for drivers ---- */

/* All zero, with one reference; may be changed until driver_set_facts. */
struct driver_facts *driver_facts_new(void);
/* A copy with texts of its own, which may be changed. */
struct driver_facts *driver_facts_copy(const struct driver_facts *facts);
/* Takes them. */
void driver_set_facts(struct driver *driver, struct driver_facts *taken);
/* The facts are those of a driver that has not been reached yet. */
void driver_init(struct driver *driver, const struct driver_ops *ops,
                 const struct driver_options *options);
void driver_clear(struct driver *driver);
/* RESOURCE_EXHAUSTED: as many calls as the connection may have (max-calls) are in progress. */
MUST_CHECK struct error *driver_begin_call(struct driver *driver);
void driver_end_call(struct driver *driver);

#endif
