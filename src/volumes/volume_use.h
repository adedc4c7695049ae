/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine needs to know and to do about the use of volumes on this node. The room `node`
 * implements it (node/volume_use.h); the engine gets it when it is opened. Functions may block and
 * are safe from any thread.
 */
#ifndef VOLUMES_VOLUME_USE_H
#define VOLUMES_VOLUME_USE_H

#include "volumes/mount_rows.h"

struct volume_use {
    /*
     * The rows of the paths where the volume is mounted now. Deletes rows whose mounts are gone, as
     * after a reboot. The caller holds the volume.
     */
    struct error *(*list)(struct engine *engine, const volume_record *volume, struct arena *arena,
                          struct mount_list *out);

    /*
     * When it returns, everything that was written before the call is in the volume's data. Writers
     * do not have to wait, and the caller need not hold the volume.
     */
    struct error *(*flush)(struct engine *engine, const volume_record *volume, struct arena *arena);

    /*
     * Puts changed parameters into effect wherever the volume is mounted. The caller holds the
     * volume.
     */
    struct error *(*apply_parameters)(struct engine *engine, const volume_record *volume,
                                      struct arena *arena);

    /* Applies the I/O limits of all published volumes again; see upkeep_renew_limits. */
    struct error *(*renew_limits)(struct engine *engine);

    /* Removes data and devices that nothing refers to, and logs what it removed. */
    struct error *(*sweep)(struct engine *engine);
};

#endif
