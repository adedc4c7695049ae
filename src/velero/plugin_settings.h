/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the plugin reaches skycap: from the environment, and from the configuration that Velero
 * passes to a VolumeSnapshotter, which takes precedence.
 *
 *     key        variable          meaning
 *     endpoint   SKYCAP_ENDPOINT   address of `skycap serve --listen`, or its unix socket
 *     tls-ca     SKYCAP_TLS_CA     PEM files; all three or none
 *     tls-cert   SKYCAP_TLS_CERT
 *     tls-key    SKYCAP_TLS_KEY
 *     tls-name   SKYCAP_TLS_NAME   name required in the server's certificate
 *     driver     SKYCAP_DRIVER     name of the CSI driver; csi.skycap.dev
 *     timeout    SKYCAP_TIMEOUT    seconds for one call of Velero's; 30
 */
#ifndef VELERO_PLUGIN_SETTINGS_H
#define VELERO_PLUGIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text_map.h"

struct plugin_settings {
    const char *endpoint; /* NULL: not given */
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *tls_name;
    const char *driver;
    const char *timeout;
    uint64_t timeout_ms;
};

/*
 * Texts are allocated in the arena. `config` is Velero's, or NULL. INVALID_ARGUMENT for an unknown
 * key or a wrong value, FAILED_PRECONDITION if there is no endpoint.
 */
MUST_CHECK struct error *plugin_settings_read(const struct text_map *config, struct arena *arena,
                                              struct plugin_settings *out);

/* Does the environment say where skycap is? */
bool plugin_settings_has_environment(void);

struct plugin_settings plugin_settings_copy(const struct plugin_settings *settings,
                                            struct arena *arena);
bool plugin_settings_equal(const struct plugin_settings *a, const struct plugin_settings *b);

#endif
