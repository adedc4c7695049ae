/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a cluster as the registry tells them. A node whose registration has expired stays a
 * member: its volumes exist, but cannot be reached. So does one that is missing: it has no
 * registration, and the operator has not said that it will not come back.
 *
 * Functions are safe from any thread.
 */
#ifndef CLUSTER_MEMBERS_H
#define CLUSTER_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text_map.h"
#include "volumes/engine.h"

/* An attribute: the names of the node's connections with the driver local: "fast,local". */
#define CLUSTER_CONNECTIONS "connections"

struct members;

struct member {
    const char *id;
    char home[HANDLE_HOME_SIZE]; /* in the handles that it makes: see volumes/handle.h */
    const char *address;
    struct text_map attributes;
    bool is_expired; /* also if it is missing */
    bool is_missing; /* its attributes may be only the names of its connections */
    int64_t seen_ms; /* if it has expired: Unix time of its last registration; if it is missing: of
                        when that was noticed */
};

struct member_list {
    struct member *items; /* by id */
    size_t count;
    bool is_known; /* the registry has been read once */
};

/* With the driver local. */
bool member_has_connection(const struct member *member, const char *name);

/* NULL: there is none. */
const struct member *member_list_find(const struct member_list *members, const char *node_id);

struct members *members_new(void);
void members_free(struct members *members);

/* Adds or replaces the member; copies it. */
void members_set(struct members *members, const struct member *member);
/* Its registration is gone. No effect if there is none of this id. */
void members_miss(struct members *members, const char *id);
/*
 * Somebody knows a node of this id with a connection of this name: adds it as missing. No effect if
 * it is registered. False: nothing has changed.
 */
bool members_note(struct members *members, const char *id, const char *connection);
/* Removes it if it is missing. False: it was not. */
bool members_forget(struct members *members, const char *id);
/* All members have been set. */
void members_complete(struct members *members);

/* A copy in the arena. Any thread. */
struct member_list members_read(struct members *members, struct arena *arena);

#endif
