/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that another CSI driver provisions and OIM maps. An emulation reads a NodeStageVolume
 * request as that driver would, and fills OIM's request. A new one is a function and a line in the
 * table.
 */
#ifndef DRIVERS_OIM_EMULATION_H
#define DRIVERS_OIM_EMULATION_H

#include "base/error.h"
#include "base/text_map.h"
#include "proto/csi.pb-c.h"
#include "proto/oim.pb-c.h"

/* The relevant parts of a NodeStageVolume request. */
struct oim_emulated_volume {
    const char *id;
    const char *staging_path;
    struct text_map context;
    struct text_map secrets;
    const struct text_map *clusters; /* of the connection's options */
};

struct oim_emulation {
    /* Sets the parameters of the request. Errors name missing keys, never the value of a secret. */
    struct error *(*set_parameters)(const struct oim_emulated_volume *volume, struct arena *arena,
                                    Oim__V0__MapVolumeRequest *out);
};

/* All emulations, and their names in the same order, NULL-terminated. */
extern const struct oim_emulation oim_emulations[];
extern const char *const oim_emulation_names[];

#endif
