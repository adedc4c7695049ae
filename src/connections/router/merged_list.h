/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists over all connections, one connection after the other, by name. If all entries are wanted
 * all drivers are called at once. Each has its share of the time, so that one that hangs is left
 * out and the others are listed.
 *
 * A token is NAME:SKIP:TOKEN: the connection to continue with, the number of entries of its page
 * that were listed already, and its own token for that page. The token needs no state, so it
 * survives a restart; if the connection is gone the list continues with the next name. A connection
 * that does not answer is left out; the health RPCs and the metrics show that it is down.
 */
#ifndef CONNECTIONS_ROUTER_MERGED_LIST_H
#define CONNECTIONS_ROUTER_MERGED_LIST_H

#include "connections/config/connection.h"
#include "rpc/server/call.h"

/* Entries are messages; all is in the call's arena. */
struct list_page {
    void **entries; /* NULL, on a driver's page: an entry that is hidden but keeps its position */
    size_t count;
    char *next_token; /* "": it is the last */
};

struct merged_list {
    struct call *call;
    const struct log *log;
    const struct connection_set *set;
    const void *context; /* of the functions */
    bool has_own;        /* `ask` has entries without a connection too; they come first */
    /* Connections without anything to list are passed over. */
    bool (*can)(const struct merged_list *list, struct connection *connection);
    /*
     * A page of one connection (NULL: of none), as its own token says; on any thread, with a call
     * that is a part of the list's. A driver may give more than the `most` that are wanted.
     */
    struct error *(*ask)(const struct merged_list *list, struct connection *connection,
                         const char *token, size_t most, struct list_page *out);
};

/*
 * `max_entries` as the client says it, but at most `limit`, which is also what 0 means.
 * INVALID_ARGUMENT: it is negative. ABORTED: the token is none of ours, or the driver knows it no
 * more. If no connection answers, or there is no entry and one does not answer, the error of one of
 * them. On a worker.
 */
MUST_CHECK struct error *merged_list_run(const struct merged_list *list, int32_t max_entries,
                                         size_t limit, const char *token, struct list_page *out);

#endif
