/* SPDX-License-Identifier: Apache-2.0 */
/* skycap registry: the entries of a registry. */
#include <stdio.h>
#include <string.h>

#include "cli/inventory.h"
#include "cli/table.h"
#include "message/message_json.h"
#include "proto/oim.pb-c.h"
#include "proto/registry.pb-c.h"
#include "registry/client/path.h"

typedef Skycap__V1__RegistryEntry entry_message;

/* ---- list and get ---- */

static void
print_entries(entry_message *const *entries, size_t count, struct arena *arena)
{
    static const char *const headings[] = {"PATH", "VALUE", "STATE", "REGISTERED", "EXPIRES"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    for (size_t i = 0; i < count; i++) {
        table_add(&table, entries[i]->path);
        table_add(&table, entries[i]->value);
        table_add(&table, entries[i]->is_expired ? "expired" : "good");
        table_add(&table, inventory_time_text(entries[i]->registered, arena));
        table_add(&table, inventory_time_text(entries[i]->expires, arena));
    }
    table_print(&table);
}

static struct error *
list(struct client *client)
{
    Skycap__V1__ListEntriesRequest request = SKYCAP__V1__LIST_ENTRIES_REQUEST__INIT;
    Skycap__V1__ListEntriesReply *all;
    request.path = client->word_count ? client->words[0] : "";
    struct error *error =
        client_ask_pages(client, "skycap.v1.Registry/ListEntries", &request, &all);
    if (!error && client->as_json)
        client_print_json(all, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_entries(all->entries, all->n_entries, &client->arena);
    return error;
}

static const struct command list_command = {
    .name = "list",
    .summary = "list all entries, or those below a path",
    .words = "[PATH]",
    .help = "Lists the entry at PATH and all below it, by path; all entries without PATH.",
    .run = list,
};

/* An entry at the path comes before those below it. */
static struct error *
get(struct client *client)
{
    Skycap__V1__ListEntriesRequest request = SKYCAP__V1__LIST_ENTRIES_REQUEST__INIT;
    Skycap__V1__ListEntriesReply *page;
    const char *path;
    struct error *error = path_normalize(client->words[0], &client->arena, &path);
    if (error)
        return error;
    request.path = (char *)path;
    request.max_entries = 1;
    error = client_ask(client, "skycap.v1.Registry/ListEntries", &request, &page);
    if (error)
        return error;
    if (!page->n_entries || strcmp(page->entries[0]->path, path) != 0)
        return error_new(CODE_NOT_FOUND, "there is nothing at \"%s\"", path);
    if (client->as_json)
        client_print_json(page->entries[0], MESSAGE_JSON_PRETTY);
    else
        puts(page->entries[0]->value);
    return NULL;
}

static const struct command get_command = {
    .name = "get",
    .summary = "print the value at a path",
    .words = "PATH",
    .help = "Prints the value at PATH; ID/address is the address of the controller ID. The exit "
            "code is 1 if there\nis none.",
    .run = get,
};

/* ---- set ---- */

static unsigned long time_to_live_s;

static const struct option set_flags[] = {
    {"ttl", 0, "SECONDS", OPTION_NUMBER, &time_to_live_s,
     "for ID/address and nodes/ID/address: expires after this time unless it is set again; default "
     "0: never"},
    {0},
};

static struct error *
set_value(struct client *client, const char *path, const char *text)
{
    Oim__V0__Value value = OIM__V0__VALUE__INIT;
    Oim__V0__SetValueRequest request = OIM__V0__SET_VALUE_REQUEST__INIT;
    Oim__V0__SetValueReply *reply;
    value.path = (char *)path;
    value.value = (char *)text;
    request.value = &value;
    return client_ask(client, "oim.v0.Registry/SetValue", &request, &reply);
}

static struct error *
announce(struct client *client, const char *text, const char *address)
{
    Google__Protobuf__Duration time_to_live = GOOGLE__PROTOBUF__DURATION__INIT;
    Skycap__V1__AnnounceRequest request = SKYCAP__V1__ANNOUNCE_REQUEST__INIT;
    Skycap__V1__AnnounceReply *reply;
    const char *path;
    size_t id_size;
    struct error *error = path_normalize(text, &client->arena, &path);
    if (error)
        return error;
    const char *node = path_find_node(path, &id_size);
    if (!node && !path_is_address(path, &id_size))
        return error_new(CODE_INVALID_ARGUMENT,
                         "--ttl: only the address of a controller or a node can have one, and "
                         "\"%s\" is neither ID/address nor " PATH_NODES "/ID/address",
                         path);
    time_to_live.seconds = (int64_t)time_to_live_s;
    *(node ? &request.node_id : &request.controller_id) =
        arena_copy(&client->arena, node ? node : path, id_size);
    request.address = (char *)address;
    request.time_to_live = &time_to_live;
    return client_ask(client, "skycap.v1.Registry/Announce", &request, &reply);
}

static struct error *
set(struct client *client)
{
    return time_to_live_s ? announce(client, client->words[0], client->words[1])
                          : set_value(client, client->words[0], client->words[1]);
}

static const struct command set_command = {
    .name = "set",
    .summary = "set the value at a path, or remove it",
    .words = "PATH VALUE",
    .help = "Sets the value at PATH; an empty one removes it. ID/address is the address of the "
            "controller ID,\nnodes/ID/address that of the node ID: host:port or unix:///path.",
    .flags = set_flags,
    .run = set,
};

/* ---- watch ---- */

static void
print_change(const Skycap__V1__WatchReply *change, struct arena *arena)
{
    switch (change->what_case) {
    case SKYCAP__V1__WATCH_REPLY__WHAT_ENTRY:
        printf("%s %s %s", change->entry->is_expired ? "expired" : "set", change->entry->path,
               change->entry->value);
        if (change->entry->expires)
            printf(" %s", inventory_time_text(change->entry->expires, arena));
        putchar('\n');
        break;
    case SKYCAP__V1__WATCH_REPLY__WHAT_REMOVED:
        printf("removed %s\n", change->removed);
        break;
    case SKYCAP__V1__WATCH_REPLY__WHAT_IS_COMPLETE:
        puts("complete");
        break;
    case SKYCAP__V1__WATCH_REPLY__WHAT_IS_ANEW:
        puts("anew");
        break;
    default:
        break;
    }
}

static struct error *
take_change(void *context, const void *message)
{
    const struct client *client = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (client->as_json)
        client_print_json(message, 0);
    else
        print_change(message, &arena);
    fflush(stdout);
    return NULL;
}

static struct error *
watch(struct client *client)
{
    Skycap__V1__WatchRequest request = SKYCAP__V1__WATCH_REQUEST__INIT;
    if (client->word_count)
        request.path = client->words[0];
    return client_ask_stream(client, "skycap.v1.Registry/Watch", &request, take_change, client);
}

static const struct command watch_command = {
    .name = "watch",
    .summary = "show each change",
    .words = "[PATH]",
    .help = "Prints the entry at PATH and all below it, then `complete`, then each change as it "
            "happens, until it is\ninterrupted. A renewal is no change. If changes were missed: "
            "`anew`, all entries again, and another\n`complete`; what was not printed in between "
            "is gone.",
    .run = watch,
};

/* ---- all of them ---- */

const struct command registry_command = {
    .name = "registry",
    .summary = "show and set the addresses of controllers and nodes",
    .help = "Works with the entries of a registry: the addresses of controllers and nodes.",
    .below = (const struct command *const[]){&list_command, &get_command, &set_command,
                                             &watch_command, NULL},
    .unimplemented = "is not a registry: start it with --roles registry",
};
