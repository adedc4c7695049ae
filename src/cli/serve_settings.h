/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of `skycap serve`: flags and defaults. */
#ifndef CLI_SERVE_SETTINGS_H
#define CLI_SERVE_SETTINGS_H

#include "base/log.h"
#include "cli/options.h"
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
    const char *repositories;
    bool allows_drill_commands;
    const char *http;
    struct text_list http_hosts;
    const char *http_token_file;
    struct tls_options tls;
    bool insecure;
    bool greets;
    unsigned long socket_mode;
    unsigned long max_message_bytes;
    unsigned long max_volumes;
    unsigned long metrics_volumes;
    unsigned long overprovisioning; /* percent */
    const char *log_level;
    const char *log_format;
    const char *store_url; /* registry's or connections' store; NULL: in the data directory */
    struct tls_options store_tls;
    struct text_list readers;
    unsigned long registry_delay_s;
    const char *transfer_rate;
    int64_t transfer_bytes_per_s;      /* 0: no limit */
    struct oim_controller_options oim; /* as far as flags set them */
    const char *advertise;
    struct text_list topology; /* KEY=VALUE */
    char host_name[256];
};

extern const struct option serve_settings_flags[];

/* Sets the defaults and checks the flags. */
MUST_CHECK struct error *serve_settings_read(const struct serve_settings **out);

/* Whether this process is a node of a cluster. */
bool serve_settings_have_cluster(const struct serve_settings *of);

/* Whether any of the three files is given; after serve_settings_read all of them are. */
bool serve_settings_have_tls(const struct tls_options *tls);

/* Whether --store is a registry. */
bool serve_settings_has_registry_store(const struct serve_settings *of);

/* If --endpoint is the default, makes its directory, which is missing after a boot. */
MUST_CHECK struct error *serve_settings_make_default_directory(const struct serve_settings *of);
bool serve_settings_has_default_endpoint(const struct serve_settings *of);

MUST_CHECK struct error *serve_settings_init_log(struct log *log);

#endif
