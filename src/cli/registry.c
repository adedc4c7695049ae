/* SPDX-License-Identifier: Apache-2.0 */
/* skycap registry: what a registry keeps. */
#include <stdio.h>
#include <string.h>

#include "cli/inventory.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "message/message_json.h"
#include "proto/oim.pb-c.h"
#include "proto/registry.pb-c.h"
#include "registry/path.h"

typedef Skycap__V1__RegistryEntry entry_message;

/* ---- asking ---- */

/* A server without the registry role says no more than that it does not know the method. */
static struct error *
explain(const struct client *client, struct error *error)
{
    if (!error || error->code != CODE_UNIMPLEMENTED)
        return error;
    error_free(error);
    return error_new(CODE_UNIMPLEMENTED,
                     "the server at %s is no registry: start it with --roles registry",
                     client->flags.endpoint);
}

/* Page by page, as one reply. */
static struct error *
list_all(struct client *client, const char *path, Skycap__V1__ListEntriesReply *all)
{
    Skycap__V1__ListEntriesRequest request = SKYCAP__V1__LIST_ENTRIES_REQUEST__INIT;
    Skycap__V1__ListEntriesReply *page;
    request.path = (char *)path;
    do {
        struct error *error = client_ask(client, "skycap.v1.Registry/ListEntries", &request, &page);
        if (error)
            return explain(client, error);
        all->entries =
            client_join(client, all->entries, all->n_entries, page->entries, page->n_entries);
        all->n_entries += page->n_entries;
        request.starting_token = page->next_token;
    } while (request.starting_token[0]);
    return NULL;
}

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

static VERB(run_list)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {
        "skycap registry list [PATH] [options]",
        "Lists the entry at PATH and all below it, by path; all entries without PATH.",
        NULL,
        0,
        0,
        1};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    Skycap__V1__ListEntriesReply all = SKYCAP__V1__LIST_ENTRIES_REPLY__INIT;
    error = list_all(&client, client.word_count ? client.words[0] : "", &all);
    if (!error && client.as_json)
        client_print_json(&all, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_entries(all.entries, all.n_entries, &client.arena);
    return error;
}

/* The entry at the path is the first of those at the path and below, if there is one. */
static struct error *
get(struct client *client, const char *text)
{
    Skycap__V1__ListEntriesRequest request = SKYCAP__V1__LIST_ENTRIES_REQUEST__INIT;
    Skycap__V1__ListEntriesReply *page;
    const char *path;
    struct error *error = path_normalize(text, &client->arena, &path);
    if (error)
        return error;
    request.path = (char *)path;
    request.max_entries = 1;
    error = client_ask(client, "skycap.v1.Registry/ListEntries", &request, &page);
    if (error)
        return explain(client, error);
    if (!page->n_entries || strcmp(page->entries[0]->path, path) != 0)
        return error_new(CODE_NOT_FOUND, "there is nothing at \"%s\"", path);
    if (client->as_json)
        client_print_json(page->entries[0], MESSAGE_JSON_PRETTY);
    else
        puts(page->entries[0]->value);
    return NULL;
}

static VERB(run_get)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {"skycap registry get PATH [options]",
                                       "Prints the value at PATH; ID/address is the address of the "
                                       "controller ID. The exit code is 1 if there\nis none.",
                                       NULL,
                                       0,
                                       1,
                                       1};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    return error || client.has_helped ? error : get(&client, client.words[0]);
}

/* ---- set ---- */

static struct error *
set_value(struct client *client, const char *path, const char *text)
{
    Oim__V0__Value value = OIM__V0__VALUE__INIT;
    Oim__V0__SetValueRequest request = OIM__V0__SET_VALUE_REQUEST__INIT;
    Oim__V0__SetValueReply *reply;
    value.path = (char *)path;
    value.value = (char *)text;
    request.value = &value;
    return explain(client, client_ask(client, "oim.v0.Registry/SetValue", &request, &reply));
}

static struct error *
announce(struct client *client, const char *text, const char *address, unsigned long seconds)
{
    Google__Protobuf__Duration time_to_live = GOOGLE__PROTOBUF__DURATION__INIT;
    Skycap__V1__AnnounceRequest request = SKYCAP__V1__ANNOUNCE_REQUEST__INIT;
    Skycap__V1__AnnounceReply *reply;
    const char *path;
    size_t id_size;
    struct error *error = path_normalize(text, &client->arena, &path);
    if (error)
        return error;
    if (!path_is_address(path, &id_size))
        return error_new(CODE_INVALID_ARGUMENT,
                         "--ttl: only a controller's address can have one, and \"%s\" is not "
                         "ID/address",
                         path);
    time_to_live.seconds = (int64_t)seconds;
    request.controller_id = arena_copy(&client->arena, path, id_size);
    request.address = (char *)address;
    request.time_to_live = &time_to_live;
    return explain(client, client_ask(client, "skycap.v1.Registry/Announce", &request, &reply));
}

static VERB(run_set)
{
    struct client client AUTO(client_close) = {0};
    unsigned long seconds = 0;
    const struct option own[] = {
        {"ttl", 0, "SECONDS", OPTION_NUMBER, &seconds,
         "for ID/address: expires after this time unless it is set again; default 0: never"},
    };
    const struct client_usage usage = {
        "skycap registry set PATH VALUE [options]",
        "Sets the value at PATH; an empty one removes it. ID/address is the address of the "
        "controller ID:\nhost:port or unix:///path.",
        own,
        COUNT_OF(own),
        2,
        2};
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    return seconds ? announce(&client, client.words[0], client.words[1], seconds)
                   : set_value(&client, client.words[0], client.words[1]);
}

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

static VERB(run_watch)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {
        "skycap registry watch [PATH] [options]",
        "Prints the entry at PATH and all below it, then `complete`, then each change as it "
        "happens, until it is\ninterrupted. After another `complete`, what was not printed since "
        "the last one is gone.",
        NULL,
        0,
        0,
        1};
    Skycap__V1__WatchRequest request = SKYCAP__V1__WATCH_REQUEST__INIT;
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    if (client.word_count)
        request.path = client.words[0];
    return explain(&client, client_ask_stream(&client, "skycap.v1.Registry/Watch", &request,
                                              take_change, &client));
}

/* ---- all of them ---- */

static const struct command table[] = {
    {"list", "list all entries, or those below a path", run_list},
    {"get", "print the value at a path", run_get},
    {"set", "set the value at a path, or remove it", run_set},
    {"watch", "show each change", run_watch},
};

static VERB(run)
{
    static const struct verbs verbs = {
        "registry", "Works with the entries of a registry: the addresses of controllers.", table,
        COUNT_OF(table)};
    return verbs_run(&verbs, count, arguments, exit_code);
}

const struct command registry_command = {"registry", "show and set the addresses of controllers",
                                         run};
