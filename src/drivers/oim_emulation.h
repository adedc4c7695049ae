/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that another CSI driver provisions and OIM maps: what that driver's node side would read
 * out of a NodeStageVolume request, as OIM's request. A new one is a function and a line in the
 * table.
 */
#ifndef DRIVERS_OIM_EMULATION_H
#define DRIVERS_OIM_EMULATION_H

#include "base/error.h"
#include "base/text_map.h"
#include "proto/csi.pb-c.h"
#include "proto/oim.pb-c.h"

/* What of a NodeStageVolume request counts. */
struct oim_emulated_volume {
    const char *id;
    const char *staging_path;
    struct text_map context;
    struct text_map secrets;
    const struct text_map *clusters; /* of the connection's options */
};

struct oim_emulation {
    /*
     * Sets the parameters of the request; what is in them may lie in the arena. INVALID_ARGUMENT,
     * NOT_FOUND and the like say which key is missing, never what a secret holds.
     */
    struct error *(*set_parameters)(const struct oim_emulated_volume *volume, struct arena *arena,
                                    Oim__V0__MapVolumeRequest *out);
};

/* All that there are; one's place among the names, NULL at their end, is its place here too. */
extern const struct oim_emulation oim_emulations[];
extern const char *const oim_emulation_names[];

#endif
