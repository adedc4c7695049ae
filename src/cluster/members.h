/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a cluster as the registry tells them. A node whose registration has expired stays a
 * member: its volumes exist, but cannot be reached.
 *
 * One thread changes the table; any thread may read it.
 */
#ifndef CLUSTER_MEMBERS_H
#define CLUSTER_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text_map.h"
#include "volumes/engine.h"

struct members;

struct member {
    const char *id;
    char home[HANDLE_HOME_SIZE]; /* in the handles that it makes: see volumes/handle.h */
    const char *address;
    struct text_map attributes;
    bool is_expired;
    int64_t seen_ms; /* if it has expired: Unix time of its last registration */
};

struct member_list {
    struct member *items; /* by id */
    size_t count;
    bool is_known; /* the registry has been read once */
};

struct members *members_new(void);
void members_free(struct members *members);

/* Adds or replaces the member; copies it. */
void members_set(struct members *members, const struct member *member);
/* No effect if there is none of this id. */
void members_remove(struct members *members, const char *id);
/* All members have been set. */
void members_complete(struct members *members);

/* A copy in the arena. Any thread. */
struct member_list members_read(struct members *members, struct arena *arena);

#endif
