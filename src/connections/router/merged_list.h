/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists over all connections of all nodes, one after the other, by place. If the client wants all
 * entries, all drivers are called at once. Each gets its share of the time, so that a driver that
 * hangs is left out and the others are listed.
 *
 * A token is PLACE:SKIP:TOKEN: the connection to continue with, how many entries of its page were
 * already listed, and the driver's token for that page. Tokens need no state, so they survive a
 * restart, and every node of a cluster understands them; if the connection is gone, the list
 * continues with the next place. A connection that does not answer is left out, and the page names
 * it; what was seen of it before is listed instead (recall). If the list ends with what others know
 * about those (has_copies), the token names them: PLACE!LEFT-OUT!LEFT-OUT:SKIP:TOKEN.
 *
 * An id is on a page once. A volume that moves may be on two nodes while it is listed; over several
 * pages CSI allows that it is listed twice.
 */
#ifndef CONNECTIONS_ROUTER_MERGED_LIST_H
#define CONNECTIONS_ROUTER_MERGED_LIST_H

#include "connections/config/connection.h"
#include "rpc/server/call.h"

/* Entries are messages. Everything is in the call's arena. */
struct list_page {
    void **entries; /* NULL, on a driver's page: an entry that is hidden but keeps its position */
    size_t count;
    char *next_token; /* "": this is the last page */
    /* Of a merged list: the connections that are left out, `slow, node "b"`; "": none. */
    const char *missing;
};

struct merged_list {
    struct call *call;
    const struct log *log;
    const struct connection_set *set;
    const void *context;  /* for the functions */
    bool has_own;         /* the router has entries of its own, which come first */
    bool has_copies;      /* it has entries in the place of connections that are left out; last */
    const char *left_out; /* for `ask`, of the last ones: "!PLACE!PLACE" */
    /* Connections that have nothing to list are skipped. */
    bool (*can)(const struct merged_list *list, struct connection *connection);
    /*
     * Asks one connection (NULL: the router) for the page of its own token. On any thread, with a
     * call that is part of the list's. A driver may return more than `most` entries, unless it
     * speaks_our_ids.
     */
    struct error *(*ask)(const struct merged_list *list, struct connection *connection,
                         const char *token, size_t most, struct list_page *out);
    /* As `ask`, for one that does not answer: what was seen of it before. May be NULL. */
    void (*recall)(const struct merged_list *list, struct connection *connection, const char *token,
                   size_t most, struct list_page *out);
    /* NULL: an entry may be listed twice. */
    const char *(*id_of)(const void *entry);
};

/* For `ask`: has the connection at this place been left out? */
bool merged_list_left_out(const struct merged_list *list, const char *place);

/*
 * `max_entries` is the client's; 0 means `limit`, which is also the most. INVALID_ARGUMENT: it is
 * negative. ABORTED: the token is invalid, or the driver no longer knows it. If no connection
 * answers for the first page or for the rest of one that was begun, or the list is empty and one
 * does not answer, returns the error of one of them. On a worker.
 */
MUST_CHECK struct error *merged_list_run(const struct merged_list *list, int32_t max_entries,
                                         size_t limit, const char *token, struct list_page *out);

#endif
