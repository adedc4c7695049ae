/* SPDX-License-Identifier: Apache-2.0 */
/* skycap repository. */
#include <stdio.h>

#include "cli/inventory.h"
#include "cli/table.h"
#include "message/message_json.h"
#include "proto/repositories.pb-c.h"

/* ---- init ---- */

static struct error *
init(struct client *client)
{
    Skycap__V1__InitRepositoryRequest request = SKYCAP__V1__INIT_REPOSITORY_REQUEST__INIT;
    Skycap__V1__InitRepositoryReply *reply;
    request.name = client->words[0];
    struct error *error = client_ask(client, "skycap.v1.Repositories/Init", &request, &reply);
    if (error)
        return error;
    if (client->as_json) {
        client_print_json(reply, 0);
        return NULL;
    }
    printf("the repository %s is at %s\n", request.name, reply->url);
    if (reply->key_file[0])
        printf("its key is in %s\nKeep a copy of the key in another place: without it, nothing in "
               "the repository can be read.\n",
               reply->key_file);
    return NULL;
}

static const struct command init_command = {
    .name = "init",
    .summary = "make a repository and its key",
    .words = "NAME",
    .help = "Makes the repository that the server's file NAME.yaml describes, and its key unless "
            "the key file exists.",
    .run = init,
};

/* ---- list ---- */

static struct error *
list(struct client *client)
{
    Skycap__V1__ListRepositoriesRequest request = SKYCAP__V1__LIST_REPOSITORIES_REQUEST__INIT;
    Skycap__V1__ListRepositoriesReply *reply;
    static const char *const headings[] = {"NAME", "STATE", "ENCRYPTED", "DRILLED", "URL"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    struct error *error = client_ask(client, "skycap.v1.Repositories/List", &request, &reply);
    if (error)
        return error;
    if (client->as_json) {
        client_print_json(reply, MESSAGE_JSON_PRETTY);
        return NULL;
    }
    for (size_t i = 0; i < reply->n_repositories; i++) {
        const Skycap__V1__Repository *one = reply->repositories[i];
        table_add(&table, one->name);
        table_add(&table, one->error[0] ? one->error : "ready");
        table_add(&table, one->encrypted ? "yes" : "no");
        table_add(&table, one->drilled ? inventory_time_text(one->drilled, &client->arena) : "");
        table_add(&table, one->url);
    }
    table_print(&table);
    return NULL;
}

static const struct command list_command = {
    .name = "list",
    .summary = "list the repositories of the server",
    .help = "Lists the repositories that the server has files about.",
    .run = list,
};

/* ---- snapshots ---- */

static const char *
short_id(const char *id, struct arena *arena)
{
    return arena_print(arena, "%.12s", id);
}

static void
print_exports(const Skycap__V1__ListExportsReply *reply, struct arena *arena)
{
    static const char *const headings[] = {"NAME",   "VOLUME", "TYPE", "SIZE",
                                           "STORED", "TAKEN",  "ID"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    for (size_t i = 0; i < reply->n_exports; i++) {
        const Skycap__V1__Export *one = reply->exports[i];
        table_add(&table, one->name);
        table_add(&table, one->volume_name);
        table_add(&table, one->type);
        table_add(&table, inventory_bytes_text(one->content_bytes, arena));
        table_add(&table, inventory_bytes_text(one->bytes_stored, arena));
        table_add(&table, inventory_time_text(one->taken, arena));
        table_add(&table, short_id(one->id, arena));
    }
    table_print(&table);
}

static struct error *
snapshots(struct client *client)
{
    Skycap__V1__ListExportsRequest request = SKYCAP__V1__LIST_EXPORTS_REQUEST__INIT;
    Skycap__V1__ListExportsReply *reply;
    request.repository = client->words[0];
    struct error *error =
        client_ask_pages(client, "skycap.v1.Repositories/ListExports", &request, &reply);
    if (error)
        return error;
    if (client->as_json)
        client_print_json(reply, MESSAGE_JSON_PRETTY);
    else
        print_exports(reply, &client->arena);
    return NULL;
}

static const struct command snapshots_command = {
    .name = "snapshots",
    .summary = "list the snapshots in a repository, oldest first",
    .words = "NAME",
    .help = "Lists the snapshots that were exported to a repository, by any server, the oldest "
            "first. STORED is what\neach added to the repository.",
    .run = snapshots,
};

/* ---- remove ---- */

static struct error *
remove_snapshot(struct client *client)
{
    Skycap__V1__RemoveExportRequest request = SKYCAP__V1__REMOVE_EXPORT_REQUEST__INIT;
    Skycap__V1__RemoveExportReply *reply;
    request.repository = client->words[0];
    request.id = client->words[1];
    struct error *error = client_ask(client, "skycap.v1.Repositories/Remove", &request, &reply);
    if (!error && client->as_json)
        client_print_json(reply, 0);
    return error;
}

static const struct command remove_command = {
    .name = "remove",
    .summary = "remove a snapshot from a repository",
    .words = "NAME ID",
    .help = "Removes the snapshot with this whole id from a repository. `skycap snapshot prune` "
            "frees its space.",
    .run = remove_snapshot,
};

/* ---- stats ---- */

static void
print_stats(const Skycap__V1__RepositoryStatsReply *reply, struct arena *arena)
{
    double ratio =
        reply->bytes_stored ? (double)reply->content_bytes / (double)reply->bytes_stored : 0;
    table_print_fact("snapshots", arena_print(arena, "%ju", (uintmax_t)reply->snapshots));
    table_print_fact("contents", arena_print(arena, "%s in all snapshots together",
                                             inventory_bytes_text(reply->content_bytes, arena)));
    table_print_fact("chunks",
                     arena_print(arena, "%ju, %s before compression", (uintmax_t)reply->chunks,
                                 inventory_bytes_text(reply->bytes, arena)));
    table_print_fact("stored", arena_print(arena, "%s in %ju packs, 1/%.1f of the contents",
                                           inventory_bytes_text(reply->bytes_stored, arena),
                                           (uintmax_t)reply->packs, ratio));
}

static struct error *
stats(struct client *client)
{
    Skycap__V1__RepositoryStatsRequest request = SKYCAP__V1__REPOSITORY_STATS_REQUEST__INIT;
    Skycap__V1__RepositoryStatsReply *reply;
    request.repository = client->words[0];
    struct error *error = client_ask(client, "skycap.v1.Repositories/Stats", &request, &reply);
    if (error)
        return error;
    if (client->as_json)
        client_print_json(reply, MESSAGE_JSON_PRETTY);
    else
        print_stats(reply, &client->arena);
    return NULL;
}

static const struct command stats_command = {
    .name = "stats",
    .summary = "show how much a repository holds",
    .words = "NAME",
    .help = "Shows how much a repository holds, and what it occupies.",
    .run = stats,
};

const struct command repository_command = {
    .name = "repository",
    .summary = "make and look at repositories of exported snapshots",
    .help = "Works with the repositories of a server that was started with --repositories.",
    .below =
        (const struct command *const[]){
            &init_command,
            &list_command,
            &snapshots_command,
            &remove_command,
            &stats_command,
            &repository_rebuild_command,
            NULL,
        },
};
