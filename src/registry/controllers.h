/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All registered controllers and nodes in memory: the address of each, when it expires, and the
 * channel of a controller. Forwarding a call needs nothing else; no call is forwarded to a node.
 *
 * Changes come from the registry's own writes and from the store's watch, in any order: the higher
 * revision wins. Functions may be called from any thread, unless stated otherwise; none blocks.
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
 * Without `tls`, plaintext is used: only on unix sockets, unless `is_open`. It and the runtime must
 * outlive the controllers.
 */
struct controllers *controllers_new(struct runtime *runtime, struct tls_context *tls, bool is_open);

/* Ends forwarded calls. From a thread that may block. */
void controllers_free(struct controllers *controllers);

/*
 * An address of a controller or a node was set, or removed (value ""). Entries at other paths are
 * ignored.
 */
void controllers_note(struct controllers *controllers, const struct entry *entry);

/*
 * The same for each change of the store, in the order of revisions, by one thread. True: watches
 * have to be told. False: it is a mere renewal of what they know. An entry that has expired is no
 * longer known.
 */
bool controllers_note_change(struct controllers *controllers, const struct entry *entry);

/*
 * The same for an entry that could not be written to the store: it is valid until the next change
 * from the store. Only while the store is lost.
 */
void controllers_note_unstored(struct controllers *controllers, const struct entry *entry);

/*
 * The store does not answer; it has answered, which has to be said at least every second. While it
 * is lost nothing expires, because renewals do not arrive. The same applies while nothing is said:
 * then this process does not run (SIGSTOP, or a machine that sleeps). It also applies to the time
 * before the process started; the last registration in the store tells since when. Afterwards, what
 * had not expired before gets its time to live once more, so that it can be renewed. One thread.
 */
void controllers_store_lost(struct controllers *controllers);
void controllers_store_heard(struct controllers *controllers);

/* Whether an entry of the store has expired, by these rules. Any thread. */
bool controllers_is_expired(const struct controllers *controllers, const struct entry *entry,
                            int64_t now_ms);

/*
 * Between begin and end, all existing controllers are noted, in the thread of
 * controllers_note_change. Those that were not, and are not newer than `revision`, are removed.
 */
void controllers_begin_list(struct controllers *controllers);
void controllers_note_listed(struct controllers *controllers, const struct entry *entry);
void controllers_end_list(struct controllers *controllers, uint64_t revision);

/*
 * Loop thread: forwards the call, once its handler has returned. UNAVAILABLE: there is no such
 * controller, or it has expired. The first call opens the controller's channel. When the address
 * changes, a new channel is opened, and the old one is closed after its last call.
 */
MUST_CHECK struct error *controllers_forward(struct controllers *controllers, const char *id,
                                             struct call *call);

struct controllers_sweep {
    int64_t now_ms;
    uint64_t idle_ns; /* closes channels that were not used for this long */
    void (*tell)(void *context,
                 const struct entry *entry); /* called once for each that has expired */
    void *context;
    int64_t next_ms; /* out: when the next one expires; INT64_MAX: none */
};

/* To be called regularly, by one thread. `tell` must not call functions of this file. */
void controllers_sweep(struct controllers *controllers, struct controllers_sweep *sweep);

struct controllers_counts {
    size_t registered; /* controllers, includes expired ones */
    size_t expired;
    size_t channels;
    size_t nodes; /* includes expired ones */
    size_t nodes_expired;
};
struct controllers_counts controllers_count(struct controllers *controllers);

#endif
