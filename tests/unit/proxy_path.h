/* SPDX-License-Identifier: Apache-2.0 */
/* A client, a server that passes calls on, and the server behind it: path_open. */
#ifndef UNIT_PROXY_PATH_H
#define UNIT_PROXY_PATH_H

#include "rpc/proxy/proxy.h"
#include "rpc_ends.h"

struct seen {
    struct gate entered;
    struct gate may_go_on;
    struct gate left;
    struct gate messages;
    enum code code;
    uint64_t time_left;
    char path[64];
};

/* The proxy's way to the server behind, as its fallback's context. */
struct way {
    struct channel *channel;
    struct gate asked;
    struct gate passed;
    bool is_held; /* until it may pass */
    struct gate may_pass;
    struct loop *loop_to_starve; /* of a test that takes all memory away */
};

struct path {
    struct ends behind;
    struct ends front; /* the proxy, and the client's channel to it */
    struct way way;
    struct seen seen;
};

static inline void
starve(void *loop)
{
    ((struct loop *)loop)->admission.bytes.limit = 0;
}

static inline struct error *
pass_on(struct call *call)
{
    struct way *way = call_context(call);
    gate_pass(&way->asked);
    if (way->is_held)
        gate_wait(&way->may_pass, 1);
    if (way->loop_to_starve)
        loop_run(way->loop_to_starve, starve, way->loop_to_starve);
    rpc_proxy(call, way->channel);
    gate_pass(&way->passed);
    return NULL;
}

static inline void
path_open(struct path *path, const struct service *service, const void *handlers)
{
    *path = (struct path){
        .way = {.asked = GATE_INIT, .passed = GATE_INIT, .may_pass = GATE_INIT},
        .seen = {GATE_INIT, GATE_INIT, GATE_INIT, GATE_INIT},
    };
    ends_open(&path->behind, &(struct ends_setup){
                                 .service = service, .handlers = handlers, .context = &path->seen});
    ends_open(&path->front,
              &(struct ends_setup){.fallback = {.run = pass_on, .context = &path->way}});
    succeed(channel_open(path->front.runtime, path->behind.address, &(struct channel_options){0},
                         &path->way.channel));
}

static inline void
path_close(struct path *path)
{
    ends_close(&path->front);
    ends_close(&path->behind);
}

/* The channel belongs to the front's runtime: it goes before that does. */
static inline void
path_end(struct path *path)
{
    channel_close(STEAL(path->way.channel));
    path_close(path);
}

#endif
