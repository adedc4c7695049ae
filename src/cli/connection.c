/* SPDX-License-Identifier: Apache-2.0 */
/* skycap connection: the connections of a server, and their files. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "cli/inventory.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "connections/config/directory.h"
#include "connections/config/spec_set.h"
#include "message/message_json.h"
#include "proto/connections.pb-c.h"

/* ---- check ---- */

struct verdict {
    const struct directory_file *file;
    const char *driver; /* NULL: the file is wrong */
    unsigned line;      /* 0: what is wrong has none */
    const char *message;
};

static void
append_text(struct buffer *out, const char *name, const char *text)
{
    buffer_print(out, ",\"%s\":", name);
    json_append_string(out, text, strlen(text));
}

static void
print_json(const struct verdict *verdict)
{
    struct buffer line AUTO(buffer_clear) = {0};
    buffer_print(&line, "{\"ok\":%s", verdict->driver ? "true" : "false");
    append_text(&line, "file", verdict->file->file);
    append_text(&line, "name", verdict->file->name);
    if (verdict->driver)
        append_text(&line, "driver", verdict->driver);
    if (verdict->line)
        buffer_print(&line, ",\"line\":%u", verdict->line);
    if (verdict->message)
        append_text(&line, "message", verdict->message);
    buffer_append_byte(&line, '}');
    puts(buffer_text(&line));
}

static void
print_text(const struct verdict *verdict)
{
    fflush(stdout); /* the lines of both stay in order */
    if (verdict->driver)
        printf("%s: ok (driver %s)\n", verdict->file->file, verdict->driver);
    else if (verdict->line)
        fprintf(stderr, "%s:%u: %s\n", verdict->file->file, verdict->line, verdict->message);
    else
        fprintf(stderr, "%s: %s\n", verdict->file->file, verdict->message);
}

/* A file, and what it says if it can be read. */
struct checked_file {
    struct directory_file file;
    struct connection_spec *spec; /* NULL: it is wrong */
    struct error *error;          /* NULL: it is right, or file.trouble tells */
};

struct checking {
    struct arena arena;
    bool as_json;
    size_t count;
    size_t wrong;
};

static void
read_spec(struct checked_file *checked, struct arena *arena)
{
    const struct directory_file *file = &checked->file;
    if (!file->trouble)
        checked->error = spec_read(file->name, file->text, file->size, arena, &checked->spec);
}

/* Takes the file's error. */
static void
tell(struct checking *checking, struct checked_file *checked)
{
    struct error *error AUTO(error_cleanup) = STEAL(checked->error);
    struct verdict verdict = {.file = &checked->file, .message = checked->file.trouble};
    if (error)
        verdict.line = settings_line_of(error->message, &verdict.message);
    else if (checked->spec)
        verdict.driver = checked->spec->driver->name;
    if (checking->as_json)
        print_json(&verdict);
    else
        print_text(&verdict);
    checking->count++;
    checking->wrong += !verdict.driver;
}

static void
check_file(struct checking *checking, const char *path)
{
    struct checked_file checked = {0};
    directory_read_file(path, &checking->arena, &checked.file);
    read_spec(&checked, &checking->arena);
    tell(checking, &checked);
}

/* The files that are right each by itself may not fit together. */
static void
check_together(struct checked_file *checked, size_t count, struct arena *arena)
{
    struct spec_set_file *files = arena_zeroed(arena, count * sizeof *files);
    for (size_t i = 0; i < count; i++)
        files[i] = (struct spec_set_file){.name = checked[i].file.name, .spec = checked[i].spec};
    for (size_t i = 0; i < count; i++)
        if (checked[i].spec)
            checked[i].error = spec_set_check(files, count, i);
}

static struct error *
check_directory(struct checking *checking, const char *path)
{
    struct arena *arena = &checking->arena;
    struct directory *directory;
    struct directory_files files;
    struct error *error = directory_open(path, &directory);
    if (error)
        return error;
    error = directory_read(directory, arena, &files);
    directory_close(directory);
    if (error)
        return error;
    struct checked_file *checked = arena_zeroed(arena, files.count * sizeof *checked);
    for (size_t i = 0; i < files.count; i++) {
        checked[i].file = files.items[i];
        checked[i].file.file = arena_print(arena, "%s/%s", path, files.items[i].file);
        read_spec(&checked[i], arena);
    }
    check_together(checked, files.count, arena);
    for (size_t i = 0; i < files.count; i++)
        tell(checking, &checked[i]);
    return NULL;
}

static struct error *
check_paths(char **paths, int count, bool as_json, enum exit_code *exit_code)
{
    struct checking checking = {.as_json = as_json};
    struct stat found;
    struct error *error = NULL;
    arena_init(&checking.arena, NULL, 0, SIZE_MAX);
    for (int i = 0; i < count && !error; i++) {
        if (stat(paths[i], &found) == 0 && S_ISDIR(found.st_mode))
            error = check_directory(&checking, paths[i]);
        else
            check_file(&checking, paths[i]);
    }
    arena_clear(&checking.arena);
    *exit_code = checking.wrong || error ? EXIT_FAILED : EXIT_OK;
    if (error || !checking.wrong)
        return error;
    return error_new(CODE_INVALID_ARGUMENT, "%zu of %zu files cannot be used", checking.wrong,
                     checking.count);
}

static VERB(run_check)
{
    const char *format = "text";
    const struct option table[] = {
        {"output", 'o', "FORMAT", OPTION_TEXT, &format,
         "output format, text or json; default text"},
    };
    const struct options options = {
        .usage = "skycap connection check FILE|DIR... [options]",
        .summary = "Reads connection files as a server would, and reports what is wrong with them. "
                   "For a directory, also\nreports files that conflict. The name of a connection "
                   "is that of its file, without .yaml. Does not\nconnect to anything.",
        .table = table,
        .count = COUNT_OF(table),
    };
    int rest;
    bool helped;
    struct error *error = options_parse(&options, count, arguments, &rest, &helped);
    if (error || helped)
        return error;
    bool as_json = strcmp(format, "json") == 0;
    if (!as_json && strcmp(format, "text") != 0)
        return error_new(CODE_INVALID_ARGUMENT, "--output: \"%s\" is neither text nor json",
                         format);
    if (rest == count)
        return error_new(CODE_INVALID_ARGUMENT, "no file given; usage: %s", options.usage);
    return check_paths(arguments + rest, count - rest, as_json, exit_code);
}

/* ---- how they are ---- */

typedef Skycap__V1__ConnectionInfo connection_info;
typedef Skycap__V1__ListConnectionsResponse connection_list;

#define STATE(name) SKYCAP__V1__CONNECTION_INFO__STATE__##name

static const char *
state_of(const connection_info *info)
{
    switch (info->state) {
    case STATE(READY):
        return "ready";
    case STATE(DOWN):
        return "down";
    case STATE(NOT_REACHED_YET):
        return "not-reached";
    case STATE(NO_GOOD_FILE):
        return "bad-file";
    default:
        return "";
    }
}

static const char *
trouble_of(const connection_info *info, struct arena *arena)
{
    if (!info->file_trouble[0])
        return info->trouble;
    const char *file = arena_print(arena, "its file is wrong: %s", info->file_trouble);
    return info->trouble[0] ? arena_print(arena, "%s; %s", info->trouble, file) : file;
}

/* "85 us", "1.2 ms", "3.4 s" */
static const char *
time_text(uint64_t microseconds, struct arena *arena)
{
    if (microseconds < 1000)
        return arena_print(arena, "%" PRIu64 " us", microseconds);
    if (microseconds < 1000000)
        return arena_print(arena, "%.1f ms", (double)microseconds / 1e3);
    return arena_print(arena, "%.1f s", (double)microseconds / 1e6);
}

static const char *
join(char *const *texts, size_t count, struct arena *arena)
{
    const char *joined = "";
    for (size_t i = 0; i < count; i++)
        joined = arena_print(arena, "%s%s%s", joined, i ? ", " : "", texts[i]);
    return joined;
}

static const char *
labels_of(const connection_info *info, struct arena *arena)
{
    const char *labels = "";
    for (size_t i = 0; i < info->n_labels; i++)
        labels = arena_print(arena, "%s%s%s=%s", labels, i ? "," : "", info->labels[i]->key,
                             info->labels[i]->value);
    return labels;
}

static void
print_connections(const connection_list *list, struct arena *arena)
{
    static const char *const headings[] = {"NAME",  "STATE",  "DRIVER", "DEFAULT", "LABELS",
                                           "CALLS", "FAILED", "MEAN",   "TROUBLE"};
    struct table table AUTO(table_clear);
    table_init(&table, headings, COUNT_OF(headings));
    for (size_t i = 0; i < list->n_connections; i++) {
        const connection_info *info = list->connections[i];
        table_add(&table, info->name);
        table_add(&table, state_of(info));
        table_add(&table, info->driver);
        table_add(&table, info->is_default ? "yes" : "");
        table_add(&table, labels_of(info, arena));
        table_add(&table, arena_print(arena, "%" PRIu64, info->calls));
        table_add(&table, arena_print(arena, "%" PRIu64, info->failures));
        table_add(&table, info->calls ? time_text(info->mean_microseconds, arena) : "");
        table_add(&table, trouble_of(info, arena));
    }
    table_print(&table);
}

static void
print_driver(const connection_info *info, struct arena *arena)
{
    table_print_fact("driver", info->driver);
    table_print_fact("endpoint", info->endpoint);
    table_print_fact("node at", info->node_endpoint);
    table_print_fact("program", info->program);
    if (info->plugin_name[0])
        table_print_fact("plugin",
                         arena_print(arena, "%s %s", info->plugin_name, info->plugin_version));
    table_print_fact("node", info->node_id);
    table_print_fact("services", join(info->services, info->n_services, arena));
    table_print_fact("controller",
                     join(info->controller_capabilities, info->n_controller_capabilities, arena));
    table_print_fact("on nodes", join(info->node_capabilities, info->n_node_capabilities, arena));
    table_print_fact("groups", join(info->group_capabilities, info->n_group_capabilities, arena));
}

static void
print_connection(const connection_info *info, struct arena *arena)
{
    table_print_fact("name", info->name);
    table_print_fact("state", state_of(info));
    table_print_fact("since", inventory_time_text(info->since, arena));
    table_print_fact("trouble", info->trouble);
    table_print_fact("file", info->file_trouble);
    table_print_fact("loaded", inventory_time_text(info->loaded, arena));
    table_print_fact("default", info->is_default ? "yes" : "");
    if (info->priority)
        table_print_fact("priority", arena_print(arena, "%" PRId64, info->priority));
    table_print_fact("labels", labels_of(info, arena));
    table_print_fact("aliases", join(info->aliases, info->n_aliases, arena));
    print_driver(info, arena);
    if (info->calls)
        table_print_fact("calls",
                         arena_print(arena, "%" PRIu64 ", %" PRIu64 " failed, %s on average",
                                     info->calls, info->failures,
                                     time_text(info->mean_microseconds, arena)));
}

/* ---- list, show and reload ---- */

static struct error *
ask(struct client *client, const char *method, const void *request, connection_list **out)
{
    struct error *error = client_ask(client, method, request, out);
    if (!error || error->code != CODE_UNIMPLEMENTED)
        return error;
    error_free(error);
    return error_new(CODE_UNIMPLEMENTED,
                     "the server at %s has no connections: it was started without --connections",
                     client->flags.endpoint);
}

static struct error *
ask_for_list(struct client *client, connection_list **out)
{
    Skycap__V1__ListConnectionsRequest request = SKYCAP__V1__LIST_CONNECTIONS_REQUEST__INIT;
    return ask(client, "skycap.v1.Connections/List", &request, out);
}

static void
print_list(const struct client *client, const connection_list *list, struct arena *arena)
{
    if (client->as_json)
        client_print_json(list, MESSAGE_JSON_PRETTY);
    else
        print_connections(list, arena);
}

static VERB(run_list)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {"skycap connection list [options]",
                                       "Lists all connections that there is a file for, by name.",
                                       NULL,
                                       0,
                                       0,
                                       0};
    connection_list *list;
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    error = ask_for_list(&client, &list);
    if (!error)
        print_list(&client, list, &client.arena);
    return error;
}

static bool
has_name(const connection_info *info, const char *name)
{
    for (size_t i = 0; i < info->n_aliases; i++)
        if (strcmp(info->aliases[i], name) == 0)
            return true;
    return strcmp(info->name, name) == 0;
}

/* A name counts more than another's alias. */
static struct error *
find(const connection_list *list, const char *name, struct arena *arena,
     const connection_info **out)
{
    const char *names = "";
    *out = NULL;
    for (size_t i = 0; i < list->n_connections; i++) {
        const connection_info *info = list->connections[i];
        if (has_name(info, name) && (!*out || strcmp(info->name, name) == 0))
            *out = info;
        names = arena_print(arena, "%s%s%s", names, i ? ", " : "", info->name);
    }
    if (*out)
        return NULL;
    return error_new(CODE_NOT_FOUND, "there is no connection \"%s\"; there are: %s", name,
                     names[0] ? names : "none");
}

static VERB(run_show)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {
        "skycap connection show NAME [options]",
        "Shows the state of a connection, the capabilities of its driver and its usage.",
        NULL,
        0,
        1,
        1};
    connection_list *list;
    const connection_info *info;
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    error = ask_for_list(&client, &list);
    if (!error)
        error = find(list, client.words[0], &client.arena, &info);
    if (!error && client.as_json)
        client_print_json(info, MESSAGE_JSON_PRETTY);
    else if (!error)
        print_connection(info, &client.arena);
    return error;
}

static VERB(run_reload)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {
        "skycap connection reload [options]",
        "Has the server look at the files now, and lists the connections then. The server does so "
        "by itself when\nfiles change; this waits for it. If a file cannot be used the exit code "
        "is 1.",
        NULL,
        0,
        0,
        0};
    Skycap__V1__ReloadConnectionsRequest request = SKYCAP__V1__RELOAD_CONNECTIONS_REQUEST__INIT;
    connection_list *list;
    size_t wrong = 0;
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    error = ask(&client, "skycap.v1.Connections/Reload", &request, &list);
    if (error)
        return error;
    print_list(&client, list, &client.arena);
    for (size_t i = 0; i < list->n_connections; i++)
        wrong += list->connections[i]->file_trouble[0] != '\0';
    return wrong ? error_new(CODE_INVALID_ARGUMENT, "%zu of %zu files cannot be used", wrong,
                             list->n_connections)
                 : NULL;
}

static VERB(run_forget)
{
    struct client client AUTO(client_close) = {0};
    const struct client_usage usage = {
        "skycap connection forget NAME [options]",
        "Allows a name to be used for another driver. A server refuses a file that gives the name "
        "of a connection\nto another driver, because ids with that name belong to volumes of the "
        "first one: make sure that none of\nthem is left.",
        NULL,
        0,
        1,
        1};
    Skycap__V1__ForgetConnectionRequest request = SKYCAP__V1__FORGET_CONNECTION_REQUEST__INIT;
    connection_list *list;
    struct error *error = client_open(&client, &usage, count, arguments, exit_code);
    if (error || client.has_helped)
        return error;
    request.name = client.words[0];
    error = ask(&client, "skycap.v1.Connections/Forget", &request, &list);
    if (!error)
        print_list(&client, list, &client.arena);
    return error;
}

/* ---- all of them ---- */

static const struct command table[] = {
    {"list", "list all connections and their state", run_list},
    {"show", "show one connection", run_show},
    {"reload", "have the server read the files now", run_reload},
    {"forget", "allow a name to be used for another driver", run_forget},
    {"check", "check connection files", run_check},
};

static VERB(run)
{
    static const struct verbs verbs = {
        .command = "connection",
        .summary = "Works with connections: the storage systems behind a server, each described by "
                   "a file.",
        .table = table,
        .count = COUNT_OF(table),
        .asking = "list, show, reload and forget",
    };
    return verbs_run(&verbs, count, arguments, exit_code);
}

const struct command connection_command = {"connection", "show and check connections", run};
