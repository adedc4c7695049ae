/* SPDX-License-Identifier: Apache-2.0 */
/* What a CSI driver's answers say about it. The facts get texts of their own. */
#ifndef DRIVERS_KEEPER_FACTS_H
#define DRIVERS_KEEPER_FACTS_H

#include "drivers/driver.h"

void keeper_facts_take_info(struct driver_facts *facts,
                            const Csi__V1__GetPluginInfoResponse *answer);
void keeper_facts_take_plugin(struct driver_facts *facts,
                              const Csi__V1__GetPluginCapabilitiesResponse *answer);
void keeper_facts_take_controller(struct driver_facts *facts,
                                  const Csi__V1__ControllerGetCapabilitiesResponse *answer);
void keeper_facts_take_group(struct driver_facts *facts,
                             const Csi__V1__GroupControllerGetCapabilitiesResponse *answer);
void keeper_facts_take_node(struct driver_facts *facts,
                            const Csi__V1__NodeGetCapabilitiesResponse *answer);
void keeper_facts_take_node_info(struct driver_facts *facts,
                                 const Csi__V1__NodeGetInfoResponse *answer);
/* What is remembered is not of this server. */
void keeper_facts_drop(struct driver_facts *facts);
/* It has no Node service. */
void keeper_facts_drop_node(struct driver_facts *facts);

#endif
