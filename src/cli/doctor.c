/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap doctor: finds and repairs inconsistencies in a data directory that no server has open.
 */
#include "node/doctor.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/client.h"
#include "node/storage.h"

#define DEFAULT_DATA "/var/lib/skycap"

static struct log doctor_log = {.level = LOG_ERROR, .fd = STDERR_FILENO};
static const char *backend = "auto";
static struct storage_options options = {
    .directory = DEFAULT_DATA,
    .backends = {&backend, 1},
    .node_id = "doctor",
    .is_passive = true,
    .log = &doctor_log,
};
static bool repairs;
static bool rebuilds;

static const struct option flags[] = {
    {"data", 0, "DIR", OPTION_TEXT, &options.directory,
     "the data directory of skycap serve; default " DEFAULT_DATA},
    {"backend", 0, "NAME", OPTION_TEXT, &backend,
     "its back end, the first one of several; default: the one it was created with"},
    {"repair", 0, NULL, OPTION_FLAG, &repairs, "repair what can be repaired without data loss"},
    {"rebuild", 0, NULL, OPTION_FLAG, &rebuilds,
     "recreate the store from the volumes; the old one is kept"},
    {0},
};

struct report {
    bool is_json;
    size_t count;
    size_t unrepaired;
};

/* ---- reporting ---- */

static void
print_json(const struct finding *finding)
{
    struct buffer line AUTO(buffer_clear) = {0};
    json_append_member(&line, "kind", finding->kind);
    json_append_member(&line, "subject", finding->subject);
    json_append_member(&line, "message", finding->message);
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
               finding->is_repaired ? " (repaired)" : "");
}

static void
print_end(const struct report *report)
{
    if (report->is_json)
        return;
    if (!report->count)
        puts("no problems found");
    else if (!report->unrepaired)
        printf("%zu problems found, all repaired\n", report->count);
    else
        printf("%zu problems found, %zu not repaired\n", report->count, report->unrepaired);
}

/* ---- examine and rebuild ---- */

static struct error *
examine(struct report *report)
{
    struct storage storage AUTO(storage_close) = {0};
    struct error *error = storage_open(&options, &storage);
    if (!error)
        error = store_check(storage.store);
    if (!error)
        error = doctor_examine(storage.engine, repairs, print_finding, report);
    if (!error)
        print_end(report);
    return error;
}

/* A server would delete volumes without a row, so an incomplete store is moved aside again. */
static struct error *
refuse_rebuilt(struct arena *arena)
{
    const char *moved_to;
    struct error *error = storage_set_store_aside(&options, arena, &moved_to);
    return error ? error
                 : error_new(CODE_DATA_LOSS,
                             "not everything could be rebuilt, so there is no store now: move what "
                             "is named above out of the data directory, and rebuild again");
}

static struct error *
rebuild(struct report *report)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *moved_to;
    struct doctor_rebuilt rebuilt;
    struct storage storage AUTO(storage_close) = {0};
    struct error *error = storage_set_store_aside(&options, &arena, &moved_to);
    if (!error)
        error = storage_open_parts(&options, &storage);
    if (!error)
        error = doctor_rebuild(storage.store, storage.backend, print_finding, report, &rebuilt);
    if (error)
        return error;
    storage_close(&storage);
    if (report->unrepaired)
        return refuse_rebuilt(&arena);
    if (moved_to && !report->is_json)
        printf("the old store is kept at %s\n", moved_to);
    if (!report->is_json)
        printf("rebuilt: %zu volumes, %zu snapshots, %zu groups\n", rebuilt.volumes,
               rebuilt.snapshots, rebuilt.groups);
    return NULL;
}

static struct error *
run(struct client *client)
{
    struct report report = {.is_json = client->as_json};
    client->exit_code = EXIT_FAILED;
    struct error *error = rebuilds ? rebuild(&report) : examine(&report);
    client->has_failed = report.unrepaired;
    return error;
}

const struct command doctor_command = {
    .name = "doctor",
    .summary = "check and repair a data directory",
    .help = "Reports inconsistent rows, data, mounts and devices. The server must be stopped.\nThe "
            "exit code is 0 if there are no problems or all were repaired.",
    .flags = flags,
    .more_flags = COMMAND_OUTPUT_FLAG,
    .run = run,
};
