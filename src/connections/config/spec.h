/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection as its file describes it. docs/connections.md explains the keys;
 * docs/connection.schema.json is their schema.
 *
 *     driver: csi                       # or local, oim
 *     options: {endpoint: "unix:///run/csi/hostpath.sock"}
 *     default: true
 *     priority: 10
 *     labels: {media: ssd}
 *     aliases: [old-name]
 *     parameters: {fsType: xfs}
 *     secrets: scoped
 *     capabilities: {controller: [CREATE_DELETE_VOLUME], node: [], without: [CLONE_VOLUME]}
 *     capacity: unlimited
 *     topology: [{example.com/zone: a}]
 *     max-calls: 64
 *     timeout: 5m
 */
#ifndef CONNECTIONS_CONFIG_SPEC_H
#define CONNECTIONS_CONFIG_SPEC_H

#include "base/settings.h"
#include "drivers/driver.h"

#define SPEC_MAX_NAME 20
#define SPEC_MAX_ALIAS 63
#define SPEC_MAX_FILE_BYTES (256u << 10)
#define SPEC_LARGEST_MAX_CALLS 1024
#define SPEC_CAPACITY_UNLIMITED INT64_MAX

/* Which secrets of a request the driver sees. NAME.KEY is for connection NAME only, as KEY. */
enum spec_secrets {
    SPEC_SECRETS_ALL,    /* its own, and keys that name no connection */
    SPEC_SECRETS_SCOPED, /* its own only */
    SPEC_SECRETS_NONE,
};

/* Capabilities that the file lists, whatever the driver reports: bits 1 << Type. */
struct spec_capabilities {
    bool is_fixed; /* false: the driver is asked */
    uint64_t services;
    uint64_t expansion;
    uint64_t controller;
    uint64_t node;
    uint64_t group;
};

struct connection_spec {
    const char *name;
    const struct driver_ops *driver;
    const struct setting *options; /* NULL: none */
    bool is_default;
    int64_t priority; /* 0; a selector tries the highest first, then by name */
    struct text_map labels;
    struct text_list aliases;   /* earlier names: ids with them are its own */
    struct text_map parameters; /* defaults for CreateVolume */
    enum spec_secrets secrets;  /* all */
    struct spec_capabilities capabilities;
    uint64_t without_controller; /* capabilities that are not reported and not used */
    uint64_t without_node;
    uint64_t without_group;
    int64_t capacity_bytes;    /* where the driver reports none; default: unlimited */
    struct text_map *topology; /* of its volumes, if the driver reports none; any of these */
    size_t topology_count;
    int64_t max_calls;   /* 64 */
    uint32_t timeout_ms; /* 5 min */
};

/* [a-z0-9][a-z0-9-]{0,19} */
bool spec_is_name(const char *name);
/* INVALID_ARGUMENT says what a name looks like. */
MUST_CHECK struct error *spec_check_name(const char *name);

/*
 * [A-Za-z0-9][A-Za-z0-9._-]{0,62}, which other programs (the proxy of democratic-csi) allow as a
 * name. Every name is an alias, too.
 */
bool spec_is_alias(const char *name);

bool spec_has_alias(const struct connection_spec *spec, const char *name);

/*
 * Parses a file of at most SPEC_MAX_FILE_BYTES and checks every key, including the driver's
 * options. Everything is in the arena. INVALID_ARGUMENT names the line. Opens nothing.
 */
MUST_CHECK struct error *spec_read(const char *name, const char *text, size_t size,
                                   struct arena *arena, struct connection_spec **out);

/* Same driver, same options (also max-calls and timeout): the driver can be shared. */
bool spec_same_driver(const struct connection_spec *a, const struct connection_spec *b);

#endif
