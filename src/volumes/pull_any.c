/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from whichever node has a snapshot: see pull_any.h.
 *
 * A node is asked whether it has the snapshot before the transfer turns to it, because that begins
 * anew: a node that does not answer must not cost what another has sent.
 */
#include "volumes/pull_any.h"

#include <string.h>

#include "volumes/handle.h"
#include "volumes/pull_position.h"
#include "volumes/remote_data.h"
#include "volumes/replica_cluster.h"

#define PATIENCE_MS 15000u /* with a node that sends nothing */
#define PAUSE_MS 2000u     /* while no node answers */

struct search {
    struct engine *engine;
    const struct pull_request *request;
    struct arena arena; /* of one attempt */
};

static bool
is_same(const char *node_id, const char *other)
{
    return strcmp(node_id, other) == 0;
}

/* The node that has sent the beginning, before a restart perhaps; else that of the request. */
static const char *
find_begun(const struct search *search, struct arena *arena)
{
    const struct pull_request *request = search->request;
    struct pull_position found;
    bool is_there;
    struct error *error AUTO(error_cleanup) =
        pull_position_read(search->engine, pull_row(request->to, arena), arena, &found, &is_there);
    bool is_begun =
        !error && is_there && found.position.offset && is_same(found.snapshot, request->snapshot);
    return is_begun ? found.node_id : request->node_id;
}

/* Opening a snapshot leaves nothing behind there. `*answers`: false if it is not known. */
static bool
has_it(struct search *search, const char *node_id, bool *answers)
{
    const struct remote_data *remote = atomic_load(&search->engine->remote);
    struct remote_source source;
    char id[BACKEND_HANDLE_SIZE];
    handle_make(search->engine, id);
    struct remote_open what = {.kind = SOURCE_SNAPSHOT,
                               .handle = search->request->snapshot,
                               .node_id = node_id,
                               .transfer_id = id};
    struct error *error AUTO(error_cleanup) =
        remote ? remote->open(remote->context, &what, &search->arena, &source)
               : error_new(CODE_UNAVAILABLE, "this node has not joined its cluster yet");
    *answers = !error || (error->code != CODE_UNAVAILABLE && error->code != CODE_DEADLINE_EXCEEDED);
    return !error;
}

/*
 * The one of before if it answers again, then that of the request, then those with copies. If
 * nobody has it, and the one of the request says so, that one: then the transfer fails.
 */
static const char *
find_node(struct search *search, const char *before)
{
    const struct replica_cluster *cluster = atomic_load(&search->engine->replicas);
    const char *first = search->request->node_id, *const * ids;
    size_t count = 0;
    bool answers, first_answers = false;
    if (has_it(search, before, &answers))
        return before;
    if (has_it(search, first, &first_answers))
        return first;
    struct error *error AUTO(error_cleanup) =
        cluster ? cluster->holders(cluster->context, search->request->snapshot, &search->arena,
                                   &ids, &count)
                : NULL;
    for (size_t i = 0; !error && i < count; i++)
        if (!is_same(ids[i], before) && !is_same(ids[i], search->engine->node_id) &&
            has_it(search, ids[i], &answers))
            return ids[i];
    return first_answers ? first : NULL;
}

static struct error *
wait_for_node(struct search *search, const struct progress *progress, struct arena *arena,
              const char **node_id)
{
    for (;;) {
        arena_clear(&search->arena);
        const char *found = find_node(search, *node_id);
        if (found && !is_same(found, *node_id))
            log_info(search->engine->log, "a transfer goes on with another node",
                     LOG_TEXT("snapshot", search->request->snapshot), LOG_TEXT("node", found));
        if (found)
            *node_id = is_same(found, *node_id) ? *node_id : arena_string(arena, found);
        if (found)
            return NULL;
        if (progress->cancelled(progress->context))
            return error_new(CODE_CANCELLED, "the transfer was cancelled");
        progress_rest(progress, PAUSE_MS);
    }
}

struct error *
pull_any(struct engine *engine, const struct pull_request *request, const struct progress *progress,
         struct arena *arena, const char **node_id)
{
    struct search search = {.engine = engine, .request = request};
    bool is_impatient = false;
    struct pull_request attempt = *request;
    arena_init(&search.arena, NULL, 0, SIZE_MAX);
    attempt.patience_ms = PATIENCE_MS;
    attempt.is_impatient = &is_impatient;
    *node_id = find_begun(&search, arena);
    struct error *error;
    do {
        is_impatient = false;
        attempt.node_id = *node_id;
        error = pull_data(engine, &attempt, progress);
        bool is_gone =
            error && error->code == CODE_NOT_FOUND && !is_same(*node_id, request->node_id);
        if (!is_impatient && !is_gone)
            break;
        error_free(error);
        error = wait_for_node(&search, progress, arena, node_id);
    } while (!error);
    arena_clear(&search.arena);
    return error;
}
