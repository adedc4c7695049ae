/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restore drills: see drill.h. The volume of a drill has a name that no request can give, so that
 * the next start deletes what a crash has left, and nothing else.
 */
#include "node/drill.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "exports/compare.h"
#include "node/drill_command.h"
#include "node/publish.h"
#include "repository/patience.h"
#include "volumes/copy.h"
#include "volumes/handle.h"
#include "volumes/import.h"
#include "volumes/repository_counts.h"

/* Names in requests have no control characters; those of inline volumes begin with another. */
#define NAME_MARK "\002"
#define NAME_PREFIX NAME_MARK "skycap-drill-"
#define WAIT_MS 200

struct drill {
    struct engine *engine;
    const struct drill_request *request;
    struct arena *arena;
    struct drill_result *result;
    volume_record *volume;
    const export_record *record;
    struct repository_use use;
    uint64_t step_ms; /* when it began */
};

static void
report(struct drill *drill, const char *step, const char *output)
{
    uint64_t now = clock_now_ms();
    if (drill->request->report)
        drill->request->report(drill->request->context, step, now - drill->step_ms, output);
    drill->step_ms = now;
}

static bool
is_cancelled(const struct drill *drill)
{
    return drill->request->cancelled(drill->request->context);
}

/* ---- import ---- */

static struct error *
wait_for_import(struct drill *drill)
{
    struct copy_state state = {0};
    struct error *error = NULL;
    while (!error && state.percent < 100) {
        error = is_cancelled(drill)
                    ? error_new(CODE_CANCELLED, "the drill was cancelled")
                    : copy_wait(drill->engine, drill->volume->handle, WAIT_MS, &state);
    }
    return error;
}

static struct error *
import(struct drill *drill, const char *snapshot)
{
    char handle[BACKEND_HANDLE_SIZE];
    handle_make(drill->engine, handle);
    struct import_request request = {
        .repository = drill->request->repository,
        .snapshot = snapshot,
        .name = arena_print(drill->arena, NAME_PREFIX "%s", handle),
    };
    struct error *error =
        import_volume(drill->engine, &request, drill->arena, &drill->result->id, &drill->volume);
    if (error && error->code == CODE_ABORTED && drill->volume) {
        error_free(error);
        error = wait_for_import(drill);
    }
    report(drill, "import", "");
    return error;
}

/* ---- compare ---- */

static bool
progress_cancelled(void *context)
{
    return is_cancelled(context);
}

static void
ignore_report(void *context, uint64_t done, uint64_t total)
{
    (void)context, (void)done, (void)total;
}

static struct error *
compare(struct drill *drill)
{
    char path[PATH_MAX];
    const struct progress progress = {ignore_report, progress_cancelled, drill, NULL};
    bool is_image = drill->record->kind == EXPORT_KIND(IMAGE);
    struct error *error = volume_find_data(drill->engine, drill->volume, path, sizeof path);
    if (error)
        return error;
    int fd AUTO(files_close) = open(path, O_RDONLY | O_CLOEXEC | (is_image ? 0 : O_DIRECTORY));
    if (fd < 0)
        return error_from_errno(errno, "open %s", path);
    struct compare_options options = {.repository = drill->use.repository,
                                      .root = export_record_manifest(drill->record),
                                      .size = (uint64_t)drill->record->size_bytes,
                                      .fd = fd,
                                      .progress = &progress};
    error = is_image ? compare_image(&options) : compare_tree(&options);
    drill->result->bytes = drill->record->content_bytes;
    report(drill, "compare", "");
    return error;
}

/* ---- the command ---- */

static struct error *
run_published(struct drill *drill, const char *target)
{
    struct buffer output AUTO(buffer_clear) = {0};
    bool is_device = drill->record->kind == EXPORT_KIND(IMAGE) && !drill->record->fs_type[0];
    struct error *error = drill_command_run(
        drill->request,
        arena_print(drill->arena, "%s=%s", is_device ? "SKYCAP_DRILL_DEVICE" : "SKYCAP_DRILL_PATH",
                    target),
        &output);
    report(drill, "command", buffer_text(&output));
    return error;
}

static struct error *
run_command(struct drill *drill)
{
    const char *handle = drill->volume->handle;
    const char *directory =
        arena_print(drill->arena, "%s/drill-%s", drill->engine->cache_directory, handle);
    const char *staging = arena_print(drill->arena, "%s/staging", directory);
    const char *target = arena_print(drill->arena, "%s/target", directory);
    struct use staged = {
        .path = staging, .staging_path = "", .capability = drill->volume->capabilities[0]};
    struct use published = {
        .path = target, .staging_path = staging, .capability = staged.capability};
    struct error *error = files_make_path(directory);
    if (!error)
        error = files_make_path(staging);
    if (!error)
        error = stage_volume(drill->engine, handle, &staged);
    if (!error)
        error = publish_volume(drill->engine, handle, &published);
    if (!error)
        error = run_published(drill, target);
    return error;
}

/* ---- the end ---- */

/* Whatever was published of it. */
static struct error *
remove_volume(struct engine *engine, const char *handle, struct arena *arena)
{
    const char *directory = arena_print(arena, "%s/drill-%s", engine->cache_directory, handle);
    const char *staging = arena_print(arena, "%s/staging", directory);
    struct error *error = publish_undo(engine, handle, arena_print(arena, "%s/target", directory));
    if (!error)
        error = stage_undo(engine, handle, staging);
    if (!error)
        error = volume_delete(engine, handle);
    rmdir(staging);
    rmdir(directory);
    return error;
}

static const char *
row_of(const char *repository, struct arena *arena)
{
    return arena_print(arena, "drill/%s", repository);
}

static struct error *
remember_success(struct drill *drill)
{
    const char *text = arena_print(drill->arena, "%jd", (intmax_t)clock_unix_ns());
    struct store_change change = {row_of(drill->request->repository, drill->arena),
                                  (const uint8_t *)text, strlen(text), STORE_ANY};
    return store_write(drill->engine->store, &change, 1, NULL);
}

/* ---- all of it ---- */

static struct error *
find_record(struct drill *drill, struct export_item *item)
{
    struct export_list list;
    const struct drill_request *request = drill->request;
    struct error *error = repository_pool_open(drill->engine, request->repository, &drill->use);
    if (error)
        return error;
    if (request->snapshot[0])
        return export_record_find(drill->use.repository, request->snapshot, drill->arena, item);
    error = export_record_list(drill->use.repository, NULL, drill->arena, &list);
    if (!error && !list.count)
        error =
            error_new(CODE_NOT_FOUND, "the repository %s has no snapshots", request->repository);
    if (!error)
        *item = list.items[list.count - 1];
    return error;
}

static struct error *
run(struct drill *drill)
{
    struct export_item item = {0};
    struct error *error = find_record(drill, &item);
    drill->record = item.record;
    if (!error)
        error = import(drill, item.id);
    if (!error)
        error = compare(drill);
    if (!error && drill->request->command)
        error = run_command(drill);
    return error;
}

/* For metrics. */
static void
count(struct engine *engine, const char *repository, const struct error *result, uint64_t ms)
{
    struct repository_count add = {.drill_ms = result ? 0 : ms};
    add.drills[repository_counts_end_of(result)] = 1;
    repository_counts_add(engine->repository_counts, repository, &add);
}

struct error *
drill_run(struct engine *engine, const struct drill_request *request, struct arena *arena,
          struct drill_result *out)
{
    struct drill drill = {.engine = engine,
                          .request = request,
                          .arena = arena,
                          .result = out,
                          .step_ms = clock_now_ms()};
    uint64_t start_ms = drill.step_ms;
    struct patience patience = {.is_over = request->cancelled, .context = request->context};
    *out = (struct drill_result){.id = ""};
    patience_begin(&patience);
    struct error *error = run(&drill);
    patience_end(&patience);
    repository_pool_release(&drill.use);
    drill.step_ms = clock_now_ms();
    struct error *removal =
        drill.volume ? remove_volume(engine, drill.volume->handle, arena) : NULL;
    if (drill.volume && !removal)
        report(&drill, "remove", "");
    if (!error)
        error = STEAL(removal);
    error_free(removal);
    if (!error)
        error = remember_success(&drill);
    count(engine, request->repository, error, clock_now_ms() - start_ms);
    return error;
}

struct error *
drill_last_success(struct engine *engine, const char *repository, int64_t *ns)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_entry entry;
    bool is_there = false;
    *ns = 0;
    struct error *error =
        store_find(engine->store, row_of(repository, &arena), &arena, &entry, &is_there);
    if (!error && is_there)
        *ns = strtoll(arena_copy(&arena, entry.value, entry.value_size), NULL, 10);
    return error;
}

const char *
drill_shown_name(const char *name)
{
    return strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) ? name : name + strlen(NAME_MARK);
}

void
drill_sweep(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_list names;
    struct error *error =
        store_list(engine->store, "volume-name/" NAME_PREFIX, NULL, 0, &arena, &names);
    for (size_t i = 0; !error && i < names.count; i++) {
        const struct store_entry *entry = &names.entries[i];
        struct error *failed AUTO(error_cleanup) =
            remove_volume(engine, arena_copy(&arena, entry->value, entry->value_size), &arena);
        if (failed)
            log_warn(engine->log, "the volume of a drill is left", LOG_TEXT("name", entry->key),
                     LOG_TEXT("error", failed->message));
    }
    error_free(error);
}
