/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Repositories: drills. They run as long as the client waits for them. */
#include <unistd.h>

#include "csi/checks.h"
#include "csi/repositories_internal.h"
#include "node/drill.h"

struct drilling {
    struct call *call;
    struct error *error; /* the client cannot be reached */
};

static bool
is_cancelled(void *context)
{
    const struct drilling *drilling = context;
    return drilling->error || call_is_cancelled(drilling->call);
}

static void
report(void *context, const char *step, uint64_t duration_ms, const char *output)
{
    struct drilling *drilling = context;
    Skycap__V1__DrillStep message = SKYCAP__V1__DRILL_STEP__INIT;
    message.step = (char *)step;
    message.duration_ms = duration_ms;
    message.output = (char *)output;
    if (!drilling->error)
        drilling->error = call_send(drilling->call, &message.base);
}

/* Commands run as this process does. */
static bool
is_own_user(const struct peer *peer)
{
    return peer->has_credentials && (peer->uid == 0 || peer->uid == geteuid());
}

static struct error *
check_command(struct call *call, const Skycap__V1__DrillRequest *request)
{
    if (!request->n_command || is_own_user(call_peer(call)))
        return NULL;
    return error_new(
        CODE_PERMISSION_DENIED,
        "only the user that the server runs as may give a command, on its unix socket");
}

struct error *
repositories_drill(struct call *call, const Skycap__V1__DrillRequest *request)
{
    struct arena *arena = call_arena(call);
    struct drilling drilling = {.call = call};
    struct drill_result result;
    const char *name;
    const char **command = arena_alloc(arena, (request->n_command + 1) * sizeof *command);
    for (size_t i = 0; i < request->n_command; i++)
        command[i] = request->command[i];
    command[request->n_command] = NULL;
    struct error *error = check_command(call, request);
    if (!error)
        error = repository_pool_choose(controller_engine(call), request->repository, arena, &name);
    if (error)
        return error;
    struct drill_request drill = {.repository = name,
                                  .snapshot = request->snapshot,
                                  .command = request->n_command ? command : NULL,
                                  .report = report,
                                  .cancelled = is_cancelled,
                                  .context = &drilling};
    error = drill_run(controller_engine(call), &drill, arena, &result);
    struct error *lost AUTO(error_cleanup) = STEAL(drilling.error);
    if (error || lost)
        return error ? error : STEAL(lost);
    Skycap__V1__DrillStep message = SKYCAP__V1__DRILL_STEP__INIT;
    message.is_result = true;
    message.snapshot_id = (char *)result.id;
    message.bytes = result.bytes;
    return call_send(call, &message.base);
}
