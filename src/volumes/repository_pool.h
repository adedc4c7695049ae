/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repositories of a node: where they are, and those that are open. A repository is opened once,
 * whoever uses it, because it has one index in the cache directory.
 */
#ifndef VOLUMES_REPOSITORY_POOL_H
#define VOLUMES_REPOSITORY_POOL_H

#include <pthread.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/text_map.h"
#include "repository/repository.h"

struct engine;
struct progress;

/* What the operator has said about a repository. */
struct repository_place {
    const char *name;
    struct repository_options options; /* without the cache and the log */
    uint32_t drill_hours;              /* how often one of its snapshots is restored; 0: never */
    const char *drill_command;         /* "": none */
    bool is_shared;                    /* other nodes may use it as node://NODE/NAME */
    uint32_t drill_timeout_ms;         /* of the command; 0: an hour */
};

/* Who reads the files about repositories. All functions may block. */
struct repository_places {
    /* NOT_FOUND names those that there are. In the arena. */
    struct error *(*find)(void *context, const char *name, struct arena *arena,
                          struct repository_place *out);
    /* The names. */
    struct error *(*list)(void *context, struct arena *arena, struct text_list *out);
    void *context;
    struct repository_roster *roster; /* of the process; NULL: none */
    bool allows_commands;             /* of drills, in requests */
};

struct repository_pool {
    pthread_mutex_t lock;
    struct pooled_repository *first;
    struct repository_task *tasks; /* that have not ended: repository_task.h */
};

void repository_pool_init(struct repository_pool *pool);
void repository_pool_clear(struct repository_pool *pool);

/* FAILED_PRECONDITION: the server has no repositories. With the cache and the log set. */
MUST_CHECK struct error *repository_pool_find(struct engine *engine, const char *name,
                                              struct arena *arena, struct repository_place *out);
MUST_CHECK struct error *repository_pool_list(struct engine *engine, struct arena *arena,
                                              struct text_list *out);

/* The repository that was asked for; "": the only one that there is. */
MUST_CHECK struct error *repository_pool_choose(struct engine *engine, const char *asked,
                                                struct arena *arena, const char **out);

/* A repository in use. For `struct repository_use use AUTO(repository_pool_release) = {0}`. */
struct repository_use {
    struct repository *repository;
    struct pooled_repository *pooled;
    struct repository_pool *pool;
};

/*
 * For work that others wait for: UNAVAILABLE after some seconds, instead of the time for which
 * requests are repeated, if the repository does not answer now.
 */
MUST_CHECK struct error *repository_pool_open_soon(struct engine *engine, const char *name,
                                                   struct repository_use *out);
MUST_CHECK struct error *repository_pool_open(struct engine *engine, const char *name,
                                              struct repository_use *out);

/*
 * Work that tries again until the repository answers: in the middle of it, requests are repeated
 * for this long. It rests between its attempts, when others have its turn: longer each time while
 * the repository is down.
 */
#define REPOSITORY_REPEAT_MS 15000u

struct repository_pause {
    bool is_down; /* the last attempt could not even open it */
    uint32_t ms;  /* the last pause */
};
void repository_pause(struct repository_pause *pause, const struct progress *progress);

void repository_pool_release(struct repository_use *use);

#endif
