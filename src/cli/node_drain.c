/* SPDX-License-Identifier: Apache-2.0 */
/* skycap node drain and forget. */
#include <stdio.h>
#include <string.h>

#include "cli/inventory.h"
#include "cli/node.h"
#include "cli/volume.h"
#include "cli/volume_move.h"
#include "proto/cluster.pb-c.h"

#define STATE(name) SKYCAP__V1__NODE_INFO__STATE__##name

static struct {
    const char *to;
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

/* ---- the volumes ---- */

/* Returns whether it has left; says why not. */
static bool
move_away(struct client *client, const volume_info *volume, const char *drained)
{
    const char *target;
    uint64_t unavailable_ms;
    if (volume->n_node_ids || volume->n_uses) {
        printf("%s stays: it is in use\n", volume->name);
        return false;
    }
    struct error *error AUTO(error_cleanup) = choose_target(client, drained, &target);
    if (!error)
        error = volume_move(client, volume->volume->volume_id, target, &unavailable_ms);
    if (error)
        printf("%s stays: %s\n", volume->name, error->message);
    else
        printf("%s is on node %s now; it was unavailable for %ju ms\n", volume->name, target,
               (uintmax_t)unavailable_ms);
    return !error;
}

static struct error *
move_all(struct client *client, const char *drained)
{
    Skycap__V1__ListVolumesRequest request = SKYCAP__V1__LIST_VOLUMES_REQUEST__INIT;
    Skycap__V1__ListVolumesResponse *all;
    size_t left = 0, moved = 0;
    struct error *error =
        client_ask_pages(client, "skycap.v1.Inventory/ListVolumes", &request, &all);
    if (error)
        return error;
    for (size_t i = 0; i < all->n_volumes; i++) {
        if (strcmp(all->volumes[i]->node_id, drained) != 0)
            continue;
        bool is_away = move_away(client, all->volumes[i], drained);
        moved += is_away;
        left += !is_away;
    }
    printf("%zu volumes have left node %s; %zu stay\n", moved, drained, left);
    client->has_failed = left > 0;
    return NULL;
}

/* ---- drain ---- */

static struct error *
drain(struct client *client)
{
    Skycap__V1__DrainNodeRequest request = SKYCAP__V1__DRAIN_NODE_REQUEST__INIT;
    Skycap__V1__DrainNodeReply *reply;
    request.node_id = client->words[0];
    request.undo = wanted.undo;
    struct error *error = client_ask(client, "skycap.v1.Nodes/Drain", &request, &reply);
    return error || wanted.undo ? error : move_all(client, request.node_id);
}

static const struct option drain_flags[] = {
    {"to", 0, "NODE", OPTION_TEXT, &wanted.to,
     "move the volumes to this node; default: the ones "
     "with the most room"},
    {"undo", 0, NULL, OPTION_FLAG, &wanted.undo, "place new volumes on the node again"},
    {0},
};

const struct command node_drain_command = {
    .name = "drain",
    .summary = "move the volumes of a node to others",
    .words = "NODE",
    .help = "Places no new volumes on the node, and moves its volumes to other nodes. Volumes in "
            "use stay; repeat the\ncommand when they are unpublished. Exits with 1 if volumes "
            "stay. Snapshots stay where they are.",
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
