/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the driver `oim`, one file per topic; oim.c puts them together.
 *
 * What is remembered, in a store of the connection's own: the rows of volumes/rows.h and
 * volumes/mount_rows.h, and
 *
 *     mapping/HANDLE    an OimMappingRecord: the volume is mapped, and how it is found
 *
 * A row is written before the controller is asked to do what it stands for, and deleted after that
 * is undone. So a crash leaves rows of what is not there, never the other way round, and whoever
 * asks again makes it good: all of the controller's calls can be repeated.
 */
#ifndef DRIVERS_OIM_INTERNAL_H
#define DRIVERS_OIM_INTERNAL_H

#include "csi/controller.h"
#include "drivers/monitor.h"
#include "drivers/oim_device.h"
#include "drivers/oim_home.h"
#include "drivers/oim_options.h"
#include "node/stage.h"

struct oim_driver {
    struct driver base; /* first */
    struct arena arena; /* of the options and what else lives as long */
    struct oim_options options;
    const char *directory; /* of device nodes */
    struct oim_home *home;
    /*
     * Rooms that work on rows and paths want one. It has the home's store, a node and a log; no
     * keys, no back end, nor what needs them.
     */
    struct engine engine;
    char boot_id[64]; /* of the running kernel */
    uint64_t timeout_ms;
    struct metadata metadata; /* of each call to the controller */
    struct tls_context *tls;
    struct endpoint endpoint;
    struct monitor *monitor;
};

/* Of a handler: its context. */
static inline struct oim_driver *
oim_of(const struct call *call)
{
    return call_context(call);
}

extern const struct csi_v1_controller oim_controller_handlers;
extern const struct csi_v1_node oim_node_handlers;

/* ---- oim_client.c: the controller ---- */

MUST_CHECK struct error *oim_client_check(struct oim_driver *oim, struct call *call,
                                          const char *bdev, bool *exists);

/* A size of 0 deletes it. */
MUST_CHECK struct error *oim_client_provision(struct oim_driver *oim, struct call *call,
                                              const char *bdev, int64_t size);

/* The texts of the reply lie in the arena. */
MUST_CHECK struct error *oim_client_map(struct oim_driver *oim, struct call *call,
                                        const Oim__V0__MapVolumeRequest *request,
                                        struct arena *arena,
                                        Skycap__Records__OimMappingRecord *out);

/* Without a call it has a few seconds of its own. */
MUST_CHECK struct error *oim_client_unmap(struct oim_driver *oim, struct call *call,
                                          const char *volume);

/* It is not known whether it was done. */
bool oim_client_is_doubtful(const struct error *error);

/* For monitor_options: does the controller answer? */
MUST_CHECK struct error *oim_client_check_ready(struct monitor *monitor, struct endpoint *endpoint);

/* ---- oim_volume.c: what is known of a volume ---- */

/*
 * A name as a handle, which is the volume's id and the bdev's name: itself, if it is short and
 * plain; else a hash of it. The same again for the same name; no plain name looks like a hash.
 * Lives in the arena.
 */
const char *oim_volume_handle(const char *name, struct arena *arena);
bool oim_volume_is_handle(const char *text);

/*
 * The handle of the id in a request of the Node service. An emulation takes any text. NULL: it is
 * the id of no volume.
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

/* A new record with the handle and nothing else. */
volume_record *oim_volume_new(const char *handle, struct arena *arena);

/* Provisioned by somebody else: the row goes when the volume is unstaged. */
bool oim_volume_is_foreign(const volume_record *record);

/* INVALID_ARGUMENT: the access mode is one of several nodes. */
MUST_CHECK struct error *oim_volume_check_mode(const volume_capability *capability);

/* The first key of a map field that asks for something; NULL: there is none. */
const char *oim_volume_find_parameter(void *entries, size_t count, struct arena *arena);

Csi__V1__Volume *oim_volume_message(const struct oim_driver *oim, const volume_record *record,
                                    struct arena *arena);

/* NOT_FOUND: it is not mapped, as far as is known; what was before a reboot says nothing. */
MUST_CHECK struct error *oim_volume_get_mapping(struct oim_driver *oim, const char *handle,
                                                struct arena *arena,
                                                Skycap__Records__OimMappingRecord **out);
/* NULL: it is not mapped any more. Another volume that was mapped there is not, either. */
MUST_CHECK struct error *oim_volume_save_mapping(struct oim_driver *oim, const char *handle,
                                                 const Skycap__Records__OimMappingRecord *mapping,
                                                 struct arena *arena);

/*
 * Rows of publications whose mounts are gone, as after a reboot, are deleted, but for the one at
 * `path`, which may be NULL.
 */
MUST_CHECK struct error *oim_volume_list_uses(struct oim_driver *oim, const char *handle,
                                              const char *path, struct arena *arena,
                                              struct mount_list *out);

/*
 * Rows that conflict with the use, and whose mounts are gone, are deleted; the others are listed.
 */
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
