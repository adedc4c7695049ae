/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to etcd: to the member that answered last, and to the others if it does not answer.
 *
 * Every call says "hasleader": a member that is cut off from the others refuses at once, before it
 * starts anything, instead of holding the call until it times out. The outcome of an attempt
 * decides about the next one:
 *
 *     answered    the answer is the result, whatever it is
 *     not begun   nobody was there, or it was refused: any call may be repeated elsewhere
 *     in doubt    no answer, or an inconclusive one: only a harmless call may be repeated
 *
 * Reading twice does no harm. A write that expects something that it changes itself can be done
 * only once, however late its first attempt arrives; any other could arrive after a later write and
 * undo it.
 *
 * A member that was lost, or was silent for a while, is checked before it is used again: it may
 * belong to another cluster, or may have been restored to an earlier state, in which revisions have
 * another meaning. Nothing reports that: an idle connection ends unnoticed. Reads are linearizable,
 * so a member that is asked later reports no lower revision than was heard before.
 *
 * A member can be restored between the check and the call, which then waits for a new connection.
 * So the revision of each answer is compared too. A write has been made then, but is not reported
 * as such.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "rpc/loop/timers.h"
#include "store/etcd_internal.h"

#define MS_NS UINT64_C(1000000)
#define LONGEST_CALL_NS (2500 * MS_NS) /* including all attempts */
#define PAUSE_NS (100 * MS_NS)         /* after all members have been asked */
#define CONNECT_MS 800
#define RECONNECT_MS 200
/* Nobody can stop all members, restore them and have them elect a leader in this time. */
#define FRESH_NS (400 * MS_NS)
/* etcd accepts a ping every 5 seconds; if they come more often, it closes the connection. */
#define PING_MS 6000
#define PING_ANSWER_MS 3000
/* Finds a member that hangs sooner, where that matters. */
#define LIFE_SIGN_NS (2000 * MS_NS)

struct etcd_member {
    struct channel *channel;
    _Atomic uint64_t answered_at; /* as a member of our cluster; 0: not since its last failure */
};

enum outcome { ANSWERED, NOT_BEGUN, IN_DOUBT };

/* ---- opening and closing ---- */

struct error *
etcd_client_open(struct etcd_client *client, const struct etcd_place *place,
                 const struct store_options *options)
{
    const struct channel_options channel_options = {
        .tls = options->tls,
        .connect_timeout_ms = CONNECT_MS,
        .max_backoff_ms = RECONNECT_MS,
        .keepalive_ms = PING_MS,
        .keepalive_timeout_ms = PING_ANSWER_MS,
    };
    client->place = place;
    client->members = memory_zeroed(place->count * sizeof *client->members);
    arena_init(&client->arena, NULL, 0, 0);
    metadata_add_bytes(&client->leader_wanted, &client->arena, "hasleader", 9, "true", 4);
    client->calls = call_new_detached(options->runtime, 0);
    struct error *error = NULL;
    for (size_t i = 0; i < place->count && !error; i++)
        error = channel_open(options->runtime, place->members[i], &channel_options,
                             &client->members[i].channel);
    return error;
}

void
etcd_client_close(struct etcd_client *client)
{
    for (size_t i = 0; i < client->place->count; i++)
        channel_close(client->members[i].channel);
    call_free_detached(client->calls);
    free(client->members);
    arena_clear(&client->arena);
}

void
etcd_client_stop(struct etcd_client *client)
{
    call_cancel_detached(client->calls);
}

/* ---- what an attempt has come to ---- */

static bool
says(const struct error *error, const char *part)
{
    return strstr(error->message, part) != NULL;
}

static enum outcome
judge_own_error(const struct error *error)
{
    switch (error->code) {
    case CODE_UNAVAILABLE:
        return error->in_doubt ? IN_DOUBT : NOT_BEGUN;
    case CODE_DEADLINE_EXCEEDED:
    case CODE_CANCELLED:
    case CODE_INTERNAL:
    case CODE_UNKNOWN:
        return IN_DOUBT;
    default:
        return ANSWERED;
    }
}

static enum outcome
judge(const struct error *error)
{
    if (!error)
        return ANSWERED;
    if (!error->from_peer)
        return judge_own_error(error);
    switch (error->code) {
    case CODE_UNAVAILABLE:
        return says(error, "no leader") ? NOT_BEGUN : IN_DOUBT;
    case CODE_FAILED_PRECONDITION: /* a learner, or a member of another cluster */
        return NOT_BEGUN;
    case CODE_RESOURCE_EXHAUSTED:
        return says(error, "too many requests") ? NOT_BEGUN : ANSWERED;
    case CODE_DEADLINE_EXCEEDED:
    case CODE_CANCELLED:
    case CODE_UNKNOWN: /* for instance from a member that is shutting down */
        return IN_DOUBT;
    default:
        return ANSWERED;
    }
}

/* Explains what to do about a refusal by etcd. Takes the error. */
static struct error *
explain(const struct etcd_client *client, struct error *error)
{
    enum code code = error->code;
    const char *advice = NULL;
    if (says(error, "database space exceeded")) {
        code = CODE_RESOURCE_EXHAUSTED;
        advice = "it has no space left: compact and defragment it, then disarm the alarm (etcdctl "
                 "compact, defrag, alarm disarm)";
    } else if (says(error, "request is too large") || says(error, "received message larger")) {
        code = CODE_INVALID_ARGUMENT;
        advice = "it takes requests of 1.5 MiB, unless its --max-request-bytes says otherwise";
    } else if (says(error, "too many operations")) {
        code = CODE_INVALID_ARGUMENT;
        advice = "it takes 128 changes at once, unless its --max-txn-ops says otherwise";
    }
    if (!advice)
        return error_wrap(error, "etcd at %s", client->place->members_text);
    struct error *explained =
        error_new(code, "etcd at %s: %s: %s", client->place->members_text, advice, error->message);
    error_free(error);
    return explained;
}

static struct error *
unavailable(const struct etcd_client *client, bool in_doubt, const struct error *last)
{
    struct error *error = error_new(
        CODE_UNAVAILABLE, "etcd at %s does not answer: %s. %s%s", client->place->members_text,
        last->message, in_doubt ? "Whether the change was made is not known. " : "",
        store_is_refused(last) ? "It needs other certificates, here or there"
                               : "It goes on by itself when most members run and can be reached");
    error->in_doubt = in_doubt;
    return error;
}

/* ---- one member ---- */

struct error *
etcd_client_check_cluster(struct etcd_client *client, unsigned member,
                          const Etcdserverpb__ResponseHeader *header)
{
    uint64_t first = 0, found = header ? header->cluster_id : 0;
    if (atomic_compare_exchange_strong(&client->cluster, &first, found) || first == found)
        return NULL;
    struct error *error = error_new(
        CODE_FAILED_PRECONDITION,
        "%s is of another cluster than the member that answered first. If etcd was restored from a "
        "backup, start skycap anew",
        client->place->members[member]);
    error->from_peer = true;
    return error;
}

void
etcd_client_note_revision(struct etcd_client *client, const Etcdserverpb__ResponseHeader *header)
{
    uint64_t told = header && header->revision > 0 ? (uint64_t)header->revision : 0;
    uint64_t heard = atomic_load(&client->heard);
    while (heard < told && !atomic_compare_exchange_weak(&client->heard, &heard, told))
        ;
}

void
etcd_client_doubt_members(struct etcd_client *client)
{
    for (size_t i = 0; i < client->place->count; i++)
        atomic_store(&client->members[i].answered_at, 0);
}

static struct error *
put_back(const struct etcd_client *client, bool in_doubt)
{
    struct error *error = error_new(
        CODE_UNAVAILABLE,
        "etcd at %s has been put back to an earlier state, or was made anew: start skycap anew",
        client->place->members_text);
    error->in_doubt = in_doubt;
    return error;
}

struct error *
etcd_client_check_answer(struct etcd_client *client, const struct etcd_call *call,
                         const Etcdserverpb__ResponseHeader *header)
{
    if (header && (uint64_t)header->revision < call->heard)
        atomic_store(&client->is_put_back, true);
    if (atomic_load(&client->is_put_back))
        return put_back(client, call->repeat != ETCD_HARMLESS);
    etcd_client_note_revision(client, header);
    return NULL;
}

/* `heard`: before the request. */
static struct error *
check_age(struct etcd_client *client, uint64_t heard, const Etcdserverpb__ResponseHeader *header)
{
    if (header && (uint64_t)header->revision < heard)
        atomic_store(&client->is_put_back, true);
    return atomic_load(&client->is_put_back) ? put_back(client, false) : NULL;
}

static struct error *
call_member(struct etcd_client *client, unsigned member, const struct etcd_call *call,
            uint64_t until, struct arena *arena, void *reply)
{
    uint64_t now = timers_now();
    const struct call_options options = {
        .timeout_ns = until > now ? until - now : 1,
        .metadata = &client->leader_wanted,
        .parent = call_as_parent(client->calls),
    };
    return channel_call(client->members[member].channel, call->method, call->request, &options,
                        arena, reply);
}

/*
 * Nothing is written to a member before it is known to be the right one: two separate members in
 * one URL would each get a part.
 */
static struct error *
get_to_know(struct etcd_client *client, unsigned member, uint64_t until, struct arena *arena)
{
    uint64_t heard = atomic_load(&client->heard);
    if (timers_now() - atomic_load(&client->members[member].answered_at) < FRESH_NS)
        return NULL;
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__RangeResponse *reply;
    request.key = etcd_key(client->place, "", arena);
    const struct etcd_call call = {.method = ETCDSERVERPB_KV_RANGE, .request = &request.base};
    struct error *error = call_member(client, member, &call, until, arena, &reply);
    if (!error)
        error = etcd_client_check_cluster(client, member, reply->header);
    if (!error)
        error = check_age(client, heard, reply->header);
    return error;
}

/* From now on the next one is asked first, unless another thread has already moved on. */
static void
move_on(struct etcd_client *client, unsigned member)
{
    unsigned expected = member;
    atomic_store(&client->members[member].answered_at, 0);
    atomic_compare_exchange_strong(&client->preferred, &expected,
                                   (member + 1) % (unsigned)client->place->count);
}

/*
 * `until`: when the next member has to be asked. A call that must not be repeated gets all the
 * remaining time once its member is known to answer.
 */
static enum outcome
attempt(struct etcd_client *client, const struct etcd_call *call, uint64_t until,
        struct arena *arena, void *reply, struct error **error)
{
    unsigned member = atomic_load(&client->preferred);
    *error = get_to_know(client, member, until, arena);
    bool was_asked = !*error;
    if (was_asked)
        *error = call_member(client, member, call, call->repeat == ETCD_NEVER ? call->end : until,
                             arena, reply);
    enum outcome outcome = judge(*error);
    if (!*error)
        atomic_store(&client->members[member].answered_at, timers_now());
    else if (outcome != ANSWERED)
        move_on(client, member);
    return outcome == IN_DOUBT && !was_asked ? NOT_BEGUN : outcome;
}

/* ---- all of them ---- */

/* Leaves time for the members that have not been asked. */
static uint64_t
end_of_attempt(const struct etcd_client *client, const struct etcd_call *call, unsigned tried)
{
    uint64_t now = timers_now();
    uint64_t left = client->place->count - tried % client->place->count;
    return now >= call->end ? call->end : now + (call->end - now) / left;
}

/* False: there is no time for another attempt, or it is not wanted. */
static bool
pause_after_round(const struct etcd_client *client, const struct etcd_call *call, unsigned tried)
{
    bool is_round = tried % client->place->count == 0;
    if (timers_now() + (is_round ? PAUSE_NS : 0) >= call->end || (is_round && call->asks_once) ||
        call_is_cancelled(client->calls))
        return false;
    if (is_round)
        nanosleep(&(struct timespec){.tv_nsec = (long)PAUSE_NS}, NULL);
    return true;
}

struct error *
etcd_client_call(struct etcd_client *client, struct etcd_call *call, struct arena *arena,
                 void *reply)
{
    call->end = timers_now() + LONGEST_CALL_NS;
    call->heard = atomic_load(&client->heard);
    call->in_doubt = false;
    for (unsigned tried = 0; !atomic_load(&client->is_put_back);) {
        struct error *error AUTO(error_cleanup) = NULL;
        enum outcome outcome =
            attempt(client, call, end_of_attempt(client, call, tried), arena, reply, &error);
        if (outcome == ANSWERED)
            return error ? explain(client, STEAL(error)) : NULL;
        call->in_doubt |= outcome == IN_DOUBT && call->repeat != ETCD_HARMLESS;
        tried++;
        if ((outcome == IN_DOUBT && call->repeat == ETCD_NEVER) ||
            !pause_after_round(client, call, tried))
            return unavailable(client, call->in_doubt, error);
    }
    return put_back(client, call->in_doubt);
}

struct error *
etcd_client_check_revision(struct etcd_client *client)
{
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__RangeResponse *reply;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, ETCD_DECODED_BYTES);
    request.key = etcd_key(client->place, "", &arena);
    struct etcd_call call = {.method = ETCDSERVERPB_KV_RANGE, .request = &request.base};
    return etcd_client_call(client, &call, &arena, &reply);
}

/* An error from the member is an answer too. After calls were stopped, the result is unknown. */
bool
etcd_client_is_alive(struct etcd_client *client, unsigned member)
{
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__RangeResponse *reply;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, ETCD_DECODED_BYTES);
    request.key = etcd_key(client->place, "", &arena);
    request.serializable = true;
    const struct etcd_call call = {.method = ETCDSERVERPB_KV_RANGE, .request = &request.base};
    struct error *error AUTO(error_cleanup) =
        call_member(client, member, &call, timers_now() + LIFE_SIGN_NS, &arena, &reply);
    return !error || error->from_peer || call_is_cancelled(client->calls);
}

struct error *
etcd_client_open_stream(struct etcd_client *client, unsigned member, const struct method *method,
                        struct client_call **out)
{
    const struct call_options options = {.metadata = &client->leader_wanted};
    return client_call_open(client->members[member].channel, method, &options, out);
}
