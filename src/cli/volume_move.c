/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume move. */
#include <stdio.h>
#include <string.h>

#include "base/size_text.h"
#include "cli/inventory.h"
#include "cli/progress.h"
#include "cli/volume.h"
#include "cli/volume_move.h"
#include "proto/move.pb-c.h"

#define MOVE_VOLUME "move-volume" /* the kind of operation */
#define FIRST_MS 500              /* then there is something to show */
#define NEXT_MS 10000

typedef Skycap__V1__MoveVolumeReply move_reply;
typedef Skycap__V1__ListOperationsResponse operation_list;

/* The operation that moves the volume; NULL: there is none any more. */
static struct error *
find_operation(struct client *client, const char *volume_id, const char **out)
{
    Skycap__V1__ListOperationsRequest request = SKYCAP__V1__LIST_OPERATIONS_REQUEST__INIT;
    operation_list *list;
    *out = NULL;
    struct error *error = client_ask_pages(client, "skycap.v1.Operations/List", &request, &list);
    for (size_t i = 0; !error && i < list->n_operations; i++) {
        const Skycap__V1__Operation *operation = list->operations[i];
        if (strcmp(operation->kind, MOVE_VOLUME) == 0 &&
            operation->state == SKYCAP__V1__OPERATION__STATE__RUNNING &&
            strcmp(operation->subject, volume_id) == 0)
            *out = operation->id;
    }
    return error;
}

static bool
is_unfinished(const struct error *error)
{
    return error->code == CODE_ABORTED || error->code == CODE_DEADLINE_EXCEEDED;
}

/* Waits for the operation if there is one to watch; the next request tells how it ended. */
static struct error *
wait_for_move(struct client *client, const char *volume_id)
{
    const char *operation;
    struct error *error = find_operation(client, volume_id, &operation);
    return error || !operation ? error : progress_follow(client, operation);
}

static struct error *
ask_to_move(struct client *client, Skycap__V1__MoveVolumeRequest *request, move_reply **reply)
{
    for (uint64_t wait_ms = FIRST_MS;; wait_ms = NEXT_MS) {
        struct error *error =
            client_ask_within(client, wait_ms, "skycap.v1.Moves/Move", request, reply);
        if (!error && wait_ms == NEXT_MS)
            (*reply)->was_there = false; /* an earlier request has moved it */
        if (!error || !is_unfinished(error) || !client_has_time(client))
            return error;
        error_free(error);
        error = wait_for_move(client, request->volume_id);
        if (error)
            return error;
    }
}

struct error *
volume_move_begin(struct client *client, const Skycap__V1__MoveVolumeRequest *request,
                  move_reply **reply, const char **operation)
{
    *operation = NULL;
    struct error *error =
        client_ask_within(client, FIRST_MS, "skycap.v1.Moves/Move", request, reply);
    if (!error || !is_unfinished(error) || !client_has_time(client))
        return error;
    struct error *failure = find_operation(client, request->volume_id, operation);
    if (!failure && !*operation)
        return error;
    error_free(error);
    return failure;
}

struct error *
volume_read_rate(const char *text, uint64_t *out)
{
    int64_t bytes = 0;
    struct error *error = text ? size_text_parse(text, &bytes) : NULL;
    *out = (uint64_t)bytes;
    return error_wrap(error, "--rate");
}

static const char *rate;

static const struct option move_flags[] = {
    {"rate", 0, "SIZE", OPTION_TEXT, &rate, VOLUME_RATE_HELP},
    {0},
};

static struct error *
move(struct client *client)
{
    Skycap__V1__MoveVolumeRequest request = SKYCAP__V1__MOVE_VOLUME_REQUEST__INIT;
    move_reply *reply;
    volume_info *volume;
    struct error *error = volume_read_rate(rate, &request.bytes_per_second);
    if (error) {
        client->exit_code = EXIT_USAGE;
        return error;
    }
    error = inventory_find_volume(client, client->words[0], &volume);
    if (error)
        return error;
    request.volume_id = volume->volume->volume_id;
    request.node_id = client->words[1];
    error = ask_to_move(client, &request, &reply);
    if (error)
        return error;
    if (client->as_json)
        client_print_json(reply, 0);
    else if (reply->was_there)
        printf("%s was on node %s already\n", client->words[0], client->words[1]);
    else
        printf("%s is on node %s now; it was unavailable for %ju ms\n", client->words[0],
               client->words[1], (uintmax_t)reply->unavailable_ms);
    return NULL;
}

const struct command volume_move_command = {
    .name = "move",
    .summary = "move a volume to another node",
    .words = "VOLUME NODE",
    .help = "Moves a volume to another node of the cluster. Most of the data is copied while the "
            "volume is in use;\nif it is still in use then, the command waits until it is "
            "unpublished. The rest takes a moment.",
    .flags = move_flags,
    .run = move,
};
