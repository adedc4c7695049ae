/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection as its file describes it. docs/connections.md tells people what each key means,
 * docs/connection.schema.json tells programs.
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

/*
 * What of a request's secrets the driver gets to see. A key NAME.KEY is for the connection NAME
 * only, and reaches it as KEY.
 */
enum spec_secrets {
    SPEC_SECRETS_ALL,    /* those, and keys without the name of a connection before them */
    SPEC_SECRETS_SCOPED, /* those only */
    SPEC_SECRETS_NONE,
};

/* What the driver can do as its file says it, whatever the driver says: 1 << Type. */
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
    int64_t priority; /* 0; among those that a selector finds: the highest first, then by name */
    struct text_map labels;
    struct text_list aliases;   /* names that it had before: ids with them are taken for its own */
    struct text_map parameters; /* for CreateVolume, where the request does not say otherwise */
    enum spec_secrets secrets;  /* all */
    struct spec_capabilities capabilities;
    uint64_t without_controller; /* capabilities that are not told and not used: 1 << Type */
    uint64_t without_node;
    uint64_t without_group;
    int64_t capacity_bytes;    /* where the driver tells none; default unlimited, as 2^63-1 */
    struct text_map *topology; /* where its volumes are, if the driver does not say; any of these */
    size_t topology_count;
    int64_t max_calls;   /* 64 */
    uint32_t timeout_ms; /* 5 min */
};

/* [a-z0-9][a-z0-9-]{0,19}; the text may be anything. */
bool spec_is_name(const char *name);
/* INVALID_ARGUMENT says what a name looks like. */
MUST_CHECK struct error *spec_check_name(const char *name);

/*
 * [A-Za-z0-9][A-Za-z0-9._-]{0,62}: what other programs, democratic-csi's proxy among them, allow as
 * a name. Every name is one.
 */
bool spec_is_alias(const char *name);

/*
 * Reads a file's text, size at most SPEC_MAX_FILE_BYTES, checks every key and the driver's own
 * options. Everything is in the arena. INVALID_ARGUMENT tells the line. Nothing is opened or
 * reached.
 */
MUST_CHECK struct error *spec_read(const char *name, const char *text, size_t size,
                                   struct arena *arena, struct connection_spec **out);

/*
 * The same driver with the same options, those that all drivers have (max-calls, timeout) included:
 * it need not be opened anew.
 */
bool spec_same_driver(const struct connection_spec *a, const struct connection_spec *b);

#endif
