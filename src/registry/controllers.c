/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All registered controllers in memory: see controllers.h.
 *
 * One lock, held for some hundred nanoseconds, or for about 1 ms when 100,000 controllers are
 * swept.
 *
 * A removed controller is kept for a while as a tombstone with its revision, so that older changes,
 * which may arrive late, do not bring it back.
 */
#include "registry/controllers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "message/message_time.h"
#include "registry/client/path.h"
#include "registry/controller_table.h"
#include "rpc/http2/address.h"
#include "rpc/loop/timers.h"
#include "rpc/proxy/proxy.h"

#define KEEPALIVE_MS 30000u
#define LONGEST_PAUSE_MS 5000u /* between attempts to connect to a controller that is down */
#define TOMBSTONE_MS 60000     /* longer than a change takes to arrive */
#define SILENCE_MS 5000        /* how late the loss of the store may be noticed */
#define PAUSE_MS 2000          /* without a word of the store: this process did not run */

struct controllers {
    struct runtime *runtime;
    struct tls_context *tls;
    bool is_open;
    uint32_t list;            /* number of the current list, or of the last one */
    _Atomic int64_t heard_ms; /* when renewals could last be received; 0: never */
    _Atomic int64_t lost_ms;  /* when the store was lost last; 0: never */
    _Atomic int64_t found_ms; /* when it was found again; 0: not yet */
    pthread_mutex_t lock;     /* for the table */
    struct controller_table table;
};

/* ---- expiry ---- */

/* When it expires: see controllers_store_lost. INT64_MAX: never, or unknown. */
static int64_t
expiry_of(const struct controllers *controllers, int64_t registered_ms, int64_t expires_ms,
          int64_t now_ms)
{
    int64_t heard_ms = atomic_load(&controllers->heard_ms);
    int64_t lost_ms = atomic_load(&controllers->lost_ms);
    int64_t found_ms = atomic_load(&controllers->found_ms);
    if (!expires_ms || (now_ms - heard_ms > PAUSE_MS && expires_ms > heard_ms))
        return INT64_MAX;
    if (!lost_ms || expires_ms <= lost_ms)
        return expires_ms;
    if (!found_ms)
        return INT64_MAX;
    int64_t again_ms = found_ms + (expires_ms - registered_ms);
    return again_ms > expires_ms ? again_ms : expires_ms;
}

static bool
is_expired(const struct controllers *controllers, const struct controller *controller,
           int64_t now_ms)
{
    return !controller->is_tombstone && expiry_of(controllers, controller->registered_ms,
                                                  controller->expires_ms, now_ms) <= now_ms;
}

bool
controllers_is_expired(const struct controllers *controllers, const struct entry *entry,
                       int64_t now_ms)
{
    return expiry_of(controllers, entry->registered_ms, entry->expires_ms, now_ms) <= now_ms;
}

/* ---- changes ---- */

/* An entry that is not in the store has revision 0: the next change from the store is newer. */
static void
take(struct controller *controller, const struct entry *entry)
{
    controller->is_tombstone = !entry->value[0];
    if (entry->revision)
        controller->revision = entry->revision;
    controller->registered_ms = entry->registered_ms;
    controller->expires_ms =
        controller->is_tombstone ? clock_unix_ms() + TOMBSTONE_MS : entry->expires_ms;
    controller->is_expiry_told = false;
    controller->has_news = true;
}

/* Its attributes are packed in the arena. */
static struct announced
announced_of(const struct entry *entry, struct arena *arena)
{
    struct announced announced = {.address = entry->value};
    const struct entry attributes = {.attributes = entry->attributes};
    if (entry->attributes.count)
        announced.attributes = entries_pack(&attributes, arena, &announced.attributes_size);
    return announced;
}

/* What watches are told of, without the times. 0: it was removed. */
static uint64_t
hash_of(const struct entry *entry, const struct announced *announced)
{
    uint64_t hash = hash_text(announced->address) * 31 +
                    hash_bytes((const char *)announced->attributes, announced->attributes_size);
    return entry->value[0] ? (hash << 2) + (entry->expires_ms ? 3 : 1) : 0;
}

/* "ID/address", or "nodes/ID/address": `*id_size` is the length of what is before "/address". */
static bool
is_announced(const char *path, size_t *id_size)
{
    const char *node = path_find_node(path, id_size);
    if (node)
        *id_size += (size_t)(node - path);
    return (node || path_is_address(path, id_size)) && *id_size <= PATH_MAX_ID_BYTES;
}

/*
 * A watch that has listed the entry since it expired knows it as expired, even if the sweep has not
 * told of it yet. Here an entry counts as expired also if it has got more time since.
 */
static uint64_t
told_of(const struct controller *controller)
{
    bool is_past = controller && controller->expires_ms && !controller->is_tombstone &&
                   controller->expires_ms <= clock_unix_ms();
    return controller && !is_past ? controller->told : 0;
}

/* The lock is held. */
static struct controller *
put(struct controller_table *table, const struct entry *entry, size_t id_size,
    const struct announced *announced)
{
    struct controller *controller = controller_table_find(table, entry->path, id_size);
    if (controller && entry->revision && controller->revision >= entry->revision)
        return controller;
    uint64_t revision = controller ? controller->revision : 0;
    uint64_t told = told_of(controller);
    controller = controller_table_put(table, entry->path, id_size, announced);
    controller->revision = revision;
    controller->told = told;
    take(controller, entry);
    return controller;
}

enum source { FROM_WRITER, FROM_CHANGES, FROM_LIST };

/* True: watches have to be told. */
static bool
note(struct controllers *controllers, const struct entry *entry, enum source source)
{
    size_t id_size;
    if (!is_announced(entry->path, &id_size))
        return true;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct announced announced = announced_of(entry, &arena);
    uint64_t hash = hash_of(entry, &announced);
    pthread_mutex_lock(&controllers->lock);
    struct controller *controller = put(&controllers->table, entry, id_size, &announced);
    bool is_news = !hash || hash != controller->told;
    if (source != FROM_WRITER)
        controller->told = hash;
    if (source == FROM_LIST)
        controller->list = controllers->list;
    pthread_mutex_unlock(&controllers->lock);
    return is_news;
}

void
controllers_note(struct controllers *controllers, const struct entry *entry)
{
    note(controllers, entry, FROM_WRITER);
}

bool
controllers_note_change(struct controllers *controllers, const struct entry *entry)
{
    return note(controllers, entry, FROM_CHANGES);
}

void
controllers_note_unstored(struct controllers *controllers, const struct entry *entry)
{
    struct entry unstored = *entry;
    unstored.revision = 0;
    note(controllers, &unstored, FROM_WRITER);
}

/* In an order in which nobody reads the new loss with the old end. */
static void
set_lost(struct controllers *controllers, int64_t since_ms)
{
    atomic_store(&controllers->found_ms, 0);
    atomic_store(&controllers->lost_ms, since_ms);
}

static bool
is_lost(const struct controllers *controllers)
{
    return atomic_load(&controllers->lost_ms) && !atomic_load(&controllers->found_ms);
}

void
controllers_store_lost(struct controllers *controllers)
{
    int64_t heard_ms = atomic_load(&controllers->heard_ms);
    if (heard_ms && !is_lost(controllers))
        set_lost(controllers, heard_ms - SILENCE_MS);
}

void
controllers_store_heard(struct controllers *controllers)
{
    int64_t now_ms = clock_unix_ms(), heard_ms = atomic_load(&controllers->heard_ms);
    if (!is_lost(controllers) && now_ms - heard_ms > PAUSE_MS)
        set_lost(controllers, heard_ms);
    if (is_lost(controllers))
        atomic_store(&controllers->found_ms, now_ms);
    atomic_store(&controllers->heard_ms, now_ms);
}

/* ---- lists and sweeps ---- */

static void
walk(struct controllers *controllers, bool (*visit)(void *context, struct controller *controller),
     void *context)
{
    pthread_mutex_lock(&controllers->lock);
    controller_table_walk(&controllers->table, visit, context);
    pthread_mutex_unlock(&controllers->lock);
}

void
controllers_begin_list(struct controllers *controllers)
{
    controllers->list++;
}

void
controllers_note_listed(struct controllers *controllers, const struct entry *entry)
{
    note(controllers, entry, FROM_LIST);
    if (entry->registered_ms > atomic_load(&controllers->heard_ms))
        atomic_store(&controllers->heard_ms, entry->registered_ms);
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
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct announced announced = controller_announced(controller);
    struct entry entry;
    if (!entries_unpack(announced.attributes, announced.attributes_size, &arena, &entry))
        entry.attributes = (struct text_map){0};
    entry.path = path;
    entry.value = announced.address;
    entry.registered_ms = controller->registered_ms;
    entry.expires_ms = controller->expires_ms;
    entry.revision = controller->revision;
    snprintf(path, sizeof path, "%s/address", controller->text);
    controller->is_expiry_told = true;
    controller->told = 0;
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
    if (controller->is_tombstone)
        return controller->expires_ms <= sweep->now_ms;
    if (controller->channel && timers_now() - controller->used_at >= sweep->idle_ns)
        channel_retire(STEAL(controller->channel));
    if (controller->is_expiry_told)
        return false;
    int64_t expires_ms = expiry_of(sweeping->controllers, controller->registered_ms,
                                   controller->expires_ms, sweep->now_ms);
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
    struct controllers_counts *counts = &counting->counts;
    bool is_node = controller_is_node(controller);
    *(is_node ? &counts->nodes : &counts->registered) += !controller->is_tombstone;
    *(is_node ? &counts->nodes_expired : &counts->expired) +=
        is_expired(counting->controllers, controller, counting->now_ms);
    counts->channels += controller->channel != NULL;
    return false;
}

struct controllers_counts
controllers_count(struct controllers *controllers)
{
    struct counting counting = {.controllers = controllers, .now_ms = clock_unix_ms()};
    walk(controllers, count_one, &counting);
    return counting.counts;
}

/* ---- forwarding ---- */

static struct error *
open_channel(struct controllers *controllers, struct controller *controller)
{
    char name[sizeof "controller." + PATH_MAX_ID_BYTES];
    const char *text = controller_announced(controller).address;
    struct address address;
    struct error *error = address_parse(text, &address);
    if (error)
        return error;
    if (!controllers->tls && !controllers->is_open && !address_is_local(&address))
        return error_new(CODE_UNAVAILABLE,
                         "%s is not a unix socket, and the registry has neither certificates nor "
                         "--insecure",
                         text);
    snprintf(name, sizeof name, "controller.%s", controller->text);
    struct channel_options options = {
        .tls = controllers->tls,
        .tls_name = name,
        .max_backoff_ms = LONGEST_PAUSE_MS,
        .keepalive_ms = address_is_local(&address) ? 0 : KEEPALIVE_MS,
    };
    return channel_open(controllers->runtime, text, &options, &controller->channel);
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
forward(struct controllers *controllers, struct controller *controller, struct call *call)
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
controllers_forward(struct controllers *controllers, const char *id, struct call *call)
{
    pthread_mutex_lock(&controllers->lock);
    struct controller *controller = controller_table_find(&controllers->table, id, strlen(id));
    struct error *error =
        controller && !controller->is_tombstone && !controller_is_node(controller)
            ? forward(controllers, controller, call)
            : error_new(CODE_UNAVAILABLE, "controller \"%s\" is not registered", id);
    pthread_mutex_unlock(&controllers->lock);
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
    pthread_mutex_init(&controllers->lock, NULL);
    controller_table_init(&controllers->table);
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
    controller_table_free(&controllers->table);
    pthread_mutex_destroy(&controllers->lock);
    free(controllers);
}
