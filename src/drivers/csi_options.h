/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of driver `csi`:
 *
 *     endpoint: unix:///run/hostpath/csi.sock       # the controller's, or for all services
 *     node-endpoint: unix:///run/hostpath/node.sock # Node service; at least one of the two
 *     command: [/usr/bin/hostpathplugin, --nodeid, a]
 *     environment: {NAME: value}
 *     probe-interval: 10s
 *     probe-timeout: 5s
 *     node-ids: {worker-1: i-0123}
 *     tls: {ca: /ca.crt, certificate: /our.crt, key: /our.key, name: host}
 *     insecure: true                                # TCP without TLS
 */
#ifndef DRIVERS_CSI_OPTIONS_H
#define DRIVERS_CSI_OPTIONS_H

#include "base/settings.h"
#include "drivers/endpoint_settings.h"

struct csi_options {
    const char *endpoint;      /* never NULL; the node's if it is the only one */
    const char *node_endpoint; /* NULL: the same */
    const char **command;      /* program and arguments, NULL-terminated; NULL: none */
    struct text_map environment;
    uint32_t probe_interval_ms;
    uint32_t probe_timeout_ms;
    struct endpoint_tls tls; /* without a name the endpoint's host is checked */
};

/* INVALID_ARGUMENT names the line and the key. All texts are copied into the arena. */
MUST_CHECK struct error *csi_options_read(const struct setting *settings, struct arena *arena,
                                          struct csi_options *out);

/* For driver_ops. */
MUST_CHECK struct error *csi_options_check(const struct setting *settings);
const char *csi_options_server(const struct setting *settings, const char *node_id,
                               struct arena *arena);

#endif
