/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume recover. */
#include <stdio.h>

#include "cli/inventory.h"
#include "cli/volume.h"
#include "proto/move.pb-c.h"

static struct {
    bool yes;
} wanted;

static const char *
time_text(int64_t ns, struct arena *arena)
{
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    time.seconds = ns / 1000000000;
    return inventory_time_text(&time, arena);
}

static struct error *
recover(struct client *client)
{
    Skycap__V1__RecoverVolumeRequest request = SKYCAP__V1__RECOVER_VOLUME_REQUEST__INIT;
    Skycap__V1__RecoverVolumeReply *reply;
    request.volume = client->words[0];
    request.dry_run = !wanted.yes;
    struct error *error = client_ask(client, "skycap.v1.Moves/Recover", &request, &reply);
    if (error)
        return error;
    if (client->as_json) {
        client_print_json(reply, 0);
        return NULL;
    }
    const char *taken = time_text(reply->taken_ns, &client->arena);
    if (wanted.yes)
        printf("%s is on node %s now, as it was at %s. What was written to it on node %s after "
               "that is lost,\nunless that node comes back: then it is in a snapshot there.\n",
               request.volume, reply->node_id, taken, reply->lost_node_id);
    else
        printf("The newest copy of %s is on node %s, of %s. What was written to it on node %s "
               "after that\nwould be lost. Make sure that node %s is down, and repeat the command "
               "with --yes.\n",
               request.volume, reply->node_id, taken, reply->lost_node_id, reply->lost_node_id);
    client->has_failed = !wanted.yes;
    return NULL;
}

static const struct option recover_flags[] = {
    {"yes", 0, NULL, OPTION_FLAG, &wanted.yes,
     "do it; without this, only tells what would be lost"},
    {0},
};

const struct command volume_recover_command = {
    .name = "recover",
    .summary = "recover a volume of a lost node from a copy",
    .words = "VOLUME",
    .help = "Recovers a volume whose node is lost from the newest copy of one of its snapshots on "
            "another node. What was\nwritten after that snapshot is lost. Copies come from clones, "
            "restores and moves to other nodes; they are\nkept for 7 days. The volume keeps its "
            "id.",
    .flags = recover_flags,
    .run = recover,
};
