/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of moves share: two nodes in this process, on directories, and a registry in
 * memory. The calls between them are functions, which a test can make fail.
 */
#ifndef UNIT_MOVE_PAIR_H
#define UNIT_MOVE_PAIR_H

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>

#include "stream/stream_walk.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"
#include "volumes/remote_data.h"
#include "volumes_ends.h"

#define PAIR_ROWS 8

struct pair_row {
    char key[BACKEND_HANDLE_SIZE];
    struct owner owner;
};

/* Zeroed: all is well. A test changes them while the nodes work. */
struct pair_faults {
    atomic_bool is_lost[2];     /* this node, as the other one sees it */
    atomic_bool is_cut;         /* calls between the nodes do not arrive */
    atomic_ullong used_bytes;   /* that sources tell; 0: what they measure */
    _Atomic enum code open;     /* of opening the data at the source; CODE_OK: none */
    atomic_uint opens_that_end; /* with `open`; further ones are well */
    atomic_uint silences;       /* so many streams are open, and nothing comes */
    void (*on_open)(void *context);
    void (*on_read)(void *context); /* of an owner */
    void *context;
};

struct site {
    struct pair *pair;
    struct bench bench; /* its engine, store and back end */
    const char *id;
    struct site *other;
    struct ownership owners;
    struct move_cluster moves;
    struct remote_data remote;
    struct move_upkeep *upkeep;
};

struct pair {
    struct site sites[2];
    struct pair_faults faults;
    pthread_mutex_t lock; /* of what follows */
    struct pair_row rows[PAIR_ROWS];
    size_t row_count;
    atomic_uint member_reads;
    atomic_uint asks;
    atomic_uint renewals;
};

/* ---- the registry ---- */

static inline struct pair_row *
pair_row(struct pair *pair, const char *key)
{
    for (size_t i = 0; i < pair->row_count; i++)
        if (!strcmp(pair->rows[i].key, key))
            return &pair->rows[i];
    if (pair->row_count == PAIR_ROWS)
        abort();
    struct pair_row *row = &pair->rows[pair->row_count++];
    snprintf(row->key, sizeof row->key, "%s", key);
    row->owner = (struct owner){0};
    return row;
}

static inline struct error *
pair_read(void *context, const char *key, struct owner *out)
{
    struct pair *pair = ((struct site *)context)->pair;
    if (pair->faults.on_read)
        pair->faults.on_read(pair->faults.context);
    pthread_mutex_lock(&pair->lock);
    *out = pair_row(pair, key)->owner;
    pthread_mutex_unlock(&pair->lock);
    return NULL;
}

static inline struct error *
pair_swap(void *context, const char *key, const struct owner *from, const struct owner *to)
{
    struct pair *pair = ((struct site *)context)->pair;
    pthread_mutex_lock(&pair->lock);
    struct owner *owner = &pair_row(pair, key)->owner;
    if (owner->epoch == from->epoch && !strcmp(owner->node_id, from->node_id)) {
        uint64_t recovered = owner->recovered_epoch;
        *owner = *to;
        if (owner->recovered_epoch < recovered)
            owner->recovered_epoch = recovered;
    }
    pthread_mutex_unlock(&pair->lock);
    return NULL;
}

static inline struct error *
pair_forget(void *context, const char *key)
{
    struct pair *pair = ((struct site *)context)->pair;
    pthread_mutex_lock(&pair->lock);
    pair_row(pair, key)->owner = (struct owner){0};
    pthread_mutex_unlock(&pair->lock);
    return NULL;
}

static inline struct error *
pair_find_key(void *context, const char *handle, struct arena *arena, const char **key)
{
    (void)context;
    *key = arena_string(arena, handle);
    return NULL;
}

static inline struct error *
pair_read_changes(void *context, char out[OWNER_CHANGES_SIZE])
{
    (void)context;
    snprintf(out, OWNER_CHANGES_SIZE, "none");
    return NULL;
}

static inline struct error *
pair_add_member(void *context, const char *node_id)
{
    (void)context;
    (void)node_id;
    return NULL;
}

static inline struct error *
pair_members(void *context, struct arena *arena, const char *const **ids, size_t *count)
{
    struct pair *pair = ((struct site *)context)->pair;
    const char **out = arena_alloc(arena, 2 * sizeof *out);
    pair->member_reads++;
    out[0] = pair->sites[0].id;
    out[1] = pair->sites[1].id;
    *ids = out;
    *count = 2;
    return NULL;
}

/* ---- the other node ---- */

/* UNAVAILABLE: it is lost, or the nodes are cut from each other. */
static inline struct error *
pair_reach(const struct site *site)
{
    struct pair *pair = site->pair;
    if (pair->faults.is_cut || pair->faults.is_lost[site->other - pair->sites])
        return error_new(CODE_UNAVAILABLE, "%s does not answer", site->other->id);
    return NULL;
}

static inline struct engine *
pair_other(const struct site *site)
{
    return site->other->bench.engine;
}

static inline bool
pair_is_lost(void *context, const char *node_id)
{
    struct site *site = context;
    return !strcmp(node_id, site->other->id) &&
           site->pair->faults.is_lost[site->other - site->pair->sites];
}

static inline struct error *
pair_renew(void *context)
{
    ((struct site *)context)->pair->renewals++;
    return NULL;
}

static inline struct error *
pair_walk(void *context,
          struct error *(*take)(void *taker, const char *key, const struct owner *owner),
          void *taker)
{
    struct pair *pair = ((struct site *)context)->pair;
    struct error *error = NULL;
    for (size_t i = 0; !error && i < pair->row_count; i++) {
        struct owner owner;
        error = pair_read(context, pair->rows[i].key, &owner);
        if (!error && owner.epoch)
            error = take(taker, pair->rows[i].key, &owner);
    }
    return error;
}

static inline struct error *
pair_find_home(void *context, const char *key, struct arena *arena, const char **node_id)
{
    struct site *site = context;
    char home[HANDLE_HOME_SIZE], own[HANDLE_HOME_SIZE];
    (void)arena;
    handle_print_home(site->id, own);
    CHECK(handle_read_key(key, home));
    *node_id = strcmp(home, own) == 0 ? site->id : site->other->id;
    return NULL;
}

static inline struct move_presence
pair_presence(void *context)
{
    (void)context;
    return (struct move_presence){.since_return_ms = UINT64_MAX};
}

static inline struct error *
pair_describe(void *context, const char *node_id, const char *key, struct arena *arena,
              struct move_offer *out)
{
    struct site *site = context;
    struct error *error = pair_reach(site);
    CHECK_TEXT(node_id, site->other->id);
    if (!error)
        error = move_describe(pair_other(site), key, arena, out);
    if (!error && site->pair->faults.used_bytes)
        out->used_bytes = site->pair->faults.used_bytes;
    return error;
}

static inline struct error *
pair_begin(void *context, const char *node_id, const char *key, struct arena *arena,
           volume_record **out)
{
    struct site *site = context;
    struct error *error = pair_reach(site);
    CHECK_TEXT(node_id, site->other->id);
    return error ? error : move_begin(pair_other(site), key, site->id, arena, out);
}

static inline struct error *
pair_decide(void *context, const char *key, enum move_request request)
{
    struct site *site = context;
    enum move_outcome outcome;
    struct error *error = pair_reach(site);
    return error ? error
                 : error_forgive(move_decide(pair_other(site), key, request, &outcome),
                                 CODE_NOT_FOUND);
}

static inline struct error *
pair_give_up(void *context, const char *node_id, const char *key, uint64_t epoch)
{
    (void)node_id;
    CHECK(epoch > 0);
    return pair_decide(context, key, MOVE_ASK_GIVE_UP);
}

static inline struct error *
pair_settle(void *context, const char *node_id, const char *key)
{
    (void)node_id;
    return pair_decide(context, key, MOVE_ASK_NOTHING);
}

static inline struct error *
pair_ask(void *context, const char *node_id, const char *key, bool is_gone, struct move_answer *out)
{
    struct site *site = context;
    struct error *error = pair_reach(site);
    CHECK_TEXT(node_id, site->other->id);
    site->pair->asks++;
    return error ? error : move_ask(pair_other(site), key, is_gone, out);
}

static inline void
pair_count(void *context, const struct move_measure *measure)
{
    (void)context;
    (void)measure;
}

/* ---- data ---- */

static inline struct error *
pair_fail_open(struct pair_faults *faults)
{
    if (faults->on_open)
        faults->on_open(faults->context);
    enum code code = faults->open;
    unsigned left = faults->opens_that_end;
    if (code == CODE_OK || !left)
        return NULL;
    faults->opens_that_end = left - 1;
    return error_new(code, "the test does not want it");
}

/* Directories have no instant snapshots: the MOVING volume itself is sent. */
static inline struct error *
pair_open(void *context, const struct remote_open *request, struct arena *arena,
          struct remote_source *out)
{
    struct site *site = context;
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    volume_record *volume;
    struct error *error = pair_reach(site);
    if (!error)
        error = pair_fail_open(&site->pair->faults);
    if (!error)
        error = volume_take_moving(pair_other(site), request->handle, request->epoch, arena, &lock,
                                   &volume);
    if (error)
        return error;
    *out = (struct remote_source){.snapshot = volume->handle,
                                  .base = "",
                                  .node_id = site->other->id,
                                  .volume = volume->handle,
                                  .kind = KIND_TREE,
                                  .size_bytes = volume->size_bytes,
                                  .fs_type = ""};
    return NULL;
}

static inline struct error *
pair_fetch(void *context, const struct remote_fetch *fetch, struct stream_position *end)
{
    struct site *site = context;
    char path[4096];
    struct data data = {.kind = KIND_TREE, .role = ROLE_VOLUME};
    struct error *error = pair_reach(site);
    if (error)
        return error;
    if (site->pair->faults.silences) {
        site->pair->faults.silences--;
        while (!fetch->cancelled(fetch->context))
            usleep(1000);
        return error_new(CODE_CANCELLED, "the stream was cancelled");
    }
    snprintf(data.handle, sizeof data.handle, "%s", fetch->snapshot);
    must(backend_path(site->other->bench.backend, &data, path, sizeof path));
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(root >= 0);
    error = stream_walk_send(root, &fetch->from, &fetch->sink, end);
    close(root);
    return error;
}

static inline void
pair_close_source(void *context, const char *node_id, const char *snapshot)
{
    (void)context;
    (void)node_id;
    (void)snapshot;
}

/* ---- life ---- */

static inline void
site_join(struct site *site)
{
    site->owners = (struct ownership){
        .read = pair_read,
        .find_key = pair_find_key,
        .read_changes = pair_read_changes,
        .swap = pair_swap,
        .forget = pair_forget,
        .add_member = pair_add_member,
        .members = pair_members,
        .context = site,
    };
    site->moves = (struct move_cluster){
        .owners = &site->owners,
        .renew = pair_renew,
        .find_home = pair_find_home,
        .walk = pair_walk,
        .is_lost = pair_is_lost,
        .presence = pair_presence,
        .describe = pair_describe,
        .begin = pair_begin,
        .give_up = pair_give_up,
        .settle = pair_settle,
        .ask = pair_ask,
        .count = pair_count,
        .context = site,
    };
    site->remote = (struct remote_data){
        .open = pair_open,
        .fetch = pair_fetch,
        .close = pair_close_source,
        .keep = pair_close_source,
        .context = site,
    };
    atomic_store(&site->bench.engine->remote, &site->remote);
    atomic_store(&site->bench.engine->moves, &site->moves);
    atomic_store(&site->bench.engine->compared_returns, 1); /* nobody has recovered anything */
    atomic_store(&site->bench.engine->knows_its_volumes, true);
}

static inline void
pair_open_both(struct pair *pair)
{
    static const char *const ids[] = {"node-1", "node-2"};
    *pair = (struct pair){.row_count = 0};
    pthread_mutex_init(&pair->lock, NULL);
    for (unsigned i = 0; i < 2; i++) {
        struct site *site = &pair->sites[i];
        site->pair = pair;
        site->id = ids[i];
        site->other = &pair->sites[1 - i];
        bench_open_parts(&site->bench);
        struct engine_options options = {site->bench.store, site->bench.backend, &node_volume_use,
                                         site->id, &quiet};
        options.is_in_cluster = true;
        must(engine_open(&options, &site->bench.engine));
    }
    site_join(&pair->sites[0]);
    site_join(&pair->sites[1]);
}

/* From now on the node completes what is undecided by itself. */
static inline void
site_look_after(struct site *site)
{
    move_upkeep_start(site->bench.engine, &site->upkeep);
}

static inline void
pair_close_both(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++)
        move_upkeep_stop(pair->sites[i].upkeep);
    for (unsigned i = 0; i < 2; i++)
        engine_stop(pair->sites[i].bench.engine);
    for (unsigned i = 0; i < 2; i++)
        bench_close(&pair->sites[i].bench);
    pthread_mutex_destroy(&pair->lock);
}

/* ---- volumes ---- */

static inline struct error *
site_receive(struct site *site, const char *handle, uint64_t wait_ms)
{
    struct move_result result;
    return move_receive(site->bench.engine, &(struct move_order){.handle = handle}, wait_ms,
                        &result);
}

/* NULL: there is none. */
static inline const volume_record *
site_row(struct site *site, const char *handle)
{
    struct row row;
    struct error *error =
        rows_get(site->bench.engine, &volume_rows, handle, &site->bench.arena, &row);
    return take_code(error) == CODE_OK ? (const volume_record *)row.record : NULL;
}

/* -1: it has no row. */
static inline int
site_state(struct site *site, const char *handle)
{
    const volume_record *volume = site_row(site, handle);
    return volume ? (int)volume->state : -1;
}

static inline bool
site_comes_to(struct site *site, const char *handle, int state)
{
    for (unsigned waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += 10) {
        if (site_state(site, handle) == state)
            return true;
        usleep(10000);
    }
    return false;
}

#endif
