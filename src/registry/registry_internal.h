/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of this directory. */
#ifndef REGISTRY_REGISTRY_INTERNAL_H
#define REGISTRY_REGISTRY_INTERNAL_H

#include "drivers/driver.h"
#include "proto/cluster_store.rpc.h"
#include "proto/oim.rpc.h"
#include "proto/registry.rpc.h"
#include "registry/controllers.h"
#include "registry/feed.h"
#include "registry/follower.h"
#include "registry/registry.h"

struct registry {
    struct registry_options options;
    struct controllers *controllers;
    struct feed feed;
    struct follower *follower;
    char instance[DRIVER_INSTANCE_SIZE]; /* unique; added to forwarded calls, to detect loops */
    atomic_bool is_stopped;
    atomic_bool has_rows; /* rows of the cluster have been written before */
    atomic_uint watches;
};

/* ---- requests.c ---- */

/* NULL: the caller may read what is at the normalized path, and below it. */
MUST_CHECK struct error *requests_check_reader(struct call *call, const char *path);

/*
 * Checks the caller and the request, and writes the entry: its path, which need not be normalized,
 * its value, attributes and expiry. An empty value removes it.
 */
MUST_CHECK struct error *requests_set(struct call *call, const struct entry *wanted);

/* NULL for 0. */
Google__Protobuf__Timestamp *requests_make_time(int64_t unix_ms, struct arena *arena);

void requests_fill_entry(Skycap__V1__RegistryEntry *out, const struct entry *entry, bool is_expired,
                         struct arena *arena);

/* ---- the services ---- */

extern const struct oim_v0_registry registry_oim_handlers;
extern const struct skycap_v1_registry registry_handlers;
extern const struct skycap_v1_cluster_store registry_rows_handlers;

/* watch.c */
struct error *registry_watch(struct call *call, const Skycap__V1__WatchRequest *request);

/* ---- forward.c ---- */

/* The server's fallback. */
struct error *registry_forward(struct call *call);

#endif
