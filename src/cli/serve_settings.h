/* SPDX-License-Identifier: Apache-2.0 */
/* What `skycap serve` was told on its command line, with the defaults in place. */
#ifndef CLI_SERVE_SETTINGS_H
#define CLI_SERVE_SETTINGS_H

#include "base/log.h"
#include "node/storage.h"
#include "oim/controller.h"
#include "rpc/tls/tls.h"

enum role {
    ROLE_NODE = 1,
    ROLE_CONTROLLER = 2,
    ROLE_REGISTRY = 4,
    ROLE_OIM_CONTROLLER = 8,
};

#define ROLES_OF_CSI (ROLE_NODE | ROLE_CONTROLLER)

struct serve_settings {
    unsigned roles;
    const char *roles_text;
    const char *endpoint;
    struct text_list listen;
    struct storage_options storage;
    const char *node_id;
    const char *driver_name;
    const char *csi_version;
    const char *registration_directory;
    const char *connections;
    const char *http;
    struct tls_options tls;
    bool insecure;
    unsigned long socket_mode;
    unsigned long max_message_bytes;
    unsigned long max_volumes;
    unsigned long overprovisioning; /* percent */
    const char *log_level;
    const char *log_format;
    const char
        *store_url; /* of the registry, or of the connections; NULL: below the data directory */
    struct tls_options store_tls;
    struct text_list readers;
    unsigned long registry_delay_s;
    struct oim_controller_options oim; /* what flags say of it */
    char host_name[256];
};

/*
 * Reads and checks the flags. With --help prints it and sets *helped. Also after an error:
 * serve_settings_clear.
 */
MUST_CHECK struct error *serve_settings_read(struct serve_settings *settings, int count,
                                             char **arguments, bool *helped);
void serve_settings_clear(struct serve_settings *settings);

/* All three files were named, or none. */
bool serve_settings_have_tls(const struct tls_options *tls);

MUST_CHECK struct error *serve_settings_init_log(const struct serve_settings *settings,
                                                 struct log *log);

#endif
