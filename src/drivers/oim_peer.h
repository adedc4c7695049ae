/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volumes of a connection with the driver `oim` of another node. Only that node may call the
 * controller that has them, so calls go to its driver, as those of drivers/peer.c go to its engine.
 */
#ifndef DRIVERS_OIM_PEER_H
#define DRIVERS_OIM_PEER_H

#include "drivers/driver.h"

extern const struct driver_ops driver_oim_peer;

/* For peer_driver_options.like; the caller releases them. */
struct driver_facts *oim_peer_facts(void);

#endif
