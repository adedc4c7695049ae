/* SPDX-License-Identifier: Apache-2.0 */
/* Membership: see cluster.h. */
#include "cluster/cluster.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cluster/cluster_metrics.h"
#include "cluster/member_rows.h"
#include "cluster/missing.h"
#include "cluster/protocol.h"
#include "cluster/remote_table.h"
#include "registry/client/announcer.h"
#include "registry/client/node_watcher.h"

#define RENEW_MS 10000u

struct cluster {
    atomic_uint references;
    struct cluster_options options;
    struct members *members;
    struct sender *sender;
    struct announcer *announcer;
    struct node_watcher *watcher;
    struct missing *missing; /* NULL: it has not begun, or is stopped */
    struct store *rows;
    /* The registry has told all members once: those that are registered, and the missing ones. */
    atomic_bool is_listed, has_looked;
    atomic_bool is_known; /* both */
    atomic_bool calls_are_stopped;
    atomic_uint unannounced;     /* connections of this node */
    atomic_ullong registered_ms; /* when the last attempt that has succeeded began; 0: none has */
    atomic_ullong attempt_ms;    /* when the one in progress began; 0: none is */
    atomic_ullong returns, returned_ms;
    struct cluster_metrics metrics;
    pthread_mutex_t lock;
    struct name_set forgotten; /* by the operator; with the lock */

    struct remote_table *remotes;
};

static uint32_t
renew_ms(const struct cluster *cluster)
{
    return cluster->options.renew_ms ? cluster->options.renew_ms : RENEW_MS;
}

/* ---- following ---- */

/* While the first list is read, only its end is told. */
static void
tell(const struct cluster *cluster)
{
    if (atomic_load(&cluster->is_known) && cluster->options.changed)
        cluster->options.changed(cluster->options.context);
}

static void
note_changed(void *context, const struct watched_node *node)
{
    struct cluster *cluster = context;
    struct member member = {
        .id = node->id,
        .address = node->address,
        .attributes = node->attributes,
        .is_expired = node->is_expired,
        .seen_ms = node->registered_ms,
    };
    members_set(cluster->members, &member);
    tell(cluster);
}

/* It is a member until the rows of the cluster say that it was forgotten. */
static void
note_removed(void *context, const char *id)
{
    struct cluster *cluster = context;
    members_miss(cluster->members, id);
    remote_table_drop(cluster->remotes, id);
    missing_look(cluster->missing);
    tell(cluster);
}

static void
complete(struct cluster *cluster)
{
    if (!atomic_load(&cluster->is_listed) || !atomic_load(&cluster->has_looked))
        return;
    members_complete(cluster->members);
    atomic_store(&cluster->is_known, true);
}

static void
note_completed(void *context)
{
    struct cluster *cluster = context;
    atomic_store(&cluster->is_listed, true);
    complete(cluster);
    tell(cluster);
}

static void
note_missing(void *context, const struct name_set *forgotten, bool has_changed)
{
    struct cluster *cluster = context;
    pthread_mutex_lock(&cluster->lock);
    name_set_clear(&cluster->forgotten);
    name_set_add_all(&cluster->forgotten, forgotten);
    pthread_mutex_unlock(&cluster->lock);
    bool is_first = !atomic_exchange(&cluster->has_looked, true);
    if (is_first)
        complete(cluster);
    if (is_first || has_changed)
        tell(cluster);
}

void
cluster_note_member(struct cluster *cluster, const char *node_id, const char *connection)
{
    if (strcmp(node_id, cluster->options.node_id) != 0)
        members_note(cluster->members, node_id, connection);
}

/*
 * Others see this node as lost when its registration is three times as old as a renewal should be.
 * It counts as away a little earlier, because they use their own clocks. An attempt counts from its
 * beginning: it may have taken effect then, and its answer may be late.
 */
static bool
is_away(const struct cluster *cluster)
{
    return clock_boot_ms() - atomic_load(&cluster->registered_ms) > UINT64_C(2) * renew_ms(cluster);
}

static void
note_attempt(void *context)
{
    struct cluster *cluster = context;
    atomic_store(&cluster->attempt_ms, clock_boot_ms());
}

static void
note_result(void *context, const struct error *error)
{
    struct cluster *cluster = context;
    if (!error && is_away(cluster)) {
        atomic_store(&cluster->returned_ms, clock_boot_ms());
        atomic_fetch_add(&cluster->returns, 1);
    }
    if (!error)
        atomic_store(&cluster->registered_ms, atomic_load(&cluster->attempt_ms));
    atomic_store(&cluster->attempt_ms, 0);
}

struct move_presence
cluster_presence(const struct cluster *cluster)
{
    uint64_t returned_ms = atomic_load(&cluster->returned_ms);
    return (struct move_presence){
        .is_away = is_away(cluster),
        .is_trying = atomic_load(&cluster->attempt_ms) != 0,
        .returns = atomic_load(&cluster->returns),
        .since_return_ms = returned_ms ? clock_boot_ms() - returned_ms : UINT64_MAX,
    };
}

/* ---- remotes ---- */

struct error *
cluster_remote(struct cluster *cluster, const struct member *member, struct remote **out)
{
    struct remote_options options = {
        .node_id = member->id,
        .address = member->address,
        .tls = cluster->options.tls,
        .runtime = cluster->options.runtime,
    };
    struct error *error =
        protocol_check(member->id, text_map_find(&member->attributes, CLUSTER_PROTOCOL));
    if (!error)
        error = remote_table_get(cluster->remotes, &options, out);
    if (!error && atomic_load(&cluster->calls_are_stopped))
        remote_stop(*out);
    return error;
}

void
cluster_stop_calls(struct cluster *cluster)
{
    atomic_store(&cluster->calls_are_stopped, true);
    sender_stop(cluster->sender);
    remote_table_stop(cluster->remotes);
}

struct member_list
cluster_members(struct cluster *cluster, struct arena *arena)
{
    return members_read(cluster->members, arena);
}

/* ---- leaving ---- */

static struct error *
find_lost(struct cluster *cluster, const char *node_id, bool *is_missing)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(cluster, &arena);
    for (size_t i = 0; i < members.count; i++) {
        if (strcmp(members.items[i].id, node_id) != 0)
            continue;
        *is_missing = members.items[i].is_missing;
        return members.items[i].is_expired
                   ? NULL
                   : error_new(CODE_FAILED_PRECONDITION,
                               "node \"%s\" is registered: only a lost node can be forgotten; "
                               "drain it, and stop it",
                               node_id);
    }
    return error_new(CODE_NOT_FOUND, "there is no node \"%s\" in the cluster", node_id);
}

struct error *
cluster_check_lost(struct cluster *cluster, const char *node_id)
{
    bool is_missing;
    return find_lost(cluster, node_id, &is_missing);
}

/* The registration goes last: until then the command can be repeated. */
struct error *
cluster_forget(struct cluster *cluster, const char *node_id)
{
    bool is_missing;
    struct error *error = find_lost(cluster, node_id, &is_missing);
    if (!error)
        error = member_rows_remove(cluster->rows, node_id);
    if (!error && !is_missing)
        error = announcer_remove_node(cluster->announcer, node_id);
    if (!error && members_forget(cluster->members, node_id))
        tell(cluster);
    return error;
}

const char *
cluster_node_id(const struct cluster *cluster)
{
    return cluster->options.node_id;
}

static bool
is_failing(struct cluster *cluster, const char *id)
{
    struct remote *remote = remote_table_find(cluster->remotes, id);
    bool result = remote && remote_is_failing(remote);
    remote_release(remote);
    return result;
}

const char *
cluster_print_lost(struct cluster *cluster, const char *list, struct arena *arena)
{
    struct member_list members = cluster_members(cluster, arena);
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        bool is_reached = member->is_expired || !is_failing(cluster, member->id);
        if (!member->is_expired && is_reached)
            continue;
        list = arena_print(arena, "%s%snode \"%s\"%s", list, list[0] ? ", " : "", member->id,
                           is_reached ? "" : " (it cannot be reached)");
    }
    return list;
}

bool
cluster_has_announced(const struct cluster *cluster)
{
    return atomic_load(&cluster->unannounced) == 0;
}

void
cluster_begin_announcement(struct cluster *cluster)
{
    atomic_fetch_add(&cluster->unannounced, 1);
}

void
cluster_end_announcement(struct cluster *cluster)
{
    atomic_fetch_sub(&cluster->unannounced, 1);
}

/* ---- metrics ---- */

void
cluster_count_move(struct cluster *cluster, const struct move_measure *measure)
{
    cluster_metrics_count_move(&cluster->metrics, measure);
}

void
cluster_count_received(struct cluster *cluster, uint64_t bytes)
{
    atomic_fetch_add_explicit(&cluster->metrics.received_bytes, bytes, memory_order_relaxed);
}

void
cluster_count_replicas(struct cluster *cluster, const struct replica_figures *before,
                       const struct replica_figures *now)
{
    cluster_metrics_count_replicas(&cluster->metrics, before, now);
}

void
cluster_count_replica_bytes(struct cluster *cluster, uint64_t bytes)
{
    atomic_fetch_add_explicit(&cluster->metrics.replicas.received_bytes, bytes,
                              memory_order_relaxed);
}

/* Calls to a node that has got another address are counted from 0 again. */
static struct peer_figures
figures_of(struct cluster *cluster, const struct member *member)
{
    struct peer_figures figures = {.node_id = member->id};
    struct remote_counts counts = {0};
    struct remote *remote = remote_table_find(cluster->remotes, member->id);
    if (remote)
        counts = remote_count(remote);
    remote_release(remote);
    figures.is_up = !member->is_expired && !counts.is_unreachable;
    figures.calls = counts.calls;
    figures.failures = counts.failures;
    return figures;
}

/* Those that are back do not count. */
static size_t
count_forgotten(struct cluster *cluster, const struct member_list *members)
{
    size_t count = 0;
    pthread_mutex_lock(&cluster->lock);
    for (size_t i = 0; i < cluster->forgotten.count; i++)
        count += !member_list_find(members, cluster->forgotten.names[i]);
    pthread_mutex_unlock(&cluster->lock);
    return count;
}

void
cluster_print_metrics(struct cluster *cluster, struct buffer *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct member_list members = cluster_members(cluster, &arena);
    struct peer_figures *peers = arena_alloc(&arena, members.count * sizeof *peers);
    struct node_figures nodes = {.forgotten = count_forgotten(cluster, &members)};
    size_t count = 0;
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        nodes.lost += member->is_expired;
        nodes.registered += !member->is_expired;
        nodes.draining += text_map_find(&member->attributes, CLUSTER_DRAINING) != NULL;
        if (strcmp(member->id, cluster->options.node_id) != 0)
            peers[count++] = figures_of(cluster, member);
    }
    cluster_metrics_print_nodes(&nodes, peers, count, out);
    sender_print_metrics(cluster->sender, out);
    cluster_metrics_print(&cluster->metrics, out);
}

/* ---- life ---- */

static struct error *
open_announcer(struct cluster *cluster)
{
    const struct cluster_options *options = &cluster->options;
    struct announcer_options announcer = {
        .registry = options->registry,
        .id = options->node_id,
        .is_node = true,
        .address = options->address,
        .delay_ms = renew_ms(cluster),
        .begins = note_attempt,
        .ends = note_result,
        .context = cluster,
        .tls = options->tls,
        .runtime = options->runtime,
        .log = options->log,
    };
    return announcer_open(&announcer, &cluster->announcer);
}

static struct error *
open_watcher(struct cluster *cluster)
{
    const struct cluster_options *options = &cluster->options;
    struct node_watcher_options watcher = {
        .registry = options->registry,
        .tls = options->tls,
        .runtime = options->runtime,
        .log = options->log,
        .changed = note_changed,
        .removed = note_removed,
        .completed = note_completed,
        .context = cluster,
    };
    return node_watcher_open(&watcher, &cluster->watcher);
}

static struct error *
open_rows(struct cluster *cluster)
{
    struct store_options options = {cluster->options.runtime, cluster->options.tls};
    char *url;
    if (asprintf(&url, "registry://%s", cluster->options.registry) < 0)
        memory_exhausted();
    struct error *error = store_open(url, &options, &cluster->rows);
    free(url);
    return error;
}

struct sender *
cluster_sender(const struct cluster *cluster)
{
    return cluster->sender;
}

struct store *
cluster_rows(struct cluster *cluster)
{
    return cluster->rows;
}

struct error *
cluster_open(const struct cluster_options *options, struct cluster **out)
{
    struct cluster *cluster = memory_zeroed(sizeof *cluster);
    atomic_init(&cluster->references, 1);
    cluster->options = *options;
    cluster->members = members_new();
    cluster->sender = sender_new(options->transfer_rate);
    cluster_metrics_init(&cluster->metrics);
    pthread_mutex_init(&cluster->lock, NULL);
    cluster->remotes = remote_table_new();
    struct error *error = open_announcer(cluster);
    if (!error)
        error = open_watcher(cluster);
    if (!error)
        error = open_rows(cluster);
    if (error) {
        cluster_close(cluster);
        return error_wrap(error, "--registry");
    }
    *out = cluster;
    return NULL;
}

void
cluster_set_attributes(struct cluster *cluster, const struct text_map *attributes)
{
    announcer_set_attributes(cluster->announcer, attributes);
}

void
cluster_begin(struct cluster *cluster)
{
    cluster->missing = missing_start(&(struct missing_options){
        .rows = cluster->rows,
        .members = cluster->members,
        .node_id = cluster->options.node_id,
        .pause_ms = renew_ms(cluster),
        .looked = note_missing,
        .context = cluster,
        .log = cluster->options.log,
    });
    announcer_begin(cluster->announcer);
    node_watcher_begin(cluster->watcher);
}

void
cluster_stop(struct cluster *cluster)
{
    if (!cluster)
        return;
    store_stop(cluster->rows);
    node_watcher_close(STEAL(cluster->watcher));
    missing_stop(STEAL(cluster->missing));
    announcer_close(STEAL(cluster->announcer));
}

static void
free_cluster(struct cluster *cluster)
{
    remote_table_free(cluster->remotes);
    if (cluster->rows)
        store_close(cluster->rows);
    members_free(cluster->members);
    name_set_clear(&cluster->forgotten);
    pthread_mutex_destroy(&cluster->lock);
    sender_free(cluster->sender);
    free(cluster);
}

void
cluster_close(struct cluster *cluster)
{
    if (!cluster)
        return;
    cluster_stop(cluster);
    cluster_release(cluster);
}

struct cluster *
cluster_share(struct cluster *cluster)
{
    atomic_fetch_add_explicit(&cluster->references, 1, memory_order_relaxed);
    return cluster;
}

void
cluster_release(struct cluster *cluster)
{
    if (atomic_fetch_sub_explicit(&cluster->references, 1, memory_order_acq_rel) == 1)
        free_cluster(cluster);
}
