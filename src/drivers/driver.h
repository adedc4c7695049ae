/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver is what stands behind a connection: this node's own engine (local), somebody else's CSI
 * driver behind its socket (csi), an accelerator behind the registry (oim). All of them speak CSI
 * messages, so one function carries every RPC; ids in the messages are the driver's own. A new
 * driver is one file and one line in table.c.
 *
 * A driver is shared: by the connection, and by every call that is under way when the connection
 * goes. Who lets go last closes it.
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
 * What is known of a driver at an instant. Immutable, and shared by reference. Capabilities are
 * bits: 1 << Type. Before the driver was first reached all of it is zero but `trouble`, unless the
 * store remembers it; afterwards what it said last stays, also while it is down.
 */
struct driver_facts {
    atomic_uint references;
    struct arena arena; /* of the texts */
    bool is_known;      /* it has been reached once */
    bool is_node_known; /* so has its Node service, if it has one */
    bool is_remembered; /* not reached yet; the rest comes from the store */
    bool leads_back;    /* to this very server: there is nothing to be known of it */
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
    int64_t max_volumes_per_node; /* 0: it names no limit */
    struct text_map topology;     /* of this node */
};

struct driver_options {
    const char *connection;          /* whose driver it is */
    const struct text_list *aliases; /* other names of that, old ones perhaps; NULL: none */
    const struct setting *settings;  /* `options:` of its file; NULL: none */
    const char *data_directory;      /* the process'; what a driver keeps goes below it */
    const char *node_id;             /* of this node, as the orchestrator knows it */
    const char *instance;            /* of this process, unique: told to children to find loops */
    int64_t max_calls;               /* under way at a time */
    uint32_t timeout_ms;             /* the longest that a call may take */
    const struct driver_facts *remembered; /* what it said before; NULL: nothing is remembered */
    struct fact_changes *changes;          /* where changes of the facts are told; NULL: nowhere */
    struct runtime *runtime;
    const struct log *log;
};

struct driver;
struct ops;

/*
 * Metadata of calls to children: the `instance` of each process on the way. Who finds its own in a
 * call that comes in has found a loop.
 */
#define DRIVER_VIA "skycap-via"
#define DRIVER_INSTANCE_SIZE 17

/* One that no other process has. */
void driver_make_instance(char out[DRIVER_INSTANCE_SIZE]);

/*
 * Loop thread, once for each relayed call: what the client gets. As in rpc/proxy/relay.h: `reply`
 * may be changed in place; `error` is taken; the result is the answer, NULL for `reply`.
 */
typedef struct error *driver_finish(struct call *call, void *context, ProtobufCMessage *reply,
                                    struct error *error);

struct driver_ops {
    const char *name;
    /* Its ids are of the form v:local/HANDLE: see csi/ids.h. */
    bool speaks_our_ids;
    /* It learns what it can do from the other side. Until then it uses `remembered`. */
    bool must_ask;
    /*
     * The id that a volume of this name has, if it is there; asks nobody. NULL: ids do not follow
     * from names.
     */
    const char *(*id_of_name)(const char *name, struct arena *arena);
    /* INVALID_ARGUMENT: the settings are wrong. Does not wait for the other side. */
    struct error *(*check)(const struct setting *settings);
    /*
     * Where its volumes are, of settings that are right, in one form: two with the same text are
     * one storage system. NULL: they never are.
     */
    const char *(*server)(const struct setting *settings, struct arena *arena);
    struct error *(*open)(const struct driver_options *options, struct driver **out);
    void (*close)(struct driver *driver);
    /*
     * One unary RPC, on a worker. `reply` is an initialised message of the method's output type.
     * The call may be a detached one.
     */
    struct error *(*call)(struct driver *driver, struct call *call, const struct method *method,
                          const ProtobufCMessage *request, ProtobufCMessage *reply);
    /*
     * The same without a thread, from the method's own handler on the loop, which returns NULL
     * after it; NULL: the driver needs a thread. The request is in the call's arena. An error:
     * nothing was begun and `finish` does not run.
     */
    struct error *(*relay)(struct driver *driver, struct call *call, const struct method *method,
                           const ProtobufCMessage *request, driver_finish *finish, void *context);
    /*
     * Any method, also one that nobody here knows: the whole call is handed over, on the loop
     * (rpc_proxy). NULL: the driver cannot.
     */
    struct error *(*proxy)(struct driver *driver, struct call *call);
    /* A server-streaming RPC, on a worker: messages go to the client of `call` as they come. */
    struct error *(*stream)(struct driver *driver, struct call *call, const struct method *method,
                            const ProtobufCMessage *request);
    /*
     * Its long-running operations, for watching them. NULL: it has none. A driver that has also
     * serves skycap.v1.Operations and skycap.v1.Inventory by `call`.
     */
    struct ops *(*operations)(struct driver *driver);
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

/* All drivers, NULL at the end, and their names for messages: "local, csi, oim". */
extern const struct driver_ops *const all_drivers[];
const char *driver_names(void);

/* NULL: there is no driver of that name. */
const struct driver_ops *driver_find(const char *name);

/* ---- a driver ---- */

MUST_CHECK struct error *driver_open(const struct driver_ops *ops,
                                     const struct driver_options *options, struct driver **out);
struct driver *driver_share(struct driver *driver);
/*
 * Any thread, the loop's too; never waits. Who is last has it closed, by a thread of its own;
 * runtime_close waits for that. NULL is fine.
 */
void driver_release(struct driver *driver);

/* ---- facts ---- */

/* What is known now, never NULL; the caller releases it. Any thread. */
struct driver_facts *driver_facts(struct driver *driver);
/* NULL is fine. */
void driver_facts_release(struct driver_facts *facts);
void driver_facts_cleanup(struct driver_facts **facts);

/* ---- for drivers ---- */

/* All zero, and one reference; may be changed until they are set. */
struct driver_facts *driver_facts_new(void);
/* The same again, with texts of its own, to be changed. */
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
