/* SPDX-License-Identifier: Apache-2.0 */
/* The driver `oim` of another node: see oim_peer.h. */
#include "drivers/oim_peer.h"

#include "drivers/oim_internal.h"
#include "drivers/peer.h"

struct driver_facts *
oim_peer_facts(void)
{
    struct driver_facts *facts = driver_facts_new();
    oim_set_capabilities(facts, false);
    return facts;
}

const struct driver_ops driver_oim_peer = {
    .name = "oim",
    .has_homes = true,
    .id_of_name = oim_volume_handle,
    .close = peer_driver_close,
    .call = peer_driver_call,
};
