/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a server, for the files of rpc/ that make it up. */
#ifndef RPC_SERVER_SERVER_INTERNAL_H
#define RPC_SERVER_SERVER_INTERNAL_H

#include "rpc/http2/conn.h"
#include "rpc/runtime/metrics.h"
#include "rpc/server/server.h"

struct server_method {
    const struct method *method;
    const void *handlers;
    void *context;
    bool on_loop;
    bool has_reserve; /* see admission.h */
    unsigned doubt;   /* that its handlers come back soon: see call_run.c */
    struct method_metrics *metrics;
};

struct listener {
    struct server *server;
    struct address address;
    struct tls_context *tls;
    uv_poll_t poll;
    int fd;
    unsigned holders;   /* the server and the loop */
    struct timer retry; /* out of descriptors: tries again soon */
    struct listener *next;
};

struct server {
    struct loop *loop;
    struct metrics *metrics;
    struct server_options options;
    struct conn_counters *counters;
    const struct service **services; /* NULL at the end */
    size_t service_count;
    struct server_method *methods; /* a hash table by path, open addressing */
    size_t method_slots;           /* a power of two */
    size_t method_count;           /* at most */
    struct method_metrics *unknown_metrics;
    struct fallback fallback;
    struct guard guard;
    struct listener *listeners;
    struct conn *conns;
    size_t conn_count;
    size_t closed_conns; /* whose memory has not been given back */
    uint64_t refusal_told_at;
    size_t untold_refusals;
    size_t call_count;  /* calls that are not freed yet */
    struct timer watch; /* looks after slow and silent peers */
    struct timer second_goaway;
    bool is_draining;
    pthread_mutex_t lock; /* of the two below */
    pthread_cond_t idle;
    bool is_idle; /* draining, and no call is left */
};

/* NULL: no service has it. */
struct server_method *server_find_method(const struct server *server, const char *path);

/* A call has been freed: the last one ends a drain. */
void server_note_call_freed(struct server *server);

/* ---- listener.c ---- */
/* A list, with one for each address that a name stands for. */
MUST_CHECK struct error *listeners_open(struct server *server, const struct address *address,
                                        const struct listen_options *options,
                                        struct listener **out);
/* Loop thread. */
void listener_init(struct listener *listener);
void listener_start(struct listener *listener);
void listener_stop(struct listener *listener);
/* After listener_stop. */
void listener_free(struct listener *listener);
/* Loop thread: a connection has been accepted. */
void server_accept(struct server *server, struct listener *listener, int fd);

#endif
