/* SPDX-License-Identifier: Apache-2.0 */
/* Repositories that are open: see repository_pool.h. */
#include "volumes/repository_pool.h"

#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "repository/patience.h"
#include "volumes/engine.h"

#define PROBE_MS 3000u
#define PAUSE_MIN_MS 2000u
#define PAUSE_MAX_MS 10000u
#define LOOK_MS 200 /* how late the end of a wait may be noticed */

struct pooled_repository {
    struct pooled_repository *next;
    char *name, *url;
    unsigned users;
    bool is_opening;
    struct repository *repository;
    pthread_cond_t opened;
};

void
repository_pool_init(struct repository_pool *pool)
{
    pthread_mutex_init(&pool->lock, NULL);
    pool->first = NULL;
    pool->tasks = NULL;
}

void
repository_pool_clear(struct repository_pool *pool)
{
    pthread_mutex_destroy(&pool->lock);
}

static struct error *
refuse(void)
{
    return error_new(CODE_FAILED_PRECONDITION,
                     "this server has no repositories: start it with --repositories DIR");
}

struct error *
repository_pool_find(struct engine *engine, const char *name, struct arena *arena,
                     struct repository_place *out)
{
    const struct repository_places *places = engine->repositories;
    if (!places)
        return refuse();
    struct error *error = places->find(places->context, name, arena, out);
    if (!error)
        error = files_make_path(engine->cache_directory);
    if (error)
        return error;
    out->options.nodes = atomic_load(&engine->repository_nodes);
    if (engine->home[0] && !out->options.nodes && !strncmp(out->options.url, "node:", 5))
        return error_new(CODE_UNAVAILABLE, "this node has not joined its cluster yet");
    out->options.log = engine->log;
    out->options.is_stopping = &engine->is_stopping;
    out->options.roster = places->roster;
    out->options.cache_directory =
        arena_print(arena, "%s/repository-%s", engine->cache_directory, name);
    return files_make_path(out->options.cache_directory);
}

struct error *
repository_pool_list(struct engine *engine, struct arena *arena, struct text_list *out)
{
    const struct repository_places *places = engine->repositories;
    return places ? places->list(places->context, arena, out) : refuse();
}

struct error *
repository_pool_choose(struct engine *engine, const char *asked, struct arena *arena,
                       const char **out)
{
    struct text_list names;
    *out = asked;
    if (asked[0])
        return NULL;
    struct error *error = repository_pool_list(engine, arena, &names);
    if (error)
        return error;
    if (names.count != 1)
        return error_new(CODE_INVALID_ARGUMENT, "which repository? There are %zu; name one",
                         names.count);
    *out = names.items[0];
    return NULL;
}

/* ---- with the lock held ---- */

/* The file of a repository may have changed: another address is another repository. */
static struct pooled_repository *
find(struct repository_pool *pool, const struct repository_place *place)
{
    struct pooled_repository *one = pool->first;
    while (one &&
           (strcmp(one->name, place->name) != 0 || strcmp(one->url, place->options.url) != 0))
        one = one->next;
    return one;
}

static struct pooled_repository *
add(struct repository_pool *pool, const struct repository_place *place)
{
    struct pooled_repository *one = memory_zeroed(sizeof *one);
    one->name = memory_string(place->name);
    one->url = memory_string(place->options.url);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&one->opened, &monotonic);
    pthread_condattr_destroy(&monotonic);
    one->next = pool->first;
    pool->first = one;
    return one;
}

static void
drop_user(struct repository_pool *pool, struct pooled_repository *one)
{
    if (--one->users)
        return;
    struct pooled_repository **at = &pool->first;
    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    repository_close(one->repository);
    pthread_cond_destroy(&one->opened);
    free(one->name);
    free(one->url);
    free(one);
}

/* Opens it, or waits for who does. Gives up the lock meanwhile. */
static struct error *
open_pooled(struct repository_pool *pool, struct pooled_repository *one,
            const struct repository_options *options)
{
    while (one->is_opening) {
        struct timespec until = clock_after_ms(LOOK_MS);
        pthread_cond_timedwait(&one->opened, &pool->lock, &until);
        if (one->is_opening && patience_is_over())
            return error_new(CODE_UNAVAILABLE, "it does not answer");
    }
    if (one->repository)
        return NULL;
    one->is_opening = true;
    pthread_mutex_unlock(&pool->lock);
    struct repository *repository = NULL;
    struct error *error = repository_open(options, &repository);
    pthread_mutex_lock(&pool->lock);
    one->repository = repository;
    one->is_opening = false;
    pthread_cond_broadcast(&one->opened);
    return error;
}

/* ---- using ---- */

struct error *
repository_pool_open(struct engine *engine, const char *name, struct repository_use *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct repository_pool *pool = &engine->repository_pool;
    struct repository_place place = {0};
    struct error *error = repository_pool_find(engine, name, &arena, &place);
    if (error)
        return error;
    pthread_mutex_lock(&pool->lock);
    struct pooled_repository *one = find(pool, &place);
    if (!one)
        one = add(pool, &place);
    one->users++;
    error = open_pooled(pool, one, &place.options);
    if (error)
        drop_user(pool, one);
    else
        *out = (struct repository_use){one->repository, one, pool};
    pthread_mutex_unlock(&pool->lock);
    return error_wrap(error, "repository \"%s\"", name);
}

void
repository_pause(struct repository_pause *pause, const struct progress *progress)
{
    bool is_longer = pause->is_down && pause->ms;
    pause->ms = is_longer ? 2 * pause->ms : PAUSE_MIN_MS;
    if (pause->ms > PAUSE_MAX_MS)
        pause->ms = PAUSE_MAX_MS;
    progress_rest(progress, pause->ms);
}

static struct error *
probe(struct engine *engine, const char *name)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct repository_place place = {0};
    struct patience patience AUTO(patience_end) = {.until_ms = clock_now_ms() + PROBE_MS};
    patience_begin(&patience);
    struct error *error = repository_pool_find(engine, name, &arena, &place);
    if (!error)
        error = repository_probe(&place.options);
    return error_wrap(error, "repository \"%s\"", name);
}

struct error *
repository_pool_open_soon(struct engine *engine, const char *name, struct repository_use *out)
{
    struct error *error = probe(engine, name);
    return error ? error : repository_pool_open(engine, name, out);
}

void
repository_pool_release(struct repository_use *use)
{
    if (!use->pooled)
        return;
    pthread_mutex_lock(&use->pool->lock);
    drop_user(use->pool, use->pooled);
    pthread_mutex_unlock(&use->pool->lock);
    *use = (struct repository_use){0};
}
