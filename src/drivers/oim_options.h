/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of driver `oim`:
 *
 *     registry: dns:///registry:8999       # the controller is reached through a registry; or
 *     endpoint: unix:///run/oim.sock       # it is reached itself: one of both
 *     controller: host-0                   # its id; default: that of the node
 *     tls: {ca: /ca.crt, certificate: /host.crt, key: /host.key, name: component.registry}
 *     insecure: true                       # TCP without TLS
 *     emulate: ceph-csi                    # volumes that another driver provisions
 *     clusters: {CLUSTER-ID: "10.0.0.1:6789,10.0.0.2:6789"}
 *     probe-interval: 10s
 *     probe-timeout: 5s
 *     sysfs: /sys
 */
#ifndef DRIVERS_OIM_OPTIONS_H
#define DRIVERS_OIM_OPTIONS_H

#include "drivers/endpoint_settings.h"
#include "drivers/oim_emulation.h"

struct oim_options {
    const char *target;     /* of the registry, or of the controller itself */
    bool is_registry;       /* the target is the registry */
    const char *controller; /* NULL: the node's id */
    struct endpoint_tls tls;
    const struct oim_emulation *emulation; /* NULL: none */
    struct text_map clusters;              /* the monitors of a Ceph cluster, by its id */
    uint32_t probe_interval_ms;
    uint32_t probe_timeout_ms;
    const char *sysfs;
};

/* INVALID_ARGUMENT names the line and the key. All texts are copied into the arena. */
MUST_CHECK struct error *oim_options_read(const struct setting *settings, struct arena *arena,
                                          struct oim_options *out);

/*
 * For driver_ops. A registry leads to many controllers, so its address is followed by the
 * controller's id. NULL with `emulate:`, which makes and deletes no volumes.
 */
const char *oim_options_server(const struct setting *settings, const char *node_id,
                               struct arena *arena);

#endif
