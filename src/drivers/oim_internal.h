/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the driver `oim`, one file per topic; oim.c combines them.
 *
 * The connection's own store has the rows of volumes/rows.h and volumes/mount_rows.h, and
 *
 *     mapping/HANDLE    an OimMappingRecord: the volume is mapped, and how to find its device
 *
 * A row is written before the controller is called, and deleted after the call that undoes it. So a
 * crash may leave a row without an object, never an object without a row, and a repeated request
 * repairs it: all calls to the controller are idempotent.
 */
#ifndef DRIVERS_OIM_INTERNAL_H
#define DRIVERS_OIM_INTERNAL_H

#include "csi/controller.h"
#include "drivers/monitor.h"
#include "drivers/oim_device.h"
#include "drivers/oim_home.h"
#include "drivers/oim_options.h"
#include "node/stage.h"
#include "proto/inventory.rpc.h"

struct oim_driver {
    struct driver base; /* first */
    struct arena arena; /* of the options */
    struct oim_options options;
    const char *directory; /* of device nodes */
    struct oim_home *home;
    /* For functions on rows and paths. Has a store, a node id and a log; no locks, no back end. */
    struct engine engine;
    bool is_in_cluster;              /* the ids of new volumes contain the home of this node */
    char own_home[HANDLE_HOME_SIZE]; /* of this node */
    char boot_id[64];                /* of the running kernel */
    uint64_t timeout_ms;
    struct metadata metadata; /* of each call to the controller */
    struct tls_context *tls;
    struct endpoint endpoint;
    struct monitor *monitor;
};

/* The context of a handler. */
static inline struct oim_driver *
oim_of(const struct call *call)
{
    return call_context(call);
}

/* The same for all drivers `oim`. */
void oim_set_capabilities(struct driver_facts *facts, bool is_emulation);

extern const struct csi_v1_controller oim_controller_handlers;
extern const struct csi_v1_node oim_node_handlers;
extern const struct skycap_v1_inventory oim_inventory_handlers;

/* ---- oim_client.c: the controller ---- */

MUST_CHECK struct error *oim_client_check(struct oim_driver *oim, struct call *call,
                                          const char *bdev, bool *exists);

/* A size of 0 deletes it. */
MUST_CHECK struct error *oim_client_provision(struct oim_driver *oim, struct call *call,
                                              const char *bdev, int64_t size);

/* The texts of the reply are in the arena. */
MUST_CHECK struct error *oim_client_map(struct oim_driver *oim, struct call *call,
                                        const Oim__V0__MapVolumeRequest *request,
                                        struct arena *arena,
                                        Skycap__Records__OimMappingRecord *out);

/* Without a call it has a short timeout of its own. */
MUST_CHECK struct error *oim_client_unmap(struct oim_driver *oim, struct call *call,
                                          const char *volume);

/* May the call have been done in spite of the error? */
bool oim_client_is_doubtful(const struct error *error);

/* For monitor_options: does the controller answer? */
MUST_CHECK struct error *oim_client_check_ready(struct monitor *monitor, struct endpoint *endpoint);

/* ---- oim_volume.c: rows of volumes ---- */

/*
 * The handle of a name, which is the bdev's name: the name itself if it is short and plain, else a
 * hash of it. No plain name looks like a hash.
 */
const char *oim_volume_handle(const char *name, struct arena *arena);
bool oim_volume_is_handle(const char *text);

/* The id of a volume: HANDLE, or HANDLE@HOME if it was made in a cluster. */
char *oim_volume_id(const volume_record *record, struct arena *arena);

/*
 * The handle of an id; a volume of this node may be named without its home. `*handle` is NULL: it
 * is the id of no volume. FAILED_PRECONDITION: of a volume of another node.
 */
MUST_CHECK struct error *oim_volume_read_id(const struct oim_driver *oim, const char *id,
                                            struct arena *arena, const char **handle);

/*
 * The handle of the id in a request of the Node service. An emulation takes any text. NULL: it is
 * the id of no volume of this node.
 */
const char *oim_volume_handle_of_id(const struct oim_driver *oim, const char *id,
                                    struct arena *arena);

/* Under the key: ABORTED if others hold it for too long. record NULL: nothing is known of it. */
struct oim_volume {
    struct name_lock *lock;
    const char *handle;
    volume_record *record;
    uint64_t revision;
};
MUST_CHECK struct error *oim_volume_take(struct oim_driver *oim, const char *handle,
                                         struct arena *arena, struct oim_volume *out);
void oim_volume_release(struct oim_volume *volume);

/* Writes the record, which may be a new one. */
MUST_CHECK struct error *oim_volume_save(struct oim_driver *oim, struct oim_volume *volume);

/* A new record with the handle only. */
volume_record *oim_volume_new(const char *handle, struct arena *arena);

/* Provisioned by somebody else: the row is deleted when the volume is unstaged. */
bool oim_volume_is_foreign(const volume_record *record);

/* INVALID_ARGUMENT: the access mode is for several nodes. */
MUST_CHECK struct error *oim_volume_check_mode(const volume_capability *capability);

/* The first key of a map field that asks for something; NULL: there is none. */
const char *oim_volume_find_parameter(void *entries, size_t count, struct arena *arena);

Csi__V1__Volume *oim_volume_message(const struct oim_driver *oim, const volume_record *record,
                                    struct arena *arena);

/* NOT_FOUND: it is not mapped, or was mapped before a reboot. */
MUST_CHECK struct error *oim_volume_get_mapping(struct oim_driver *oim, const char *handle,
                                                struct arena *arena,
                                                Skycap__Records__OimMappingRecord **out);
/* NULL: it is not mapped any more. Also drops another volume's mapping to the same device. */
MUST_CHECK struct error *oim_volume_save_mapping(struct oim_driver *oim, const char *handle,
                                                 const Skycap__Records__OimMappingRecord *mapping,
                                                 struct arena *arena);

/* Deletes rows of publications whose mounts are gone, except at `path`; lists the others. */
MUST_CHECK struct error *oim_volume_list_uses(struct oim_driver *oim, const char *handle,
                                              const char *path, struct arena *arena,
                                              struct mount_list *out);

/* Deletes rows that conflict with the use and whose mounts are gone; lists the others. */
MUST_CHECK struct error *oim_volume_forget_lost(struct oim_driver *oim, const char *handle,
                                                const struct use *use, struct arena *arena,
                                                struct mount_list *out);

struct oim_device_query oim_volume_query(const struct oim_driver *oim,
                                         const Skycap__Records__OimMappingRecord *mapping);

/* The path of its device. NOT_FOUND: it is not mapped, or the device is not there. */
MUST_CHECK struct error *oim_volume_find_device(struct oim_driver *oim, const char *handle,
                                                struct arena *arena, const char **out);

/* ---- handlers with a file of their own ---- */

HANDLER(oim_create_volume, CreateVolume);
HANDLER(oim_stage_volume, NodeStageVolume);
HANDLER(oim_unstage_volume, NodeUnstageVolume);

/* ---- oim_unstage.c, also for a staging that fails ---- */

/* Without a row the path stays as it is, unless this volume is mounted there. */
MUST_CHECK struct error *oim_unstage_unmount(struct oim_driver *oim, const char *handle,
                                             const char *path, const mount_record *record,
                                             struct arena *arena);

/* Deletes the row of the use, which may be NULL, and that of a volume of somebody else. */
MUST_CHECK struct error *oim_unstage_forget(struct oim_driver *oim, struct oim_volume *volume,
                                            const mount_record *record);

#endif
