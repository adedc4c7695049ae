/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume recover. */
#include <stdio.h>

#include "cli/inventory.h"
#include "cli/volume.h"
#include "proto/move.pb-c.h"

static struct {
    bool yes;
    const char *snapshot;
} wanted;

static const char *
time_text(int64_t ns, struct arena *arena)
{
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    time.seconds = ns / 1000000000;
    return inventory_time_text(&time, arena);
}

static void
print(struct client *client, const Skycap__V1__RecoverVolumeReply *reply)
{
    const char *name = client->words[0], *taken = time_text(reply->taken_ns, &client->arena);
    const char *lost = reply->lost_node_id;
    const char *since =
        reply->is_before_recovery ? "since it was recovered the last time" : "after that";
    if (wanted.yes)
        printf("%s is on node %s now, as it was there at %s. What was written to it on node %s "
               "%s\nis lost, unless that node comes back: then it is in a snapshot there.\n",
               name, reply->node_id, taken, lost, since);
    else
        printf("The newest copy of %s is on node %s, of %s. What was written to it on node %s "
               "%s\nwould be lost. %s%s%s, and repeat the command with\n"
               "--yes --snapshot %s\n",
               name, reply->node_id, taken, lost, since,
               reply->is_only_store_lost ? "The store of node " : "Make sure that node ", lost,
               reply->is_only_store_lost ? " was lost: put it back if you can" : " is down",
               reply->snapshot);
}

static struct error *
recover(struct client *client)
{
    Skycap__V1__RecoverVolumeRequest request = SKYCAP__V1__RECOVER_VOLUME_REQUEST__INIT;
    Skycap__V1__RecoverVolumeReply *reply;
    request.volume = client->words[0];
    request.dry_run = !wanted.yes;
    request.snapshot = wanted.snapshot ? (char *)wanted.snapshot : "";
    struct error *error = client_ask(client, "skycap.v1.Moves/Recover", &request, &reply);
    if (error)
        return error;
    if (client->as_json) {
        client_print_json(reply, 0);
        return NULL;
    }
    print(client, reply);
    client->has_failed = !wanted.yes;
    return NULL;
}

static const struct option recover_flags[] = {
    {"yes", 0, NULL, OPTION_FLAG, &wanted.yes,
     "do it; without this, only tells what would be lost"},
    {"snapshot", 0, "SNAPSHOT", OPTION_TEXT, &wanted.snapshot,
     "only from this one, as the command has told it; refused if it is not the newest any more"},
    {0},
};

const struct command volume_recover_command = {
    .name = "recover",
    .summary = "recover a volume of a lost node from a copy",
    .words = "VOLUME",
    .help = "Recovers a volume whose node is lost from the newest snapshot of it that another node "
            "has. What was written\nafter that snapshot is lost. Other nodes have copies that "
            "were asked for, snapshots that stayed when the\nvolume moved away, and for 7 days "
            "those of clones, restores and moves. The volume keeps its id.\nWith --yes and without "
            "--snapshot, it takes the newest copy that can be reached then, and says which.",
    .flags = recover_flags,
    .run = recover,
};
