/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a server's address and TLS, for drivers that connect to one. INVALID_ARGUMENT
 * names the line and the key.
 */
#ifndef DRIVERS_ENDPOINT_SETTINGS_H
#define DRIVERS_ENDPOINT_SETTINGS_H

#include "base/settings.h"
#include "rpc/tls/tls.h"

struct endpoint_tls {
    bool is_given;
    struct tls_options files;
    const char *name; /* that the server must prove; NULL: not set */
};

/*
 * `tls: {ca: /ca.crt, certificate: /our.crt, key: /our.key, name: host}`. All texts are copied into
 * the arena.
 */
MUST_CHECK struct error *endpoint_settings_read_tls(const struct setting *settings,
                                                    struct arena *arena, struct endpoint_tls *out);

/* `insecure: true`, which excludes `tls:`. */
MUST_CHECK struct error *endpoint_settings_read_insecure(const struct setting *settings,
                                                         const struct endpoint_tls *tls, bool *out);

/* Checks the address, if the key is set. *is_tcp: it is a TCP address, which needs `is_safe`. */
MUST_CHECK struct error *endpoint_settings_check(const struct setting *settings, const char *key,
                                                 bool is_safe, bool *is_tcp);

/*
 * The address in a form that is the same for all names of a socket, which may have several paths.
 * NULL: it is not an address.
 */
const char *endpoint_settings_server(const char *endpoint, struct arena *arena);

/* Refuses `tls:` or `insecure:` if no address is TCP. */
MUST_CHECK struct error *endpoint_settings_check_use(const struct setting *settings, bool is_tcp);

#endif
