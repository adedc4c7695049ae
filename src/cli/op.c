/* SPDX-License-Identifier: Apache-2.0 */
/* skycap op: operations of a server, in progress or recently ended. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/inventory.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "message/message_json.h"

typedef Skycap__V1__Operation operation_message;

/* ---- showing ---- */

static void
print_operations(operation_message *const *operations, size_t count, struct arena *arena)
{
    static const char *const headings[] = {"KIND", "STATE",   "DONE", "AMOUNT", "RATE",
                                           "LEFT", "STARTED", "ID",   "NODE"};
    bool has_nodes = count && operations[0]->node_id[0];
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings) - !has_nodes);
    for (size_t i = 0; i < count; i++) {
        table_add(&table, operations[i]->kind);
        table_add(&table, progress_state(operations[i]));
        table_add(&table, progress_percent(operations[i], arena));
        table_add(&table, progress_amount(operations[i], arena));
        table_add(&table, progress_rate(operations[i], arena));
        table_add(&table, progress_time_left(operations[i], arena));
        table_add(&table, inventory_time_text(operations[i]->started, arena));
        table_add(&table, operations[i]->id);
        if (has_nodes)
            table_add(&table, operations[i]->node_id);
    }
    table_print(&table);
}

static void
print_operation(const operation_message *operation, struct arena *arena)
{
    table_print_fact("id", operation->id);
    table_print_fact("kind", operation->kind);
    table_print_fact("what", operation->description);
    table_print_fact("for", operation->subject);
    table_print_fact("node", operation->node_id);
    table_print_fact("state", progress_state(operation));
    table_print_fact("result", operation->result);
    table_print_fact("error", operation->error_message);
    table_print_fact("done", progress_percent(operation, arena));
    table_print_fact("amount", progress_amount(operation, arena));
    table_print_fact("rate", progress_rate(operation, arena));
    table_print_fact("time left", progress_time_left(operation, arena));
    table_print_fact("started", inventory_time_text(operation->started, arena));
    table_print_fact("last progress", inventory_time_text(operation->advanced, arena));
    table_print_fact("updated", inventory_time_text(operation->updated, arena));
}

/* ---- finding ---- */

/* An operation has the id of the volume or snapshot that it creates. NULL: no such name. */
static struct error *
find_by_name(struct client *client, const char *text, const char **id)
{
    volume_info *volume;
    snapshot_info *snapshot;
    struct error *error = inventory_find_volume(client, text, &volume);
    if (!error) {
        *id = volume->volume->volume_id;
        return NULL;
    }
    if (error->code != CODE_NOT_FOUND)
        return error;
    error_free(error);
    error = inventory_find_snapshot(client, text, &snapshot);
    if (!error)
        *id = snapshot->snapshot->snapshot_id;
    return error_forgive(error, CODE_NOT_FOUND);
}

static struct error *
find(struct client *client, const char *text, operation_message **out)
{
    Skycap__V1__GetOperationRequest request = SKYCAP__V1__GET_OPERATION_REQUEST__INIT;
    const char *id = NULL;
    request.id = (char *)text;
    struct error *error = client_ask(client, "skycap.v1.Operations/Get", &request, out);
    if (!error || error->code != CODE_NOT_FOUND)
        return error;
    struct error *other = find_by_name(client, text, &id);
    if (!other && !id)
        return error;
    error_free(error);
    if (other)
        return other;
    request.id = (char *)id;
    return client_ask(client, "skycap.v1.Operations/Get", &request, out);
}

/* ---- list and show ---- */

static struct error *
list(struct client *client)
{
    Skycap__V1__ListOperationsRequest request = SKYCAP__V1__LIST_OPERATIONS_REQUEST__INIT;
    Skycap__V1__ListOperationsResponse *all;
    struct error *error = client_ask_pages(client, "skycap.v1.Operations/List", &request, &all);
    if (!error && client->as_json)
        client_print_json(all, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_operations(all->operations, all->n_operations, &client->arena);
    client_warn_of_missing(client);
    return error;
}

static const struct command list_command = {
    .name = "list",
    .summary = "list operations in progress or recently ended",
    .help = "Lists operations, oldest first: those in progress, and those that ended within the "
            "last day.",
    .run = list,
};

static struct error *
show(struct client *client)
{
    operation_message *operation;
    struct error *error = find(client, client->words[0], &operation);
    if (!error && client->as_json)
        client_print_json(operation, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_operation(operation, &client->arena);
    return error;
}

static const struct command show_command = {
    .name = "show",
    .summary = "show one operation",
    .words = "OPERATION",
    .help = "Shows details of an operation.",
    .run = show,
};

/* ---- watch ---- */

static const char *
on_node(const operation_message *operation, struct arena *arena)
{
    return operation->node_id[0] ? arena_print(arena, ", on node %s", operation->node_id) : "";
}

static struct error *
print_change(void *context, const void *message)
{
    const struct client *client = context;
    const operation_message *operation = message;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (client->as_json) {
        client_print_json(operation, 0);
        return NULL;
    }
    const char *rate = progress_rate(operation, &arena);
    const char *left = progress_time_left(operation, &arena);
    printf("%s %s %s %s %s%s%s%s%s%s%s\n", operation->id, operation->kind,
           progress_state(operation), progress_percent(operation, &arena),
           progress_amount(operation, &arena), rate[0] ? ", " : "", rate, left[0] ? ", " : "", left,
           left[0] ? " left" : "", on_node(operation, &arena));
    fflush(stdout);
    return NULL;
}

static struct error *
print_changes(struct client *client, char *id)
{
    Skycap__V1__WatchOperationsRequest request = SKYCAP__V1__WATCH_OPERATIONS_REQUEST__INIT;
    request.id = id;
    return client_ask_stream(client, "skycap.v1.Operations/Watch", &request, print_change, client);
}

static struct error *
watch_one(struct client *client, const char *text)
{
    operation_message *operation;
    struct error *error = find(client, text, &operation);
    if (error)
        return error;
    if (isatty(STDOUT_FILENO) && !client->as_json)
        return progress_follow(client, operation->id);
    error = print_changes(client, operation->id);
    if (!error)
        error = find(client, operation->id, &operation);
    return error ? error : progress_result(operation);
}

static struct error *
watch(struct client *client)
{
    return client->word_count ? watch_one(client, client->words[0]) : print_changes(client, "");
}

static const struct command watch_command = {
    .name = "watch",
    .summary = "wait for the end of an operation",
    .words = "[OPERATION]",
    .help = "Waits for the end of an operation and shows its progress; the exit code says how it "
            "ended. Without\nOPERATION it shows all operations until interrupted.",
    .run = watch,
};

/* ---- cancel ---- */

static struct error *
cancel(struct client *client)
{
    Skycap__V1__CancelOperationRequest request = SKYCAP__V1__CANCEL_OPERATION_REQUEST__INIT;
    operation_message *operation;
    struct error *error = find(client, client->words[0], &operation);
    if (error)
        return error;
    request.id = operation->id;
    error = client_ask(client, "skycap.v1.Operations/Cancel", &request, &operation);
    if (!error && client->as_json)
        client_print_json(operation, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_operations(&operation, 1, &client->arena);
    return error;
}

static const struct command cancel_command = {
    .name = "cancel",
    .summary = "request cancellation of an operation",
    .words = "OPERATION",
    .help = "Requests cancellation of an operation. It ends shortly afterwards, and what it was "
            "creating is removed.",
    .run = cancel,
};

/* ---- all of them ---- */

const struct command op_command = {
    .name = "op",
    .summary = "watch and cancel long-running operations",
    .help = "Works with operations: long-running copies. OPERATION is the id or the name of the "
            "volume or snapshot\nthat is being created.",
    .below = (const struct command *const[]){&list_command, &show_command, &watch_command,
                                             &cancel_command, NULL},
};
