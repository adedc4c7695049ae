/* SPDX-License-Identifier: Apache-2.0 */
/* skycap connection: the connections of a server, and their files. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "connections/directory.h"
#include "connections/spec.h"

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

/* True: there is nothing wrong with it. */
static bool
check_file(const char *path, bool as_json)
{
    struct arena arena AUTO(arena_clear);
    struct directory_file file;
    struct connection_spec *spec = NULL;
    struct error *error AUTO(error_cleanup) = NULL;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    directory_read_file(path, &arena, &file);
    if (!file.trouble)
        error = spec_read(file.name, file.text, file.size, &arena, &spec);
    struct verdict verdict = {.file = &file, .message = file.trouble};
    if (error)
        verdict.line = settings_line_of(error->message, &verdict.message);
    if (spec)
        verdict.driver = spec->driver->name;
    if (as_json)
        print_json(&verdict);
    else
        print_text(&verdict);
    return spec;
}

static struct error *
check_files(char **paths, int count, bool as_json, enum exit_code *exit_code)
{
    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += !check_file(paths[i], as_json);
    *exit_code = wrong ? EXIT_FAILED : EXIT_OK;
    return wrong ? error_new(CODE_INVALID_ARGUMENT, "%d of %d files cannot be used", wrong, count)
                 : NULL;
}

static VERB(run_check)
{
    const char *format = "text";
    const struct option table[] = {
        {"output", 'o', "FORMAT", OPTION_TEXT, &format,
         "text for people, json for programs; default text"},
    };
    const struct options options = {
        .usage = "skycap connection check FILE... [options]",
        .summary = "Reads connection files as a server would, and tells what is wrong with them. "
                   "The name of a\nconnection is its file's, without .yaml. Nothing is "
                   "connected to.",
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
    return check_files(arguments + rest, count - rest, as_json, exit_code);
}

/* ---- all of them ---- */

static const struct command table[] = {
    {"check", "tell what is wrong with connection files", run_check},
};

static VERB(run)
{
    static const struct verbs verbs = {
        .command = "connection",
        .summary = "Works with connections: the storage systems behind a server, each described by "
                   "a file.",
        .table = table,
        .count = COUNT_OF(table),
        .asking = "",
    };
    return verbs_run(&verbs, count, arguments, exit_code);
}

const struct command connection_command = {"connection", "check the files of connections", run};
