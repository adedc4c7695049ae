/* SPDX-License-Identifier: Apache-2.0 */
/* skycap node drain and forget. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/inventory.h"
#include "cli/node.h"
#include "cli/progress.h"
#include "cli/volume.h"
#include "cli/volume_move.h"
#include "proto/cluster.pb-c.h"

#define STATE(name) SKYCAP__V1__NODE_INFO__STATE__##name
#define OPERATION(name) SKYCAP__V1__OPERATION__STATE__##name
#define AT_ONCE 4
#define LOOK_MS 300

typedef Skycap__V1__Operation operation;

static struct {
    const char *to;
    const char *rate;
    bool undo;
} wanted;

/* ---- where to ---- */

static bool
can_take(const Skycap__V1__NodeInfo *info, const char *drained)
{
    return info->state == STATE(READY) && !info->is_draining && strcmp(info->id, drained) != 0;
}

/* The node with the most room. Its room is asked for again for each volume. */
static struct error *
choose_target(struct client *client, const char *drained, const char **out)
{
    Skycap__V1__ListNodesReply *all;
    const Skycap__V1__NodeInfo *best = NULL;
    *out = wanted.to;
    if (wanted.to)
        return NULL;
    struct error *error = node_ask_for_list(client, &all);
    if (error)
        return error;
    for (size_t i = 0; i < all->n_nodes; i++)
        if (can_take(all->nodes[i], drained) &&
            (!best || all->nodes[i]->available_bytes > best->available_bytes))
            best = all->nodes[i];
    if (!best)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "no other node is ready and takes volumes: see skycap node list");
    *out = best->id;
    return NULL;
}

/* ---- one volume ---- */

struct leaving {
    const volume_info *volume; /* NULL: the place is free */
    const char *target;
    const char *operation; /* NULL: it is to be asked for again */
};

struct drain {
    struct client *client;
    const char *node_id;
    uint64_t bytes_per_second;
    struct leaving moves[AT_ONCE];
    struct progress_bar bar;
    operation all; /* of the moves in progress together */
    size_t left, moved;
};

static bool
is_in_use(const volume_info *volume)
{
    return volume->n_node_ids || volume->n_uses;
}

/* Takes the error. */
static void
say_that_it_stays(struct drain *drain, const volume_info *volume, struct error *error)
{
    progress_wipe(&drain->bar);
    printf("%s stays: %s\n", volume->name, error ? error->message : "it is in use");
    error_free(error);
    drain->left++;
}

/* A volume that is published meanwhile is not waited for: that could take for ever. */
static struct error *
ask(struct drain *drain, struct leaving *move)
{
    Skycap__V1__MoveVolumeRequest request = SKYCAP__V1__MOVE_VOLUME_REQUEST__INIT;
    Skycap__V1__MoveVolumeReply *reply;
    request.volume_id = move->volume->volume->volume_id;
    request.node_id = (char *)move->target;
    request.bytes_per_second = drain->bytes_per_second;
    request.not_in_use = true;
    struct error *error = volume_move_begin(drain->client, &request, &reply, &move->operation);
    if (error && error->code == CODE_ABORTED && client_has_time(drain->client)) {
        error_free(error);
        return NULL;
    }
    if (error || move->operation)
        return error;
    progress_wipe(&drain->bar);
    printf("%s is on node %s now; it was unavailable for %ju ms\n", move->volume->name,
           move->target, (uintmax_t)reply->unavailable_ms);
    move->volume = NULL;
    drain->moved++;
    return NULL;
}

/* Adds it to the bar while it runs. A node that does not answer may come back, and goes on then. */
static struct error *
look_at(struct drain *drain, struct leaving *move)
{
    Skycap__V1__GetOperationRequest request = SKYCAP__V1__GET_OPERATION_REQUEST__INIT;
    struct arena before = drain->client->arena; /* answers are not kept: there may be many */
    operation *now;
    request.id = (char *)move->operation;
    arena_init(&drain->client->arena, NULL, 0, SIZE_MAX);
    struct error *error = client_ask(drain->client, "skycap.v1.Operations/Get", &request, &now);
    bool is_ended = error ? error->code == CODE_NOT_FOUND : now->state != OPERATION(RUNNING);
    if (error) {
        error_free(STEAL(error));
    } else {
        error = progress_result(now);
        drain->all.done += now->done;
        drain->all.total += now->total;
        drain->all.rate += is_ended ? 0 : now->rate;
    }
    arena_clear(&drain->client->arena);
    drain->client->arena = before;
    if (is_ended)
        move->operation = NULL;
    return error;
}

/* ---- several at once ---- */

static void
begin(struct drain *drain, struct leaving *move, const volume_info *volume)
{
    if (is_in_use(volume)) {
        say_that_it_stays(drain, volume, NULL);
        return;
    }
    *move = (struct leaving){.volume = volume};
    struct error *error = choose_target(drain->client, drain->node_id, &move->target);
    if (!error)
        error = ask(drain, move);
    if (!error)
        return;
    move->volume = NULL;
    say_that_it_stays(drain, volume, error);
}

static void
go_on(struct drain *drain, struct leaving *move)
{
    const volume_info *volume = move->volume;
    struct error *error = move->operation ? look_at(drain, move) : NULL;
    if (!error && !move->operation)
        error = ask(drain, move);
    if (!error)
        return;
    move->volume = NULL;
    say_that_it_stays(drain, volume, error);
}

/* Looks at all moves in progress. Returns whether there are any. */
static bool
go_on_all(struct drain *drain)
{
    bool any = false;
    drain->all = (operation)SKYCAP__V1__OPERATION__INIT;
    drain->all.units = "bytes";
    drain->all.state = OPERATION(RUNNING);
    drain->all.phase = SKYCAP__V1__OPERATION__PHASE__WORKING;
    for (size_t i = 0; i < AT_ONCE; i++) {
        if (drain->moves[i].volume)
            go_on(drain, &drain->moves[i]);
        any |= drain->moves[i].volume != NULL;
    }
    if (any)
        progress_draw(&drain->bar, &drain->all);
    return any;
}

static struct leaving *
find_place(struct drain *drain)
{
    for (size_t i = 0; i < AT_ONCE; i++)
        if (!drain->moves[i].volume)
            return &drain->moves[i];
    return NULL;
}

static struct error *
rest(struct drain *drain)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    if (client_has_time(drain->client))
        return NULL;
    return error_new(CODE_DEADLINE_EXCEEDED,
                     "the time limit has passed, but moves go on: see skycap op list");
}

static struct error *
move_all(struct client *client, const char *drained, uint64_t bytes_per_second)
{
    Skycap__V1__ListVolumesRequest request = SKYCAP__V1__LIST_VOLUMES_REQUEST__INIT;
    Skycap__V1__ListVolumesResponse *all;
    struct drain drain = {.client = client,
                          .node_id = drained,
                          .bytes_per_second = bytes_per_second,
                          .bar.draws = isatty(STDERR_FILENO)};
    struct error *error =
        client_ask_pages(client, "skycap.v1.Inventory/ListVolumes", &request, &all);
    for (size_t i = 0; !error && i < all->n_volumes; i++) {
        struct leaving *place = NULL;
        if (strcmp(all->volumes[i]->node_id, drained) != 0)
            continue;
        while (!error && !(place = find_place(&drain))) {
            go_on_all(&drain);
            if (!find_place(&drain))
                error = rest(&drain);
        }
        if (!error)
            begin(&drain, place, all->volumes[i]);
    }
    while (!error && go_on_all(&drain))
        error = rest(&drain);
    progress_wipe(&drain.bar);
    if (error)
        return error;
    printf("%zu volumes have left node %s; %zu stay\n", drain.moved, drained, drain.left);
    client->has_failed = drain.left > 0;
    return NULL;
}

/* ---- drain ---- */

static struct error *
drain(struct client *client)
{
    Skycap__V1__DrainNodeRequest request = SKYCAP__V1__DRAIN_NODE_REQUEST__INIT;
    Skycap__V1__DrainNodeReply *reply;
    uint64_t bytes_per_second;
    request.node_id = client->words[0];
    request.undo = wanted.undo;
    struct error *error = volume_read_rate(wanted.rate, &bytes_per_second);
    if (error) {
        client->exit_code = EXIT_USAGE;
        return error;
    }
    error = client_ask(client, "skycap.v1.Nodes/Drain", &request, &reply);
    return error || wanted.undo ? error : move_all(client, request.node_id, bytes_per_second);
}

static const struct option drain_flags[] = {
    {"to", 0, "NODE", OPTION_TEXT, &wanted.to,
     "move the volumes to this node; default: the ones "
     "with the most room"},
    {"rate", 0, "SIZE", OPTION_TEXT, &wanted.rate,
     "fetch no more than this per second for each volume, such as 10Mi; default: no limit"},
    {"undo", 0, NULL, OPTION_FLAG, &wanted.undo, "place new volumes on the node again"},
    {0},
};

const struct command node_drain_command = {
    .name = "drain",
    .summary = "move the volumes of a node to others",
    .words = "NODE",
    .help = "Places no new volumes on the node, and moves its volumes to other nodes, 4 at a "
            "time. Volumes\nin use stay; repeat the command when they are unpublished. Exits "
            "with 1 if volumes stay. Snapshots stay\nwhere they are.",
    .flags = drain_flags,
    .run = drain,
};

/* ---- forget ---- */

static struct error *
forget(struct client *client)
{
    Skycap__V1__ForgetNodeRequest request = SKYCAP__V1__FORGET_NODE_REQUEST__INIT;
    Skycap__V1__ForgetNodeReply *reply;
    request.node_id = client->words[0];
    return client_ask(client, "skycap.v1.Nodes/Forget", &request, &reply);
}

const struct command node_forget_command = {
    .name = "forget",
    .summary = "remove a lost node from the cluster",
    .words = "NODE",
    .help = "Removes a lost node that will not come back from the cluster. The volumes that are on "
            "it are lost, except\nthose that are recovered from copies (skycap volume recover). A "
            "node that is started again joins again.",
    .run = forget,
};
