/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restore drills: see drill.h. The volume of a drill has a name that no request can give, and a
 * drill locks that name. So drill_sweep deletes what drills have left, and nothing else.
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
#include "base/memory.h"
#include "base/size_text.h"
#include "exports/compare.h"
#include "exports/export_page.h"
#include "node/drill_command.h"
#include "node/publish.h"
#include "proto/repositories.pb-c.h"
#include "volumes/copy.h"
#include "volumes/handle.h"
#include "volumes/import.h"
#include "volumes/repository_counts.h"

/* Names in requests have no control characters; those of inline volumes begin with another. */
#define NAME_MARK "\002"
#define NAME_PREFIX NAME_MARK "skycap-drill-"
#define NAME_ROWS "volume-name/"
#define WAIT_MS 50

typedef Skycap__V1__DrillStep drill_step;

/* All texts are in the arena. */
struct drill {
    struct engine *engine;
    struct drill_request request;
    struct arena arena;
    struct repository_task *task;
    const struct progress *progress;
    const char *id;         /* of the snapshot in the repository */
    struct name_lock *lock; /* of the volume's name, until it is removed */
    volume_record *volume;
    const export_record *record;
    struct repository_use use;
    uint64_t step_ms; /* when it began */
};

static void
tell_step(struct drill *drill, const char *step, const char *output)
{
    uint64_t now = clock_now_ms();
    drill_step message = SKYCAP__V1__DRILL_STEP__INIT;
    message.step = (char *)step;
    message.duration_ms = now - drill->step_ms;
    message.output = (char *)output;
    repository_task_tell(drill->task, &message.base);
    drill->step_ms = clock_now_ms();
}

static bool
is_cancelled(const struct drill *drill)
{
    return drill->progress->cancelled(drill->progress->context);
}

/* ---- progress ---- */

/* What is imported, and then compared. */
static uint64_t
contents(const struct drill *drill)
{
    return drill->record->kind == EXPORT_KIND(IMAGE) ? (uint64_t)drill->record->size_bytes
                                                     : drill->record->content_bytes;
}

/* All is done twice: imported, and compared. */
static void
report(const struct drill *drill, uint64_t imported, uint64_t compared)
{
    uint64_t bytes = contents(drill);
    imported = imported < bytes ? imported : bytes;
    compared = compared < bytes ? compared : bytes;
    drill->progress->report(drill->progress->context, imported + compared, 2 * bytes);
}

/* ---- import ---- */

/* The import is an operation, too: it may need the turn of this one. */
static struct error *
wait_for_import(struct drill *drill)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct copy_state state = {0};
    operation_record *import;
    struct error *error = copy_wait(drill->engine, drill->volume->handle, 0, &state);
    while (!error && state.percent < 100) {
        progress_rest(drill->progress, WAIT_MS);
        if (is_cancelled(drill))
            return error_new(CODE_CANCELLED, "the drill was cancelled");
        arena_clear(&arena);
        error = ops_get(drill->engine->ops, drill->volume->handle, &arena, &import);
        if (!error)
            report(drill, (uint64_t)import->done, 0);
        if (!error)
            error = copy_wait(drill->engine, drill->volume->handle, 0, &state);
    }
    return error;
}

static struct error *
import(struct drill *drill)
{
    char handle[BACKEND_HANDLE_SIZE];
    handle_make(drill->engine, handle);
    struct import_request request = {
        .repository = drill->request.repository,
        .snapshot = drill->id,
        .name = arena_print(&drill->arena, NAME_PREFIX "%s", handle),
    };
    struct error *error =
        name_lock_take(&drill->engine->locks, "drill", request.name, &drill->lock);
    if (!error)
        error = import_volume(drill->engine, &request, &drill->arena, &drill->id, &drill->volume);
    if (error && error->code == CODE_ABORTED && drill->volume) {
        error_free(error);
        error = wait_for_import(drill);
    }
    tell_step(drill, "import", "");
    return error;
}

/* ---- compare ---- */

static bool
compare_cancelled(void *context)
{
    return is_cancelled(context);
}

static void
compare_report(void *context, uint64_t done, uint64_t total)
{
    (void)total;
    report(context, UINT64_MAX, done);
}

static struct error *
compare(struct drill *drill)
{
    char path[PATH_MAX];
    const struct progress progress = {compare_report, compare_cancelled, drill, NULL};
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
    if (!error)
        report(drill, UINT64_MAX, UINT64_MAX);
    tell_step(drill, "compare", "");
    return error;
}

/* ---- the command ---- */

static struct error *
run_published(struct drill *drill, const char *target)
{
    struct buffer output AUTO(buffer_clear) = {0};
    bool is_device = drill->record->kind == EXPORT_KIND(IMAGE) && !drill->record->fs_type[0];
    const char *place = arena_print(
        &drill->arena, "%s=%s", is_device ? "SKYCAP_DRILL_DEVICE" : "SKYCAP_DRILL_PATH", target);
    struct error *error = drill_command_run(&drill->request, drill->progress, place, &output);
    tell_step(drill, "command", buffer_text(&output));
    return error;
}

static struct error *
run_command(struct drill *drill)
{
    const char *handle = drill->volume->handle;
    const char *directory =
        arena_print(&drill->arena, "%s/drill-%s", drill->engine->cache_directory, handle);
    const char *staging = arena_print(&drill->arena, "%s/staging", directory);
    const char *target = arena_print(&drill->arena, "%s/target", directory);
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
    const char *text = arena_print(&drill->arena, "%jd", (intmax_t)clock_unix_ns());
    struct store_change change = {row_of(drill->request.repository, &drill->arena),
                                  (const uint8_t *)text, strlen(text), STORE_ANY};
    return store_write(drill->engine->store, &change, 1, NULL);
}

/* ---- all of it ---- */

static struct error *
find_record(struct drill *drill)
{
    struct export_item item = {0};
    const char *snapshot = drill->request.snapshot;
    struct error *error =
        repository_pool_open(drill->engine, drill->request.repository, &drill->use);
    if (error)
        return error;
    error = snapshot[0] ? export_record_find(drill->use.repository, snapshot, &drill->arena, &item)
                        : export_record_find_newest(drill->use.repository, &drill->arena, &item);
    drill->id = item.id;
    drill->record = item.record;
    return error;
}

static struct error *
try(struct drill *drill)
{
    struct error *error = find_record(drill);
    if (!error)
        error = import(drill);
    if (!error)
        error = compare(drill);
    if (!error && drill->request.command)
        error = run_command(drill);
    return error;
}

/* For metrics. */
static void
count(const struct drill *drill, const struct error *result, uint64_t ms)
{
    struct repository_count add = {.drill_ms = result ? 0 : ms};
    add.drills[repository_counts_end_of(result)] = 1;
    repository_counts_add(drill->engine->repository_counts, drill->request.repository, &add);
}

static void
tell_result(struct drill *drill)
{
    char size[32];
    drill_step message = SKYCAP__V1__DRILL_STEP__INIT;
    message.is_result = true;
    message.snapshot_id = (char *)drill->id;
    message.bytes = drill->record->content_bytes;
    repository_task_tell(drill->task, &message.base);
    size_text_print((int64_t)drill->record->content_bytes, size, sizeof size);
    buffer_print(repository_task_result(drill->task), "restored %s of the snapshot %.12s", size,
                 drill->id);
}

static struct error *
run(void *context, struct repository_task *task)
{
    struct drill *drill = context;
    uint64_t start_ms = clock_now_ms();
    drill->task = task;
    drill->progress = repository_task_progress(task);
    drill->step_ms = start_ms;
    struct error *error = try(drill);
    repository_pool_release(&drill->use);
    drill->step_ms = clock_now_ms();
    struct error *removal AUTO(error_cleanup) =
        drill->volume ? remove_volume(drill->engine, drill->volume->handle, &drill->arena) : NULL;
    name_lock_release(&drill->lock);
    if (drill->volume && !removal)
        tell_step(drill, "remove", "");
    if (!error)
        error = STEAL(removal);
    if (!error)
        error = remember_success(drill);
    if (!error)
        tell_result(drill);
    count(drill, error, clock_now_ms() - start_ms);
    return error;
}

/* ---- starting ---- */

static void
drill_free(void *context)
{
    struct drill *drill = context;
    arena_clear(&drill->arena);
    free(drill);
}

static const char *const *
copy_command(const char *const *command, struct arena *arena)
{
    size_t count = 0;
    while (command && command[count])
        count++;
    const char **copy = arena_alloc(arena, (count + 1) * sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = arena_string(arena, command[i]);
    copy[count] = NULL;
    return command ? copy : NULL;
}

struct error *
drill_start(struct engine *engine, const struct drill_request *request,
            struct repository_task **out)
{
    struct drill *drill = memory_zeroed(sizeof *drill);
    struct arena *arena = &drill->arena;
    arena_init(arena, NULL, 0, SIZE_MAX);
    drill->engine = engine;
    drill->request = *request;
    drill->request.repository = arena_string(arena, request->repository);
    drill->request.snapshot = arena_string(arena, request->snapshot);
    drill->request.command = copy_command(request->command, arena);
    struct repository_job job = {
        .kind = DRILL_SNAPSHOT,
        .repository = drill->request.repository,
        .what = drill->request.snapshot,
        .units = "bytes",
        .description =
            arena_print(arena, "drill %s of the repository %s",
                        request->snapshot[0] ? drill->request.snapshot : "the newest snapshot",
                        request->repository),
        .in_background = request->in_background,
        .context = drill,
        .run = run,
        .free = drill_free,
    };
    return repository_task_start(engine, &job, out);
}

/* ---- later ---- */

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

/* That of a drill under way stays. */
static struct error *
sweep_volume(struct engine *engine, const char *name, const char *handle, struct arena *arena)
{
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    struct error *error = name_lock_take(&engine->locks, "drill", name, &lock);
    return error ? error_forgive(error, CODE_ABORTED) : remove_volume(engine, handle, arena);
}

void
drill_sweep(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_list names = {0};
    struct error *error AUTO(error_cleanup) =
        store_list(engine->store, NAME_ROWS NAME_PREFIX, NULL, 0, &arena, &names);
    if (error)
        log_warn(engine->log, "could not look for the volumes of earlier drills",
                 LOG_TEXT("error", error->message));
    for (size_t i = 0; !error && i < names.count; i++) {
        const struct store_entry *entry = &names.entries[i];
        const char *name = entry->key + strlen(NAME_ROWS);
        struct error *failed AUTO(error_cleanup) =
            sweep_volume(engine, name, arena_copy(&arena, entry->value, entry->value_size), &arena);
        if (failed)
            log_warn(engine->log, "the volume of a drill is left",
                     LOG_TEXT("name", drill_shown_name(name)), LOG_TEXT("error", failed->message));
    }
}
