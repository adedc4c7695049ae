/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long work on a repository as an operation: see repository_task.h.
 *
 * The operation and its follower share the task, which is freed with the last reference. Tasks that
 * have not ended are in a list of the engine's repository pool.
 */
#include "volumes/repository_task.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "message/message_bytes.h"
#include "repository/patience.h"
#include "volumes/handle.h"

#define LOOK_MS 100u /* how late it is noticed that a follower has gone */

struct repository_task {
    struct repository_task *next; /* in the list; its lock is the pool's */
    struct engine *engine;
    struct repository_job job; /* texts in `texts`; its context belongs to the operation */
    struct arena texts;
    const char *id;
    const struct progress *progress; /* while the work runs */
    struct buffer result;
    bool is_settled; /* the operation has written its end */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    unsigned users;
    struct arena message_arena;
    ProtobufCMessage *message; /* not taken yet; NULL: none */
    bool is_followed;
    bool has_ended; /* the operation has gone, and `error` is how */
    struct error *error;
};

bool
repository_task_is_kind(const char *kind)
{
    static const char *const kinds[] = {VERIFY_REPOSITORY, PRUNE_REPOSITORY, REBUILD_REPOSITORY,
                                        DRILL_SNAPSHOT};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (!strcmp(kind, kinds[i]))
            return true;
    return false;
}

/* ---- life ---- */

static struct repository_task *
task_new(struct engine *engine, const struct repository_job *job)
{
    char handle[BACKEND_HANDLE_SIZE];
    struct repository_task *task = memory_zeroed(sizeof *task);
    arena_init(&task->texts, NULL, 0, SIZE_MAX);
    arena_init(&task->message_arena, NULL, 0, SIZE_MAX);
    pthread_mutex_init(&task->lock, NULL);
    clock_init_condition(&task->changed);
    handle_make(engine, handle);
    task->engine = engine;
    task->job = *job;
    task->job.repository = arena_string(&task->texts, job->repository);
    task->job.what = arena_string(&task->texts, job->what);
    task->job.description = arena_string(&task->texts, job->description);
    task->id =
        arena_print(&task->texts, "%s.%.*s", handle, (int)strcspn(job->kind, "-"), job->kind);
    task->users = 1;
    task->is_followed = true;
    return task;
}

static void
release(struct repository_task *task)
{
    pthread_mutex_lock(&task->lock);
    bool is_last = --task->users == 0;
    pthread_mutex_unlock(&task->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&task->lock);
    pthread_cond_destroy(&task->changed);
    arena_clear(&task->texts);
    arena_clear(&task->message_arena);
    buffer_clear(&task->result);
    error_free(task->error);
    free(task);
}

static void
free_job(struct repository_task *task)
{
    if (task->job.free)
        task->job.free(task->job.context);
    task->job.context = NULL;
}

/* ---- the list ---- */

static bool
is_same(const struct repository_job *a, const struct repository_job *b)
{
    return !strcmp(a->kind, b->kind) && !strcmp(a->repository, b->repository) &&
           !strcmp(a->what, b->what);
}

static struct error *
enter(struct repository_task *task)
{
    struct repository_pool *pool = &task->engine->repository_pool;
    struct error *error = NULL;
    pthread_mutex_lock(&pool->lock);
    for (const struct repository_task *one = pool->tasks; one && !error; one = one->next)
        if (is_same(&one->job, &task->job))
            error = error_new(CODE_ABORTED,
                              "the same is under way already: see `skycap op list`, %s", one->id);
    if (!error) {
        task->next = pool->tasks;
        pool->tasks = task;
    }
    pthread_mutex_unlock(&pool->lock);
    return error;
}

static void
leave(struct repository_task *task)
{
    struct repository_pool *pool = &task->engine->repository_pool;
    pthread_mutex_lock(&pool->lock);
    struct repository_task **link = &pool->tasks;
    while (*link != task)
        link = &(*link)->next;
    *link = task->next;
    pthread_mutex_unlock(&pool->lock);
}

/* ---- the operation ---- */

static struct error *
run(void *context, const struct progress *progress)
{
    struct repository_task *task = context;
    struct patience patience = {.is_over = progress->cancelled, .context = progress->context};
    task->progress = progress;
    patience_begin(&patience);
    struct error *error = task->job.run(task->job.context, task);
    patience_end(&patience);
    task->progress = NULL;
    return error;
}

static void
settle(void *context, const struct error *result, struct arena *arena, struct ops_changes *out)
{
    struct repository_task *task = context;
    (void)arena;
    task->is_settled = true;
    out->result = buffer_text(&task->result);
    if (result)
        task->error = error_new(result->code, "%s", result->message);
}

static struct error *
shutting_down(void)
{
    return error_new(CODE_UNAVAILABLE, "the server is shutting down: repeat it");
}

/* The operation has gone. What ops_stop has interrupted was not settled: it is no success. */
static void
end(void *context)
{
    struct repository_task *task = context;
    free_job(task);
    leave(task);
    pthread_mutex_lock(&task->lock);
    if (!task->is_settled)
        task->error = shutting_down();
    task->has_ended = true;
    pthread_cond_broadcast(&task->changed);
    pthread_mutex_unlock(&task->lock);
    release(task);
}

struct error *
repository_task_start(struct engine *engine, const struct repository_job *job,
                      struct repository_task **out)
{
    struct repository_task *task = task_new(engine, job);
    struct error *error = enter(task);
    if (error) {
        free_job(task);
        release(task);
        return error;
    }
    struct ops_spec spec = {
        .id = task->id,
        .kind = job->kind,
        .subject = task->job.repository,
        .units = job->units,
        .description = task->job.description,
        .in_background = job->in_background,
        .work = {task, run, settle, end},
    };
    task->users = 2;
    error = ops_start(engine->ops, &spec);
    if (error)
        release(task);
    else
        *out = task;
    return error;
}

/* ---- for the work ---- */

const struct progress *
repository_task_progress(const struct repository_task *task)
{
    return task->progress;
}

void
repository_task_tell(struct repository_task *task, const ProtobufCMessage *message)
{
    pthread_mutex_lock(&task->lock);
    while (task->message && task->is_followed) {
        struct timespec until = clock_after_ms(LOOK_MS);
        pthread_cond_timedwait(&task->changed, &task->lock, &until);
        if (task->progress->cancelled(task->progress->context))
            break; /* nobody needs it now */
    }
    if (!task->message && task->is_followed) {
        task->message = message_bytes_copy(message, &task->message_arena);
        pthread_cond_broadcast(&task->changed);
    }
    pthread_mutex_unlock(&task->lock);
}

struct buffer *
repository_task_result(struct repository_task *task)
{
    return &task->result;
}

/* ---- for the follower ---- */

/*
 * Waits a little for the next message; NULL: there is none. It is in the arena, which is the
 * task's: the work goes on with an empty one.
 */
static ProtobufCMessage *
take_message(struct repository_task *task, struct arena *arena, bool *has_ended)
{
    struct timespec until = clock_after_ms(LOOK_MS);
    pthread_mutex_lock(&task->lock);
    if (!task->message && !task->has_ended)
        pthread_cond_timedwait(&task->changed, &task->lock, &until);
    ProtobufCMessage *message = task->message ? message_bytes_copy(task->message, arena) : NULL;
    task->message = NULL;
    arena_clear(&task->message_arena);
    *has_ended = task->has_ended && !message;
    pthread_cond_broadcast(&task->changed);
    pthread_mutex_unlock(&task->lock);
    return message;
}

/* One message, if there is one soon. */
static struct error *
follow_once(struct repository_task *task, const struct repository_follower *follower,
            bool *has_ended)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const ProtobufCMessage *message = take_message(task, &arena, has_ended);
    if (message && follower->take)
        return follower->take(follower->context, message);
    if (!*has_ended && follower->is_gone(follower->context))
        return error_new(CODE_CANCELLED, "it was cancelled: nobody waits for it any more");
    return NULL;
}

/* What comes from now on is lost. */
static void
abandon(struct repository_task *task)
{
    pthread_mutex_lock(&task->lock);
    task->is_followed = false;
    task->message = NULL;
    pthread_cond_broadcast(&task->changed);
    bool has_ended = task->has_ended;
    pthread_mutex_unlock(&task->lock);
    struct error *error AUTO(error_cleanup) =
        has_ended ? NULL : ops_cancel(task->engine->ops, task->id);
    if (error)
        log_warn(task->engine->log, "an operation could not be cancelled durably",
                 LOG_TEXT("id", task->id), LOG_TEXT("error", error->message));
    pthread_mutex_lock(&task->lock);
    while (!task->has_ended && !ops_is_stopped(task->engine->ops)) {
        struct timespec until = clock_after_ms(LOOK_MS);
        pthread_cond_timedwait(&task->changed, &task->lock, &until);
    }
    pthread_mutex_unlock(&task->lock);
}

struct error *
repository_task_follow(struct repository_task *task, const struct repository_follower *follower)
{
    bool has_ended = false, is_stopped = false;
    struct error *error = NULL;
    while (!error && !has_ended && !is_stopped) {
        is_stopped = ops_is_stopped(task->engine->ops);
        error = follow_once(task, follower, &has_ended);
    }
    if (!has_ended && is_stopped) {
        error_free(error);
        error = shutting_down();
    } else if (error) {
        abandon(task);
    } else {
        error = STEAL(task->error);
    }
    release(task);
    return error;
}

/* ---- after a restart ---- */

static struct error *
fail(void *context, const struct progress *progress)
{
    (void)context;
    if (progress->cancelled(progress->context))
        return error_new(CODE_CANCELLED, "it was cancelled");
    return error_new(CODE_ABORTED, "the server was stopped or killed before it ended: repeat it");
}

static struct error *
resume(void *context, const operation_record *record)
{
    struct engine *engine = context;
    struct ops_spec spec = {.work = {.run = fail}};
    return ops_continue(engine->ops, &spec, record);
}

struct error *
repository_task_end_all(struct engine *engine)
{
    static const struct ops_kind kinds[] = {{VERIFY_REPOSITORY, resume},
                                            {PRUNE_REPOSITORY, resume},
                                            {REBUILD_REPOSITORY, resume},
                                            {DRILL_SNAPSHOT, resume}};
    return ops_resume(engine->ops, kinds, COUNT_OF(kinds), engine);
}
