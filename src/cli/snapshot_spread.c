/* SPDX-License-Identifier: Apache-2.0 */
/* skycap snapshot spread. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/inventory.h"
#include "cli/progress.h"
#include "cli/volume.h"
#include "message/message_json.h"
#include "proto/replica.pb-c.h"

#define LOOK_MS 300
#define END_MS 10000 /* for the end of copies that are cancelled */

#define STATE(name) SKYCAP__V1__OPERATION__STATE__##name

typedef Skycap__V1__Operation operation;
typedef Skycap__V1__SpreadTarget spread_target;
typedef Skycap__V1__SpreadSnapshotReply spread_reply;

static const char *to = "";
static const char *rate;

/* What a node does. */
struct copy {
    const spread_target *target;
    int64_t done, total, rate; /* of its operation */
    struct error *failure;     /* NULL: it has the snapshot, or fetches it */
    bool has_ended;
};

struct spread {
    struct client *client;
    struct copy *copies;
    size_t count;
    struct progress_bar bar;
};

/* ---- to which nodes ---- */

static struct error *
read_nodes(struct client *client, Skycap__V1__SpreadSnapshotRequest *request)
{
    size_t most = 1;
    char *end;
    if (!to[0])
        return error_new(CODE_INVALID_ARGUMENT, "--to is missing: all, a number, or nodes");
    request->all = strcmp(to, "all") == 0;
    unsigned long count = strtoul(to, &end, 10);
    if (request->all)
        return NULL;
    if (!*end && to[0] != '-') {
        request->count = count < 100000 ? (uint32_t)count : 100000;
        return count ? NULL : error_new(CODE_INVALID_ARGUMENT, "--to 0 is no node");
    }
    for (const char *comma = to; (comma = strchr(comma, ',')); comma++)
        most++;
    request->node_ids = arena_alloc(&client->arena, most * sizeof(char *));
    for (const char *at = to; *at; at += strcspn(at, ","), at += *at == ',')
        if (*at != ',')
            request->node_ids[request->n_node_ids++] =
                arena_copy(&client->arena, at, strcspn(at, ","));
    return NULL;
}

/* ---- waiting ---- */

static void
look_at(struct spread *spread, struct copy *copy)
{
    Skycap__V1__GetOperationRequest request = SKYCAP__V1__GET_OPERATION_REQUEST__INIT;
    struct arena before = spread->client->arena; /* answers are not kept: there may be many */
    operation *now;
    request.id = copy->target->operation_id;
    arena_init(&spread->client->arena, NULL, 0, SIZE_MAX);
    struct error *error AUTO(error_cleanup) =
        client_ask(spread->client, "skycap.v1.Operations/Get", &request, &now);
    if (!error) { /* otherwise the node may come back, and goes on then */
        copy->done = now->done;
        copy->total = now->total;
        copy->rate = now->rate;
        copy->has_ended = now->state != STATE(RUNNING);
        if (copy->has_ended)
            copy->failure = progress_result(now);
    }
    arena_clear(&spread->client->arena);
    spread->client->arena = before;
}

/* Returns whether all have ended. Sums up what is done, for one bar. */
static bool
look(struct spread *spread)
{
    operation all = SKYCAP__V1__OPERATION__INIT;
    Google__Protobuf__Duration left = GOOGLE__PROTOBUF__DURATION__INIT;
    bool has_ended = true;
    all.units = "bytes";
    all.state = STATE(RUNNING);
    all.phase = SKYCAP__V1__OPERATION__PHASE__WORKING;
    for (size_t i = 0; i < spread->count; i++) {
        struct copy *copy = &spread->copies[i];
        if (!copy->has_ended)
            look_at(spread, copy);
        has_ended &= copy->has_ended;
        all.done += copy->done;
        all.total += copy->total;
        all.rate += copy->has_ended ? 0 : copy->rate;
    }
    if (all.rate > 0) {
        left.seconds = (all.total - all.done) / all.rate;
        all.time_left = &left;
    }
    if (!has_ended)
        progress_draw(&spread->bar, &all);
    return has_ended;
}

static void
cancel(struct spread *spread)
{
    for (size_t i = 0; i < spread->count; i++) {
        Skycap__V1__CancelOperationRequest request = SKYCAP__V1__CANCEL_OPERATION_REQUEST__INIT;
        operation *now;
        request.id = spread->copies[i].target->operation_id;
        if (!spread->copies[i].has_ended)
            error_free(client_ask(spread->client, "skycap.v1.Operations/Cancel", &request, &now));
    }
    for (int waited = 0; waited < END_MS && !look(spread); waited += LOOK_MS)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
}

/* SIGINT is blocked: it ends the wait instead. */
static struct error *
wait_for_all(struct spread *spread, const sigset_t *interrupts)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    while (!look(spread)) {
        if (!client_has_time(spread->client))
            return error_new(CODE_DEADLINE_EXCEEDED,
                             "the time limit has passed, but the work goes on: see skycap op list");
        if (sigtimedwait(interrupts, NULL, &pause) == SIGINT) {
            cancel(spread);
            return error_new(CODE_CANCELLED, "interrupted: the copies in progress were cancelled");
        }
    }
    return NULL;
}

/* ---- all of it ---- */

static void
add_copy(struct spread *spread, const spread_target *target)
{
    struct copy *copy = &spread->copies[spread->count++];
    *copy = (struct copy){.target = target, .has_ended = !target->operation_id[0]};
    if (target->error_code)
        copy->failure = error_new(target->error_code > 0 && target->error_code < CODE_COUNT
                                      ? (enum code)target->error_code
                                      : CODE_UNKNOWN,
                                  "%s", target->error_message);
}

static void
print_result(const struct spread *spread, const char *name)
{
    for (size_t i = 0; i < spread->count; i++) {
        const struct copy *copy = &spread->copies[i];
        spread->client->has_failed |= copy->failure != NULL;
        if (copy->failure)
            fprintf(stderr, "node %s has no copy: %s\n", copy->target->node_id,
                    copy->failure->message);
        else if (!spread->client->as_json)
            printf("%s is on node %s%s\n", name, copy->target->node_id,
                   copy->target->operation_id[0] ? " now" : " already");
    }
}

static struct error *
run_all(struct client *client, const char *id, const spread_reply *reply)
{
    struct spread spread = {.client = client, .bar.draws = isatty(STDERR_FILENO)};
    sigset_t interrupts;
    snapshot_info *snapshot;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    spread.copies = arena_alloc(&client->arena, reply->n_targets * sizeof *spread.copies);
    for (size_t i = 0; i < reply->n_targets; i++)
        add_copy(&spread, reply->targets[i]);
    struct error *error = wait_for_all(&spread, &interrupts);
    progress_wipe(&spread.bar);
    if (!error)
        print_result(&spread, client->words[0]);
    for (size_t i = 0; i < spread.count; i++)
        error_free(spread.copies[i].failure);
    if (error || !client->as_json)
        return error;
    error = inventory_find_snapshot(client, id, &snapshot);
    if (!error)
        client_print_json(snapshot, MESSAGE_JSON_PRETTY);
    return error;
}

/* Before any thread is started, so that all of them inherit it. */
static void
block_interrupts(void)
{
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupts, NULL);
}

static struct error *
spread_snapshot(struct client *client)
{
    Skycap__V1__SpreadSnapshotRequest request = SKYCAP__V1__SPREAD_SNAPSHOT_REQUEST__INIT;
    spread_reply *reply;
    snapshot_info *snapshot;
    struct error *error = read_nodes(client, &request);
    if (!error)
        error = volume_read_rate(rate, &request.bytes_per_second);
    if (error) {
        client->exit_code = EXIT_USAGE;
        return error;
    }
    block_interrupts();
    error = inventory_find_snapshot(client, client->words[0], &snapshot);
    if (error)
        return error;
    request.snapshot_id = snapshot->snapshot->snapshot_id;
    error = client_ask(client, "skycap.v1.Replicas/Spread", &request, &reply);
    return error ? error : run_all(client, request.snapshot_id, reply);
}

static const struct option spread_flags[] = {
    {"to", 0, "all|N|NODE,...", OPTION_TEXT, &to,
     "all nodes, so many nodes beside the one that took it, or these"},
    {"rate", 0, "SIZE", OPTION_TEXT, &rate, VOLUME_RATE_HELP},
    {0},
};

const struct command snapshot_spread_command = {
    .name = "spread",
    .summary = "copy a snapshot to other nodes",
    .words = "SNAPSHOT",
    .help = "Copies a snapshot to other nodes of the cluster. The nodes fetch it from each other, "
            "so that none of them\nsends it often. The snapshot can then be restored on each of "
            "them at once, also if the node that took it\nis lost. Ctrl-C cancels the copies in "
            "progress. Exits with 1 if a node has no copy.",
    .flags = spread_flags,
    .run = spread_snapshot,
};
