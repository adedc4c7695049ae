/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Repositories: drills. They run as long as the client waits for them. */
#include <unistd.h>

#include "csi/repositories_internal.h"
#include "node/drill.h"

static bool
is_own_user(const struct peer *peer)
{
    return peer->has_credentials && (peer->uid == 0 || peer->uid == geteuid());
}

/*
 * A command runs as this process does, usually as root on the host. Root in a container that has
 * the socket looks like root here, so that the user alone is not enough.
 */
static struct error *
check_command(struct call *call, const Skycap__V1__DrillRequest *request)
{
    const struct repository_places *places = controller_engine(call)->repositories;
    if (!request->n_command)
        return NULL;
    if (!is_own_user(call_peer(call)))
        return error_new(
            CODE_PERMISSION_DENIED,
            "only the user that the server runs as may give a command, on its unix socket");
    if (places && !places->allows_commands)
        return error_new(CODE_PERMISSION_DENIED,
                         "this server runs no commands of requests: write the command into the "
                         "file of the repository (drill: {every: 7d, command: PROGRAM}), or start "
                         "the server with --allow-drill-commands");
    return NULL;
}

struct error *
repositories_drill(struct call *call, const Skycap__V1__DrillRequest *request)
{
    struct engine *engine = controller_engine(call);
    struct arena *arena = call_arena(call);
    struct repository_task *task;
    struct repository_place place;
    const char *name;
    const char **command = arena_alloc(arena, (request->n_command + 1) * sizeof *command);
    for (size_t i = 0; i < request->n_command; i++)
        command[i] = request->command[i];
    command[request->n_command] = NULL;
    struct error *error = check_command(call, request);
    if (!error)
        error = repository_pool_choose(engine, request->repository, arena, &name);
    if (!error)
        error = repository_pool_find(engine, name, arena, &place);
    if (error)
        return error;
    struct drill_request drill = {.repository = name,
                                  .snapshot = request->snapshot,
                                  .command = request->n_command ? command : NULL};
    error = drill_start(engine, &drill, &task);
    return error ? error : repositories_follow(call, task);
}
