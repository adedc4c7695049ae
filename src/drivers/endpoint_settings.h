/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings that say where a server is and how it is spoken to, for drivers that connect to one.
 * INVALID_ARGUMENT says what is wrong, and where.
 */
#ifndef DRIVERS_ENDPOINT_SETTINGS_H
#define DRIVERS_ENDPOINT_SETTINGS_H

#include "base/settings.h"
#include "rpc/tls/tls.h"

struct endpoint_tls {
    bool is_given;
    struct tls_options files;
    const char *name; /* that the server must prove; NULL: not said */
};

/*
 * `tls: {ca: /ca.crt, certificate: /our.crt, key: /our.key, name: host}`. All texts are copied into
 * the arena.
 */
MUST_CHECK struct error *endpoint_settings_read_tls(const struct setting *settings,
                                                    struct arena *arena, struct endpoint_tls *out);

/* `insecure: true`, which `tls:` excludes. */
MUST_CHECK struct error *endpoint_settings_read_insecure(const struct setting *settings,
                                                         const struct endpoint_tls *tls, bool *out);

/*
 * Is the key, if it is there, an address to connect to? Over the network (*is_tcp becomes true)
 * only if that is safe, or meant.
 */
MUST_CHECK struct error *endpoint_settings_check(const struct setting *settings, const char *key,
                                                 bool is_safe, bool *is_tcp);

/* `tls:` or `insecure:` where there is nothing that it could be for. */
MUST_CHECK struct error *endpoint_settings_check_use(const struct setting *settings, bool is_tcp);

#endif
