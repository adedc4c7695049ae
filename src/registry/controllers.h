/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All registered controllers in memory: where each answers, until when that holds, and the channel
 * to it. Passing a call on asks nothing else.
 *
 * What is told comes from two sides, from whoever has just written it and from the store's watch,
 * in any order: the higher revision wins. Any thread, unless it says otherwise; nothing blocks.
 */
#ifndef REGISTRY_CONTROLLERS_H
#define REGISTRY_CONTROLLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "registry/entries.h"
#include "rpc/runtime/runtime.h"
#include "rpc/server/call.h"
#include "rpc/tls/tls.h"

struct controllers;

/*
 * `tls`: to controllers; NULL: plaintext, to unix sockets only unless `is_open`. It and the runtime
 * must outlive them.
 */
struct controllers *controllers_new(struct runtime *runtime, struct tls_context *tls, bool is_open);

/* Calls that are still passed on end. From a thread that may wait. */
void controllers_free(struct controllers *controllers);

/*
 * The entry at a controller's address was set, or removed (value ""); entries at other paths are
 * none of its business.
 */
void controllers_note(struct controllers *controllers, const struct entry *entry);

/*
 * The same, of what could not be written to the store: it counts until the store tells something
 * newer. Only while the store is lost.
 */
void controllers_note_unstored(struct controllers *controllers, const struct entry *entry);

/*
 * The store cannot be followed since `since_ms`, and can be again: in between nothing expires,
 * because renewals cannot be heard of. Afterwards what had not expired before has one more time to
 * live, in which it can be renewed. One thread.
 */
void controllers_lose_store(struct controllers *controllers, int64_t since_ms);
void controllers_find_store(struct controllers *controllers);

/*
 * Between the two all that is there is listed; what was not, and is not younger than the revision,
 * is gone. One thread. What others note meanwhile may be older than the list, and gone.
 */
void controllers_begin_list(struct controllers *controllers);
void controllers_note_listed(struct controllers *controllers, const struct entry *entry);
void controllers_end_list(struct controllers *controllers, uint64_t revision);

/*
 * Loop thread: passes the call on, once its handler has returned. UNAVAILABLE: there is no such
 * controller, or it has expired. Its channel is made by the first call and shared by all; another
 * address means another channel, and the old one goes with its last call.
 */
MUST_CHECK struct error *controllers_pass(struct controllers *controllers, const char *id,
                                          struct call *call);

struct controllers_sweep {
    int64_t now_ms;
    uint64_t idle_ns; /* channels that were not used for so long are closed */
    void (*tell)(void *context, const struct entry *entry); /* each that has expired, once */
    void *context;
    int64_t next_ms; /* out: when the next one expires; INT64_MAX: none will */
};

/* To be called now and then, by one thread. `tell` must not call back. */
void controllers_sweep(struct controllers *controllers, struct controllers_sweep *sweep);

struct controllers_counts {
    size_t registered; /* with those that have expired */
    size_t expired;
    size_t channels;
};
struct controllers_counts controllers_count(struct controllers *controllers);

#endif
