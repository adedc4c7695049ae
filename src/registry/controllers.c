/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All registered controllers in memory: see controllers.h.
 *
 * DESIGN. A hash table in parts, each with a lock of its own that is held for some hundred
 * nanoseconds, or while one part grows or is swept: nothing ever holds all of them, so the loop
 * never waits for a walk over everything. One block of memory for each controller.
 *
 * What was removed stays for a while as a mark with its revision, so that older news of it, which
 * may still be on its way, does not bring it back.
 */
#include "registry/controllers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "message/message_time.h"
#include "registry/path.h"
#include "rpc/client/channel.h"
#include "rpc/http2/address.h"
#include "rpc/loop/timers.h"
#include "rpc/proxy/proxy.h"

#define PARTS 64u
#define FIRST_BUCKETS 16u
#define KEEPALIVE_MS 30000u
#define LONGEST_PAUSE_MS 5000u /* between attempts to connect to a controller that is down */
#define MARK_MS 60000          /* how long news may be on its way */

struct controller {
    struct controller *next;
    struct channel *channel; /* NULL: nobody has called it yet */
    uint64_t revision;
    uint64_t used_at; /* of the channel */
    int64_t registered_ms;
    int64_t expires_ms; /* 0: never; of a mark: when it may go */
    uint32_t hash;
    uint32_t list; /* the last list that it was in */
    bool is_mark;  /* it was removed */
    bool is_told;  /* its expiry was */
    bool has_news; /* it was heard of since the last call */
    uint8_t id_size;
    char text[]; /* the id, then the address, each with a NUL behind */
};

_Static_assert(PATH_MAX_ID_BYTES <= UINT8_MAX, "a length of an id must fit");

struct part {
    pthread_mutex_t lock;
    struct controller **buckets; /* bucket_count is a power of two */
    size_t bucket_count;
    size_t count;
};

struct controllers {
    struct runtime *runtime;
    struct tls_context *tls;
    bool is_open;
    uint32_t list;            /* number of the list that is being made, or was made last */
    _Atomic int64_t lost_ms;  /* when the store was lost last; 0: never */
    _Atomic int64_t found_ms; /* when it was found again; 0: it was not */
    struct part parts[PARTS];
};

/* ---- finding ---- */

/* FNV-1a, with the bits mixed once more: the part and the bucket are taken from its two ends. */
static uint32_t
hash_of(const char *id, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)id[i]) * UINT64_C(1099511628211);
    return (uint32_t)(hash >> 32) ^ (uint32_t)hash;
}

static struct part *
part_of(struct controllers *controllers, uint32_t hash)
{
    return &controllers->parts[hash >> 26];
}

static struct controller **
bucket_of(const struct part *part, uint32_t hash)
{
    return &part->buckets[hash & (part->bucket_count - 1)];
}

/* The place that points to it, or the end of its chain. With the part's lock held, as all below. */
static struct controller **
find(const struct part *part, uint32_t hash, const char *id, size_t id_size)
{
    struct controller **place = bucket_of(part, hash);
    while (*place && !((*place)->hash == hash && (*place)->id_size == id_size &&
                       !memcmp((*place)->text, id, id_size)))
        place = &(*place)->next;
    return place;
}

static const char *
address_of(const struct controller *controller)
{
    return controller->text + controller->id_size + 1;
}

/* When it expires, as controllers_lose_store has it. INT64_MAX: not as far as can be told. */
static int64_t
expiry_of(const struct controllers *controllers, const struct controller *controller)
{
    int64_t lost_ms = atomic_load(&controllers->lost_ms);
    int64_t found_ms = atomic_load(&controllers->found_ms);
    int64_t expires_ms = controller->expires_ms;
    if (!expires_ms)
        return INT64_MAX;
    if (!lost_ms || expires_ms <= lost_ms)
        return expires_ms;
    if (!found_ms)
        return INT64_MAX;
    int64_t again_ms = found_ms + (expires_ms - controller->registered_ms);
    return again_ms > expires_ms ? again_ms : expires_ms;
}

static bool
is_expired(const struct controllers *controllers, const struct controller *controller,
           int64_t now_ms)
{
    return !controller->is_mark && expiry_of(controllers, controller) <= now_ms;
}

/* ---- changing ---- */

static void
grow(struct part *part)
{
    struct controller **old = part->buckets;
    size_t old_count = part->bucket_count;
    part->bucket_count = 2 * old_count;
    part->buckets = memory_zeroed(part->bucket_count * sizeof(void *));
    for (size_t i = 0; i < old_count; i++) {
        while (old[i]) {
            struct controller *moved = old[i];
            old[i] = moved->next;
            struct controller **bucket = bucket_of(part, moved->hash);
            moved->next = *bucket;
            *bucket = moved;
        }
    }
    free(old);
}

/* Takes it out and frees it. Calls that are being passed on to it go on. */
static void
drop(struct part *part, struct controller **place)
{
    struct controller *controller = *place;
    *place = controller->next;
    part->count--;
    channel_retire(controller->channel);
    free(controller);
}

static struct controller *
make(const struct entry *entry, uint32_t hash, size_t id_size)
{
    size_t value_size = strlen(entry->value);
    struct controller *made = memory_zeroed(sizeof *made + id_size + value_size + 2);
    made->hash = hash;
    made->id_size = (uint8_t)id_size;
    memcpy(made->text, entry->path, id_size);
    memcpy(made->text + id_size + 1, entry->value, value_size);
    return made;
}

/* Puts what the entry says in the place of what stands there, if anything does. */
static struct controller *
replace(struct part *part, struct controller **place, const struct entry *entry, uint32_t hash,
        size_t id_size)
{
    struct controller *old = *place;
    if (old && !strcmp(address_of(old), entry->value))
        return old;
    struct controller *made = make(entry, hash, id_size);
    if (old)
        drop(part, place);
    made->next = *place;
    *place = made;
    part->count++;
    return made;
}

/* Of news that are not in the store the revision stays: whatever the store tells next is newer. */
static void
take(struct controller *controller, const struct entry *entry)
{
    controller->is_mark = !entry->value[0];
    if (entry->revision)
        controller->revision = entry->revision;
    controller->registered_ms = entry->registered_ms;
    controller->expires_ms = controller->is_mark ? clock_unix_ms() + MARK_MS : entry->expires_ms;
    controller->is_told = false;
    controller->has_news = true;
}

static void
note(struct controllers *controllers, const struct entry *entry, bool is_listed)
{
    size_t id_size;
    if (!path_is_address(entry->path, &id_size) || id_size > PATH_MAX_ID_BYTES)
        return;
    uint32_t hash = hash_of(entry->path, id_size);
    struct part *part = part_of(controllers, hash);
    pthread_mutex_lock(&part->lock);
    struct controller **place = find(part, hash, entry->path, id_size);
    if (!*place || !entry->revision || (*place)->revision < entry->revision) {
        uint64_t revision = *place ? (*place)->revision : 0;
        struct controller *controller = replace(part, place, entry, hash, id_size);
        controller->revision = revision;
        take(controller, entry);
    }
    if (is_listed)
        (*place)->list = controllers->list;
    if (part->count > part->bucket_count)
        grow(part);
    pthread_mutex_unlock(&part->lock);
}

void
controllers_note(struct controllers *controllers, const struct entry *entry)
{
    note(controllers, entry, false);
}

void
controllers_note_unstored(struct controllers *controllers, const struct entry *entry)
{
    struct entry unstored = *entry;
    unstored.revision = 0;
    note(controllers, &unstored, false);
}

void
controllers_lose_store(struct controllers *controllers, int64_t since_ms)
{
    atomic_store(&controllers->found_ms, 0);
    atomic_store(&controllers->lost_ms, since_ms);
}

void
controllers_find_store(struct controllers *controllers)
{
    atomic_store(&controllers->found_ms, clock_unix_ms());
}

/* ---- walking, a part at a time ---- */

/* What `visit` says true of is dropped. */
static void
walk(struct controllers *controllers, bool (*visit)(void *context, struct controller *controller),
     void *context)
{
    for (size_t i = 0; i < PARTS; i++) {
        struct part *part = &controllers->parts[i];
        pthread_mutex_lock(&part->lock);
        for (size_t j = 0; j < part->bucket_count; j++) {
            struct controller **place = &part->buckets[j];
            while (*place) {
                if (visit(context, *place))
                    drop(part, place);
                else
                    place = &(*place)->next;
            }
        }
        pthread_mutex_unlock(&part->lock);
    }
}

void
controllers_begin_list(struct controllers *controllers)
{
    controllers->list++;
}

void
controllers_note_listed(struct controllers *controllers, const struct entry *entry)
{
    note(controllers, entry, true);
}

struct listed {
    uint32_t list;
    uint64_t revision;
};

static bool
is_gone(void *context, struct controller *controller)
{
    const struct listed *listed = context;
    return controller->list != listed->list && controller->revision <= listed->revision;
}

void
controllers_end_list(struct controllers *controllers, uint64_t revision)
{
    walk(controllers, is_gone, &(struct listed){controllers->list, revision});
}

static void
tell_expired(struct controllers_sweep *sweep, struct controller *controller)
{
    char path[PATH_MAX_BYTES + 1];
    struct entry entry = {
        .path = path,
        .value = address_of(controller),
        .registered_ms = controller->registered_ms,
        .expires_ms = controller->expires_ms,
        .revision = controller->revision,
    };
    snprintf(path, sizeof path, "%s/address", controller->text);
    controller->is_told = true;
    sweep->tell(sweep->context, &entry);
}

struct sweeping {
    const struct controllers *controllers;
    struct controllers_sweep *sweep;
};

static bool
sweep_one(void *context, struct controller *controller)
{
    const struct sweeping *sweeping = context;
    struct controllers_sweep *sweep = sweeping->sweep;
    if (controller->is_mark)
        return controller->expires_ms <= sweep->now_ms;
    if (controller->channel && timers_now() - controller->used_at >= sweep->idle_ns)
        channel_retire(STEAL(controller->channel));
    if (controller->is_told)
        return false;
    int64_t expires_ms = expiry_of(sweeping->controllers, controller);
    if (expires_ms <= sweep->now_ms)
        tell_expired(sweep, controller);
    else if (expires_ms < sweep->next_ms)
        sweep->next_ms = expires_ms;
    return false;
}

void
controllers_sweep(struct controllers *controllers, struct controllers_sweep *sweep)
{
    sweep->next_ms = INT64_MAX;
    walk(controllers, sweep_one, &(struct sweeping){controllers, sweep});
}

struct counting {
    const struct controllers *controllers;
    int64_t now_ms;
    struct controllers_counts counts;
};

static bool
count_one(void *context, struct controller *controller)
{
    struct counting *counting = context;
    counting->counts.registered += !controller->is_mark;
    counting->counts.expired += is_expired(counting->controllers, controller, counting->now_ms);
    counting->counts.channels += controller->channel != NULL;
    return false;
}

struct controllers_counts
controllers_count(struct controllers *controllers)
{
    struct counting counting = {.controllers = controllers, .now_ms = clock_unix_ms()};
    walk(controllers, count_one, &counting);
    return counting.counts;
}

/* ---- passing calls on ---- */

static struct error *
open_channel(struct controllers *controllers, struct controller *controller)
{
    char name[sizeof "controller." + PATH_MAX_ID_BYTES];
    struct address address;
    struct error *error = address_parse(address_of(controller), &address);
    if (error)
        return error;
    if (!controllers->tls && !controllers->is_open && !address_is_local(&address))
        return error_new(CODE_UNAVAILABLE,
                         "%s is not a unix socket, and the registry has neither certificates nor "
                         "--insecure",
                         address_of(controller));
    snprintf(name, sizeof name, "controller.%s", controller->text);
    struct channel_options options = {
        .tls = controllers->tls,
        .tls_name = name,
        .max_backoff_ms = LONGEST_PAUSE_MS,
        .keepalive_ms = address_is_local(&address) ? 0 : KEEPALIVE_MS,
    };
    return channel_open(controllers->runtime, address_of(controller), &options,
                        &controller->channel);
}

static struct error *
expired_error(const struct controller *controller)
{
    struct buffer time AUTO(buffer_clear) = {0};
    message_time_print_timestamp(controller->expires_ms / 1000,
                                 (int32_t)(controller->expires_ms % 1000) * 1000000, &time);
    return error_new(CODE_UNAVAILABLE,
                     "controller \"%s\": its registration expired at %s and was not renewed",
                     controller->text, buffer_text(&time));
}

static struct error *
pass(struct controllers *controllers, struct controller *controller, struct call *call)
{
    struct error *error = NULL;
    if (is_expired(controllers, controller, clock_unix_ms()))
        return expired_error(controller);
    if (!controller->channel)
        error = open_channel(controllers, controller);
    if (error) {
        error->code = CODE_UNAVAILABLE;
        return error_wrap(error, "controller \"%s\"", controller->text);
    }
    if (controller->has_news)
        channel_end_backoff(controller->channel);
    controller->has_news = false;
    controller->used_at = timers_now();
    rpc_proxy(call, controller->channel);
    return NULL;
}

struct error *
controllers_pass(struct controllers *controllers, const char *id, struct call *call)
{
    size_t id_size = strlen(id);
    uint32_t hash = hash_of(id, id_size);
    struct part *part = part_of(controllers, hash);
    pthread_mutex_lock(&part->lock);
    struct controller *controller = *find(part, hash, id, id_size);
    struct error *error =
        controller && !controller->is_mark
            ? pass(controllers, controller, call)
            : error_new(CODE_UNAVAILABLE, "controller \"%s\" is not registered", id);
    pthread_mutex_unlock(&part->lock);
    return error;
}

/* ---- life ---- */

struct controllers *
controllers_new(struct runtime *runtime, struct tls_context *tls, bool is_open)
{
    struct controllers *controllers = memory_zeroed(sizeof *controllers);
    controllers->runtime = runtime;
    controllers->tls = tls;
    controllers->is_open = is_open;
    for (size_t i = 0; i < PARTS; i++) {
        struct part *part = &controllers->parts[i];
        pthread_mutex_init(&part->lock, NULL);
        part->bucket_count = FIRST_BUCKETS;
        part->buckets = memory_zeroed(FIRST_BUCKETS * sizeof(void *));
    }
    return controllers;
}

static bool
close_one(void *context, struct controller *controller)
{
    (void)context;
    channel_close(STEAL(controller->channel));
    return true;
}

void
controllers_free(struct controllers *controllers)
{
    if (!controllers)
        return;
    walk(controllers, close_one, NULL);
    for (size_t i = 0; i < PARTS; i++) {
        free(controllers->parts[i].buckets);
        pthread_mutex_destroy(&controllers->parts[i].lock);
    }
    free(controllers);
}
