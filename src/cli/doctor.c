/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap doctor: what does not fit together in a data directory, and putting it right. For a
 * directory that no server has open.
 */
#include "node/doctor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "node/storage.h"

#define DEFAULT_DATA "/var/lib/skycap"

struct settings {
    const char *backend;
    struct storage_options storage;
    bool repairs;
    bool rebuilds;
    const char *output;
};

struct report {
    bool is_json;
    size_t count;
    size_t unrepaired;
};

static struct error *
read_flags(struct settings *s, int count, char **arguments, bool *helped)
{
    const struct option table[] = {
        {"data", 0, "DIR", OPTION_TEXT, &s->storage.directory,
         "the data directory of skycap serve; default " DEFAULT_DATA},
        {"backend", 0, "NAME", OPTION_TEXT, &s->backend,
         "its back end, the first one of several; default: the one it was created with"},
        {"repair", 0, NULL, OPTION_FLAG, &s->repairs,
         "repair what can be repaired without data loss"},
        {"rebuild", 0, NULL, OPTION_FLAG, &s->rebuilds,
         "recreate the store from the volumes; the old one is kept"},
        {"output", 'o', "FORMAT", OPTION_TEXT, &s->output,
         "output format, text or json; default text"},
    };
    const struct options options = {
        .usage = "skycap doctor [options]",
        .summary = "Reports inconsistent rows, data, mounts and devices. The server must be "
                   "stopped.\nThe exit code is 0 if there are no problems or all were repaired.",
        .table = table,
        .count = COUNT_OF(table),
    };
    int rest;
    struct error *error = options_parse(&options, count, arguments, &rest, helped);
    if (!error && !*helped && rest < count)
        error = error_new(CODE_INVALID_ARGUMENT,
                          "unexpected argument \"%s\" (see skycap doctor --help)", arguments[rest]);
    return error;
}

static struct error *
set_defaults(struct settings *settings)
{
    if (!settings->storage.directory)
        settings->storage.directory = DEFAULT_DATA;
    if (!settings->backend)
        settings->backend = "auto";
    settings->storage.backends = (struct text_list){&settings->backend, 1};
    if (!settings->output)
        settings->output = "text";
    settings->storage.node_id = "doctor";
    settings->storage.is_passive = true;
    if (strcmp(settings->output, "text") != 0 && strcmp(settings->output, "json") != 0)
        return error_new(CODE_INVALID_ARGUMENT, "--output: \"%s\" is neither text nor json",
                         settings->output);
    return NULL;
}

/* ---- telling ---- */

static void
print_json(const struct finding *finding)
{
    struct buffer line AUTO(buffer_clear) = {0};
    buffer_append_text(&line, "{\"kind\":");
    json_append_string(&line, finding->kind, strlen(finding->kind));
    buffer_append_text(&line, ",\"subject\":");
    json_append_string(&line, finding->subject, strlen(finding->subject));
    buffer_append_text(&line, ",\"message\":");
    json_append_string(&line, finding->message, strlen(finding->message));
    buffer_print(&line, ",\"repaired\":%s}", finding->is_repaired ? "true" : "false");
    puts(buffer_text(&line));
}

static void
print_finding(void *context, const struct finding *finding)
{
    struct report *report = context;
    report->count++;
    report->unrepaired += !finding->is_repaired;
    if (report->is_json)
        print_json(finding);
    else
        printf("%-16s %s: %s%s\n", finding->kind, finding->subject, finding->message,
               finding->is_repaired ? " (put right)" : "");
}

static void
print_end(const struct report *report)
{
    if (report->is_json)
        return;
    if (!report->count)
        puts("all is well");
    else if (!report->unrepaired)
        printf("%zu found, all put right\n", report->count);
    else
        printf("%zu found, %zu not put right\n", report->count, report->unrepaired);
}

/* ---- the two things it does ---- */

static struct error *
examine(const struct settings *settings, struct report *report)
{
    struct storage storage AUTO(storage_close) = {0};
    struct error *error = storage_open(&settings->storage, &storage);
    if (!error)
        error = store_check(storage.store);
    if (!error)
        error = doctor_examine(storage.engine, settings->repairs, print_finding, report);
    if (!error)
        print_end(report);
    return error;
}

/*
 * Without all of its rows the store would make a server sweep volumes away: it is put aside again.
 */
static struct error *
refuse_rebuilt(const struct settings *settings, struct arena *arena)
{
    const char *moved_to;
    struct error *error = storage_set_store_aside(&settings->storage, arena, &moved_to);
    return error ? error
                 : error_new(CODE_DATA_LOSS,
                             "not everything could be rebuilt, so there is no store now: move what "
                             "is named above out of the data directory, and rebuild again");
}

static struct error *
rebuild(const struct settings *settings, struct report *report)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *moved_to;
    struct doctor_rebuilt rebuilt;
    struct storage storage AUTO(storage_close) = {0};
    struct error *error = storage_set_store_aside(&settings->storage, &arena, &moved_to);
    if (!error)
        error = storage_open_parts(&settings->storage, &storage);
    if (!error)
        error = doctor_rebuild(storage.store, storage.backend, print_finding, report, &rebuilt);
    if (error)
        return error;
    storage_close(&storage);
    if (report->unrepaired)
        return refuse_rebuilt(settings, &arena);
    if (moved_to && !report->is_json)
        printf("the old store is kept at %s\n", moved_to);
    if (!report->is_json)
        printf("rebuilt: %zu volumes, %zu snapshots, %zu groups\n", rebuilt.volumes,
               rebuilt.snapshots, rebuilt.groups);
    return NULL;
}

static struct error *
run(int count, char **arguments, enum exit_code *exit_code)
{
    struct log log = {.level = LOG_ERROR, .fd = STDERR_FILENO};
    struct settings settings = {.storage = {.log = &log}};
    struct report report = {0};
    bool helped;
    struct error *error = read_flags(&settings, count, arguments, &helped);
    if (error || helped)
        return error;
    error = set_defaults(&settings);
    if (error)
        return error;
    report.is_json = strcmp(settings.output, "json") == 0;
    error = settings.rebuilds ? rebuild(&settings, &report) : examine(&settings, &report);
    *exit_code = error || report.unrepaired ? EXIT_FAILED : EXIT_OK;
    return error;
}

const struct command doctor_command = {"doctor", "check and repair a data directory", run};
