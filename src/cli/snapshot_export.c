/* SPDX-License-Identifier: Apache-2.0 */
/* skycap snapshot export, import, verify and prune; skycap repository rebuild. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/inventory.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "message/message_json.h"
#include "proto/repositories.pb-c.h"

static const char *repository = "";
static bool in_background, again;

/* ---- export ---- */

static const struct option export_flags[] = {
    {"repository", 'r', "NAME", OPTION_TEXT, &repository,
     "where to; default: the only one that the server has"},
    {"background", 'b', NULL, OPTION_FLAG, &in_background,
     "print the id of the operation and do not wait for it"},
    {"again", 0, NULL, OPTION_FLAG, &again,
     "also if it was exported before: store anew what the repository has lost of it"},
    {0},
};

static void
print_export(const Skycap__V1__Export *export, const char *where, struct arena *arena)
{
    double seconds = (double)export->duration_ms / 1000;
    printf("%s is in the repository %s as %.12s\n", export->name, where, export->id);
    if (again) /* the rest is of the first time */
        return;
    printf("read %s of %s and stored %s in %.1f s\n",
           inventory_bytes_text(export->bytes_read, arena),
           inventory_bytes_text(export->content_bytes, arena),
           inventory_bytes_text(export->bytes_stored, arena), seconds);
    if (export->full_reason[0])
        printf("read everything: %s\n", export->full_reason);
}

static struct error *
ask_to_export(struct client *client, bool is_again, Skycap__V1__ExportSnapshotReply **reply)
{
    Skycap__V1__ExportSnapshotRequest request = SKYCAP__V1__EXPORT_SNAPSHOT_REQUEST__INIT;
    request.snapshot = client->words[0];
    request.repository = (char *)repository;
    request.again = is_again;
    return client_ask(client, "skycap.v1.Repositories/Export", &request, reply);
}

/* Follows the operation, and asks again for what has become of it. */
static struct error *export(struct client *client)
{
    Skycap__V1__ExportSnapshotReply *reply;
    struct error *error = ask_to_export(client, again, &reply);
    if (error)
        return error;
    if (reply->operation[0] && in_background) {
        puts(reply->operation);
        return NULL;
    }
    if (reply->operation[0]) {
        error = progress_follow(client, reply->operation);
        if (!error)
            error = ask_to_export(client, false, &reply);
    }
    if (error || !reply->export)
        return error;
    if (client->as_json)
        client_print_json(reply->export, MESSAGE_JSON_PRETTY);
    else
        print_export(reply->export, reply->repository, &client->arena);
    return NULL;
}

const struct command snapshot_export_command = {
    .name = "export",
    .summary = "copy a snapshot to a repository",
    .words = "SNAPSHOT",
    .help = "Copies a snapshot to a repository, from where it can be restored anywhere. Reads only "
            "what has changed\nsince the last export of the volume, or says why it cannot. Ended "
            "with Ctrl-C, the export goes on:\nsee `skycap op`.",
    .flags = export_flags,
    .run = export,
};

/* ---- import ---- */

static const char *volume_name = "", *node = "", *connection = "";

static const struct option import_flags[] = {
    {"repository", 'r', "NAME", OPTION_TEXT, &repository,
     "where from; default: the only one that the server has"},
    {"name", 'n', "VOLUME", OPTION_TEXT, &volume_name, "the name of the new volume"},
    {"node", 0, "NODE", OPTION_TEXT, &node,
     "node of a cluster to create it on; default: the one that is asked"},
    {"connection", 0, "NAME", OPTION_TEXT, &connection,
     "connection of that node to create it in; default: its default one with the driver local"},
    {"background", 'b', NULL, OPTION_FLAG, &in_background, "do not wait until its data is there"},
    {0},
};

static struct error *
import(struct client *client)
{
    Skycap__V1__ImportSnapshotRequest request = SKYCAP__V1__IMPORT_SNAPSHOT_REQUEST__INIT;
    Skycap__V1__ImportSnapshotReply *reply;
    if (!volume_name[0])
        return error_new(CODE_INVALID_ARGUMENT, "give the new volume a name: --name VOLUME");
    request.snapshot = client->words[0];
    request.repository = (char *)repository;
    request.name = (char *)volume_name;
    request.node = (char *)node;
    request.connection = (char *)connection;
    struct error *error = client_ask(client, "skycap.v1.Repositories/Import", &request, &reply);
    if (error)
        return error;
    if (!reply->ready && !in_background)
        error = progress_follow(client, reply->volume_id);
    return error ? error : inventory_show_volume(client, reply->volume_id);
}

const struct command snapshot_import_command = {
    .name = "import",
    .summary = "make a volume from a snapshot in a repository",
    .words = "SNAPSHOT",
    .help =
        "Makes a volume from a snapshot in a repository. SNAPSHOT is its id there, the "
        "beginning of that, or the\nname of the snapshot, if no other has that name. Other servers "
        "may have exported it.",
    .flags = import_flags,
    .run = import,
};

/* ---- verify and prune ---- */

typedef Skycap__V1__RepositoryWork work_message;

struct work {
    struct client *client;
    work_message result;
    unsigned findings;
    bool is_on_terminal;
};

static void
print_progress(const struct work *work, const work_message *message)
{
    if (work->is_on_terminal && message->total)
        fprintf(stderr, "\r%3u%%",
                (unsigned)(100.0 * (double)message->done / (double)message->total));
}

static struct error *
take(void *context, const void *bytes)
{
    struct work *work = context;
    const work_message *message = bytes;
    if (message->finding[0]) {
        work->findings++;
        printf("%s%s\n", work->is_on_terminal ? "\r" : "", message->finding);
    } else if (message->is_result) {
        work->result = *message;
        work->result.finding = "";
    } else {
        print_progress(work, message);
    }
    return NULL;
}

static struct error *
do_work(struct client *client, const char *method, const void *request, struct work *work)
{
    *work = (struct work){.client = client,
                          .result = SKYCAP__V1__REPOSITORY_WORK__INIT,
                          .is_on_terminal = isatty(STDERR_FILENO)};
    struct error *error = client_ask_stream(client, method, request, take, work);
    if (work->is_on_terminal)
        fputs("\r    \r", stderr);
    if (!error && !work->result.is_result)
        error = error_new(CODE_UNAVAILABLE, "the server ended before the work did: repeat it");
    if (!error && client->as_json)
        client_print_json(&work->result, MESSAGE_JSON_PRETTY);
    return error;
}

static bool reads_data;

static const struct option verify_flags[] = {
    {"repository", 'r', "NAME", OPTION_TEXT, &repository,
     "default: the only one that the server has"},
    {"data", 0, NULL, OPTION_FLAG, &reads_data, "read and check every byte"},
    {0},
};

static struct error *
verify(struct client *client)
{
    Skycap__V1__VerifyRepositoryRequest request = SKYCAP__V1__VERIFY_REPOSITORY_REQUEST__INIT;
    struct work work;
    request.repository = (char *)repository;
    request.data = reads_data;
    struct error *error = do_work(client, "skycap.v1.Repositories/Verify", &request, &work);
    if (error)
        return error;
    bool is_damaged = work.result.findings || work.findings;
    if (!client->as_json)
        printf("%ju snapshots, %ju chunks in %ju packs: %s\n", (uintmax_t)work.result.snapshots,
               (uintmax_t)work.result.chunks, (uintmax_t)work.result.packs,
               is_damaged ? "DAMAGED, see above" : "nothing is wrong");
    client->has_failed = is_damaged;
    return NULL;
}

const struct command snapshot_verify_command = {
    .name = "verify",
    .summary = "check a repository",
    .words = "",
    .help = "Checks that a repository has everything that its snapshots refer to; with --data, "
            "that every byte of it\nis right. Fails if something is wrong. Ctrl-C cancels it.",
    .flags = verify_flags,
    .run = verify,
};

static const struct option prune_flags[] = {
    {"repository", 'r', "NAME", OPTION_TEXT, &repository,
     "default: the only one that the server has"},
    {0},
};

static struct error *
prune(struct client *client)
{
    Skycap__V1__PruneRepositoryRequest request = SKYCAP__V1__PRUNE_REPOSITORY_REQUEST__INIT;
    struct work work;
    request.repository = (char *)repository;
    struct error *error = do_work(client, "skycap.v1.Repositories/Prune", &request, &work);
    if (error || client->as_json)
        return error;
    printf("freed %s in %ju packs\n",
           inventory_bytes_text(work.result.bytes_deleted, &client->arena),
           (uintmax_t)work.result.packs_deleted);
    if (work.result.packs_waiting)
        printf("%ju more are freed when the exports in progress have ended\n",
               (uintmax_t)work.result.packs_waiting);
    return NULL;
}

const struct command snapshot_prune_command = {
    .name = "prune",
    .summary = "free the space of removed snapshots in a repository",
    .words = "",
    .help = "Frees the space of what no snapshot in the repository refers to any more. Exports may "
            "run meanwhile.\nCtrl-C cancels it; the next prune does the rest.",
    .flags = prune_flags,
    .run = prune,
};

static const struct option rebuild_flags[] = {
    {"data", 0, NULL, OPTION_FLAG, &reads_data,
     "read every pack, and keep what is sound of those that are damaged"},
    {0},
};

static struct error *
rebuild(struct client *client)
{
    Skycap__V1__RebuildRepositoryRequest request = SKYCAP__V1__REBUILD_REPOSITORY_REQUEST__INIT;
    struct work work;
    request.repository = client->words[0];
    request.data = reads_data;
    struct error *error = do_work(client, "skycap.v1.Repositories/Rebuild", &request, &work);
    if (!error && !client->as_json)
        printf("%ju packs are in the index again\n", (uintmax_t)work.result.packs);
    return error;
}

const struct command repository_rebuild_command = {
    .name = "rebuild",
    .summary = "make the index of a repository anew",
    .words = "NAME",
    .help = "Makes the index of a repository anew from its packs, if index objects are damaged or "
            "lost. It reads the packs\nthat no index names, with --data all of them. Run "
            "`skycap snapshot verify` afterwards.",
    .flags = rebuild_flags,
    .run = rebuild,
};
