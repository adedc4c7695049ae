/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the store on etcd, for its own files only:
 *
 *     etcd.c         the store: opening, reading, the ops
 *     etcd_place.c   members and prefix out of the URL, keys
 *     etcd_client.c  calls to whichever member answers
 *     etcd_write.c   writing
 *     etcd_watch.c   changes, whoever made them
 *
 * Keys are those of the store behind the prefix. The key that is the prefix alone is the mark: it
 * is put before the first write and never goes, so that a prefix under which nothing was ever
 * written can be told from one that is empty now.
 */
#ifndef STORE_ETCD_INTERNAL_H
#define STORE_ETCD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/etcd.rpc.h"
#include "rpc/client/channel.h"
#include "rpc/server/call.h"
#include "store/store_ops.h"

/* The value of the mark: the form of what is below the prefix. */
#define ETCD_MARK "1"

/* Room to decode an answer in. */
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

/* The key in etcd; of the empty key: the mark. */
ProtobufCBinaryData etcd_key(const struct etcd_place *place, const char *key, struct arena *arena);
/* The first key behind all that begin with `start`. */
ProtobufCBinaryData etcd_key_end(ProtobufCBinaryData start, struct arena *arena);
/* The first key behind `key`. */
ProtobufCBinaryData etcd_key_next(ProtobufCBinaryData key, struct arena *arena);
/*
 * The store's key, in the arena. NULL for the mark, and for what others have put there that is no
 * text.
 */
const char *etcd_own_key(const struct etcd_place *place, ProtobufCBinaryData key,
                         struct arena *arena);

/* ---- etcd_client.c ---- */

struct etcd_member;

struct etcd_client {
    const struct etcd_place *place;
    struct etcd_member *members;
    atomic_uint preferred; /* the member that is asked first: the last one that answered */
    _Atomic uint64_t cluster;
    _Atomic uint64_t heard;  /* the highest revision that any member has told */
    atomic_bool is_put_back; /* a member has told a lower one: etcd is in an earlier state */
    struct call *calls;      /* all of them belong to it, so that they can be ended together */
    struct metadata leader_wanted;
    struct arena arena; /* of the metadata */
};

/* `place` must stay. To be closed whether it succeeds or not. */
MUST_CHECK struct error *etcd_client_open(struct etcd_client *client,
                                          const struct etcd_place *place,
                                          const struct store_options *options);
void etcd_client_close(struct etcd_client *client);
/* Calls end, those to come too. Any thread. */
void etcd_client_stop(struct etcd_client *client);

/* What it means to make a call again of which nobody knows whether it was done. */
enum etcd_repeat {
    ETCD_HARMLESS, /* twice is the same as once */
    /* it is done once at most: the second time finds what the first has done, and is refused */
    ETCD_FINDS_ITSELF,
    ETCD_NEVER,
};

struct etcd_call {
    const struct method *method;
    const ProtobufCMessage *request;
    enum etcd_repeat repeat;
    bool asks_once; /* each member, instead of again and again */
    uint64_t end;   /* of all attempts: etcd_client_call says so itself */
    /* afterwards, unless it is harmless: an attempt that was not answered may have been done */
    bool in_doubt;
};

/*
 * Asks one member after the other, some 2.5 seconds at most; then UNAVAILABLE, which is in_doubt if
 * it may have been done nevertheless.
 */
MUST_CHECK struct error *etcd_client_call(struct etcd_client *client, struct etcd_call *call,
                                          struct arena *arena, void *reply);

/*
 * Of an error of a call: members do not accept who we are, or we not who they are. Waiting does not
 * help.
 */
bool etcd_client_is_refused(const struct error *error);

/* Whether the member answers at all, soon. */
bool etcd_client_is_alive(struct etcd_client *client, unsigned member);

/* A stream to one member. */
MUST_CHECK struct error *etcd_client_open_stream(struct etcd_client *client, unsigned member,
                                                 const struct method *method,
                                                 struct client_call **out);
/* Of every answer. */
void etcd_client_note_revision(struct etcd_client *client,
                               const Etcdserverpb__ResponseHeader *header);
/* A member was lost: whatever answers at these addresses from now on is looked at first. */
void etcd_client_doubt_members(struct etcd_client *client);
/* Asks for the revision. UNAVAILABLE also if etcd has been put back to an earlier state. */
MUST_CHECK struct error *etcd_client_check_revision(struct etcd_client *client);
/* FAILED_PRECONDITION if the member is of another cluster than the one that answered first. */
MUST_CHECK struct error *etcd_client_check_cluster(struct etcd_client *client, unsigned member,
                                                   const Etcdserverpb__ResponseHeader *header);

/* ---- etcd_watch.c ---- */

/*
 * One stream of changes below the prefix, the thread that puts them into the history, and one that
 * finds out whether the member still lives.
 */
struct etcd_watch {
    struct etcd_client *client;
    struct history *history;
    const struct log *log;
    uint64_t told; /* changes up to this revision are in the history */
    struct change_list pending;
    uint64_t pending_revision; /* of the changes that are pending */
    unsigned failures;         /* since a member was heard last */
    pthread_t reader, lookout;
    pthread_mutex_t lock; /* for those below */
    pthread_cond_t stopped;
    bool is_stopping;
    struct client_call *call; /* NULL: none is open */
    unsigned member;          /* of the call */
    bool is_given_up;         /* the call: its member does not answer */
};

/* Changes from the revision after `told` on. What it is given must stay until it is stopped. */
MUST_CHECK struct error *etcd_watch_start(struct etcd_watch *watch, struct etcd_client *client,
                                          struct history *history, uint64_t told,
                                          const struct log *log);
void etcd_watch_stop(struct etcd_watch *watch);

/* ---- the store ---- */

struct etcd_store {
    struct store base; /* first */
    struct etcd_place place;
    struct etcd_client client;
    struct etcd_watch watch;
    const struct log *log;
    pthread_mutex_t lock;  /* for the beginning */
    atomic_bool is_begun;  /* etcd has answered, what is there is ours, and it is watched */
    atomic_bool is_marked; /* the mark has been seen, or put */
};

/* ---- etcd_begin.c ---- */

/* Reads, and notes the revision of the answer. */
MUST_CHECK struct error *etcd_read_range(struct etcd_store *store,
                                         const Etcdserverpb__RangeRequest *request,
                                         struct arena *arena, Etcdserverpb__RangeResponse **reply);
/* Before anything else is asked: if etcd has not answered yet, it is tried once. */
MUST_CHECK struct error *etcd_begin(struct etcd_store *store);
/* FAILED_PRECONDITION if the mark is there and not ours. `*revision`: etcd's own. */
MUST_CHECK struct error *etcd_read_mark(struct etcd_store *store, uint64_t *revision,
                                        bool *is_there);

/* ---- etcd_write.c ---- */

MUST_CHECK struct error *etcd_write(struct store *base, const struct store_change *changes,
                                    size_t count, uint64_t *revision);

#endif
