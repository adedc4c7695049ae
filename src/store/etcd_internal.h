/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the store on etcd, for its own files only:
 *
 *     etcd.c         the store: opening, reading, the ops
 *     etcd_place.c   members and prefix from the URL, keys
 *     etcd_client.c  calls to any member that answers
 *     etcd_write.c   writing
 *     etcd_watch.c   changes by anybody
 *
 * Keys in etcd are those of the store after the prefix. The key that is the prefix alone is the
 * mark: it is written before the first entry and never removed, so that a prefix where nothing was
 * ever written differs from one that is empty now.
 */
#ifndef STORE_ETCD_INTERNAL_H
#define STORE_ETCD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/etcd.rpc.h"
#include "rpc/client/channel.h"
#include "rpc/server/call.h"
#include "store/store_ops.h"

/* The value of the mark: the format of what is below the prefix. */
#define ETCD_MARK "1"

/* Memory to decode an answer. */
#define ETCD_DECODED_BYTES ((size_t)16 << 20)

/* ---- etcd_place.c ---- */

struct etcd_place {
    char **members; /* HOST:PORT */
    size_t count;
    char *members_text; /* all of them, for messages */
    char *prefix;       /* ends in a slash */
};

/* From "//HOST:PORT,HOST:PORT/PREFIX". */
MUST_CHECK struct error *etcd_place_parse(const char *text, struct etcd_place *out);
void etcd_place_clear(struct etcd_place *place);

/* The key in etcd; for the empty key, the mark. */
ProtobufCBinaryData etcd_key(const struct etcd_place *place, const char *key, struct arena *arena);
/* The first key after all that begin with `start`. */
ProtobufCBinaryData etcd_key_end(ProtobufCBinaryData start, struct arena *arena);
/* The first key after `key`. */
ProtobufCBinaryData etcd_key_next(ProtobufCBinaryData key, struct arena *arena);
/* The store's key, in the arena. NULL for the mark, and for keys of others that are not text. */
const char *etcd_own_key(const struct etcd_place *place, ProtobufCBinaryData key,
                         struct arena *arena);

/* ---- etcd_client.c ---- */

struct etcd_member;

struct etcd_client {
    const struct etcd_place *place;
    struct etcd_member *members;
    atomic_uint preferred; /* the member to ask first: the last one that answered */
    _Atomic uint64_t cluster;
    _Atomic uint64_t heard;  /* the highest revision that any member has reported */
    atomic_bool is_put_back; /* a member has reported a lower one: etcd was restored */
    struct call *calls;      /* owns all calls, so that they can be ended together */
    struct metadata leader_wanted;
    struct arena arena; /* of the metadata */
};

/* `place` must outlive it. Close it even if this fails. */
MUST_CHECK struct error *etcd_client_open(struct etcd_client *client,
                                          const struct etcd_place *place,
                                          const struct store_options *options);
void etcd_client_close(struct etcd_client *client);
/* Ends all calls, also future ones. Any thread. */
void etcd_client_stop(struct etcd_client *client);

/* What happens if a call with an unknown outcome is repeated. */
enum etcd_repeat {
    ETCD_HARMLESS, /* twice has the same effect as once */
    /* at most one takes effect: the second finds the effect of the first, and is refused */
    ETCD_FINDS_ITSELF,
    ETCD_NEVER,
};

struct etcd_call {
    const struct method *method;
    const ProtobufCMessage *request;
    enum etcd_repeat repeat;
    bool asks_once; /* asks each member once, instead of repeatedly */
    uint64_t end;   /* of all attempts; set by etcd_client_call */
    uint64_t heard; /* the highest revision before it; the same */
    /* set unless it is harmless: an unanswered attempt may have taken effect */
    bool in_doubt;
};

/*
 * Asks one member after the other, for at most 2.5 seconds; then UNAVAILABLE, in_doubt if the call
 * may have taken effect.
 */
MUST_CHECK struct error *etcd_client_call(struct etcd_client *client, struct etcd_call *call,
                                          struct arena *arena, void *reply);

/* Whether the member answers at all, soon. */
bool etcd_client_is_alive(struct etcd_client *client, unsigned member);

/* A stream to one member. */
MUST_CHECK struct error *etcd_client_open_stream(struct etcd_client *client, unsigned member,
                                                 const struct method *method,
                                                 struct client_call **out);
/*
 * Called for every answer to a call. UNAVAILABLE: it is of an earlier state than what was heard
 * before the call, to which etcd has been restored; in_doubt if the call was a write.
 */
MUST_CHECK struct error *etcd_client_check_answer(struct etcd_client *client,
                                                  const struct etcd_call *call,
                                                  const Etcdserverpb__ResponseHeader *header);
/* Called for every answer of a stream. */
void etcd_client_note_revision(struct etcd_client *client,
                               const Etcdserverpb__ResponseHeader *header);
/*
 * Called when a member was lost: whatever answers at these addresses is checked first from now on.
 */
void etcd_client_doubt_members(struct etcd_client *client);
/* Reads the revision. UNAVAILABLE also if etcd was restored to an earlier state. */
MUST_CHECK struct error *etcd_client_check_revision(struct etcd_client *client);
/* FAILED_PRECONDITION if the member belongs to another cluster than the one that answered first. */
MUST_CHECK struct error *etcd_client_check_cluster(struct etcd_client *client, unsigned member,
                                                   const Etcdserverpb__ResponseHeader *header);

/* ---- etcd_watch.c ---- */

/*
 * One stream of changes below the prefix, the thread that puts them into the history, and a second
 * thread that checks whether the member is alive.
 */
struct etcd_watch {
    struct etcd_client *client;
    struct history *history;
    const struct log *log;
    uint64_t told; /* changes up to this revision are in the history */
    struct change_list pending;
    uint64_t pending_revision; /* of the changes that are pending */
    unsigned failures;         /* since a member last answered */
    pthread_t reader, lookout;
    pthread_mutex_t lock; /* protects the following */
    pthread_cond_t stopped;
    bool is_stopping;
    struct client_call *call; /* NULL: none is open */
    unsigned member;          /* of the call */
    bool is_given_up;         /* its member does not answer */
};

/* Watches changes from the revision after `told` on. The arguments must outlive it. */
MUST_CHECK struct error *etcd_watch_start(struct etcd_watch *watch, struct etcd_client *client,
                                          struct history *history, uint64_t told,
                                          const struct log *log);
void etcd_watch_stop(struct etcd_watch *watch);

/* ---- the store ---- */

struct etcd_store {
    struct store base; /* must be first */
    struct etcd_place place;
    struct etcd_client client;
    struct etcd_watch watch;
    const struct log *log;
    pthread_mutex_t lock;  /* protects the start */
    atomic_bool is_begun;  /* etcd has answered, the entries are ours, and the watch runs */
    atomic_bool is_marked; /* the mark has been seen or written */
};

/* ---- etcd_begin.c ---- */

/* Reads, and records the revision of the answer. */
MUST_CHECK struct error *etcd_read_range(struct etcd_store *store,
                                         const Etcdserverpb__RangeRequest *request,
                                         struct arena *arena, Etcdserverpb__RangeResponse **reply);
/* Called before anything else: if etcd has not answered yet, tries once. */
MUST_CHECK struct error *etcd_begin(struct etcd_store *store);
/* FAILED_PRECONDITION if the mark exists and is not ours. `*revision`: etcd's own. */
MUST_CHECK struct error *etcd_read_mark(struct etcd_store *store, uint64_t *revision,
                                        bool *is_there);

/* ---- etcd_write.c ---- */

MUST_CHECK struct error *etcd_write(struct store *base, const struct store_change *changes,
                                    size_t count, uint64_t *revision);

#endif
