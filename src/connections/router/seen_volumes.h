/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volumes of other nodes as this node has last listed them, so that lists and the health RPCs
 * can tell of them while their node does not answer. In memory only, and up to a limit. Any thread.
 */
#ifndef CONNECTIONS_ROUTER_SEEN_VOLUMES_H
#define CONNECTIONS_ROUTER_SEEN_VOLUMES_H

#include "base/arena.h"
#include "cluster/members.h"

struct seen_volumes;

struct seen_volume {
    const char *handle;
    const char *name; /* "": it is not known */
    int64_t size_bytes;
};

/* By handle; a part of all that a place has. */
struct seen_page {
    struct seen_volume *items;
    size_t count;
    bool has_more;
};

/* At most this many volumes are kept. */
struct seen_volumes *seen_volumes_new(size_t most);
/* NULL is fine. */
void seen_volumes_free(struct seen_volumes *seen);

/*
 * The place of this name has these volumes between two handles, and no others there: after `after`
 * ("": from the start), and up to the last one if the page has_more. A volume without a name keeps
 * the one that it had. A page that is not sorted is ignored.
 */
void seen_volumes_set(struct seen_volumes *seen, const char *name, const char *after,
                      const struct seen_page *page);

/* Up to `most` volumes of the place after a handle, in the arena. */
struct seen_page seen_volumes_find(struct seen_volumes *seen, const char *name, const char *after,
                                   size_t most, struct arena *arena);

/* Forgets the places of nodes that are no members any more. */
void seen_volumes_keep(struct seen_volumes *seen, const struct member_list *members);

#endif
