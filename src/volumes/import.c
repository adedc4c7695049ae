/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes from a repository: see import.h. */
#include "volumes/import.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/files.h"
#include "exports/image_import.h"
#include "exports/tree_import.h"
#include "repository/patience.h"
#include "volumes/export_position.h"

struct import {
    struct engine *engine;
    const volume_record *volume;
    const struct data_settings *settings;
    const struct progress *progress;
    const char *row;
    bool has_begun; /* there is data, and a row */
    uint64_t saved;
    struct repository_use use;
    struct repository_pause pause;
    const export_record *record;
    int fd;
};

bool
import_is_running(const volume_record *volume)
{
    return volume->import && volume->import->importing;
}

static struct error *
save(void *context, uint64_t count)
{
    struct import *import = context;
    export_position position = SKYCAP__RECORDS__EXPORT_POSITION__INIT;
    position.count = count;
    struct error *error = export_position_save(import->engine, import->row, &position);
    if (!error)
        import->saved = count;
    return error;
}

/* Without a row nothing is known of what is there. */
static struct error *
make_target(struct import *import)
{
    struct data to = volume_data(import->volume);
    struct error *error = backend_remove(import->engine->backend, &to);
    if (!error)
        error = backend_create(import->engine->backend, &to, import->settings);
    if (!error)
        error = backend_sync(import->engine->backend);
    if (!error)
        error = save(import, 0);
    import->has_begun = !error;
    return error;
}

static struct error *
open_target(struct import *import)
{
    char path[PATH_MAX];
    struct data to = volume_data(import->volume);
    struct error *error = backend_path(import->engine->backend, &to, path, sizeof path);
    if (error)
        return error;
    int flags = to.kind == KIND_IMAGE ? O_RDWR : O_RDONLY | O_DIRECTORY;
    import->fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW);
    return import->fd < 0 ? error_from_errno(errno, "open %s", path) : NULL;
}

static struct error *
import_image(struct import *import)
{
    struct image_import_options options = {
        .repository = import->use.repository,
        .root = export_record_manifest(import->record),
        .size = (uint64_t)import->record->size_bytes,
        .fd = import->fd,
        .progress = import->progress,
        .saved_chunks = import->saved,
        .save = save,
        .context = import,
    };
    return image_import_run(&options);
}

static struct error *
import_tree(struct import *import)
{
    struct tree_import_options options = {
        .repository = import->use.repository,
        .root = export_record_manifest(import->record),
        .target = import->fd,
        .work_directory = import->engine->cache_directory,
        .progress = import->progress,
        .expected_bytes = import->record->content_bytes,
        .saved_leaves = import->saved,
        .save = save,
        .context = import,
    };
    return tree_import_run(&options);
}

static struct error *
try_once(struct import *import)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const Skycap__Records__ImportRecord *from = import->volume->import;
    export_record *record;
    import->fd = -1;
    struct error *error = repository_pool_open_soon(import->engine, from->repository, &import->use);
    import->pause.is_down = !import->use.repository;
    if (!error)
        error = export_record_read(import->use.repository, from->id, &arena, &record);
    if (!error && (int)record->kind != (int)import->volume->kind)
        error = error_new(CODE_DATA_LOSS, "the exported snapshot is of another kind");
    if (!error) {
        import->record = record;
        error = open_target(import);
    }
    if (!error)
        error = record->kind == EXPORT_KIND(IMAGE) ? import_image(import) : import_tree(import);
    files_close(&import->fd);
    repository_pool_release(&import->use);
    return error;
}

struct error *
import_data(struct engine *engine, const volume_record *volume,
            const struct data_settings *settings, const struct progress *progress)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct import import = {.engine = engine,
                            .volume = volume,
                            .settings = settings,
                            .progress = progress,
                            .row = import_position_row(volume->handle, &arena)};
    struct patience patience AUTO(patience_end) = {.is_over = progress->cancelled,
                                                   .context = progress->context,
                                                   .repeat_ms = REPOSITORY_REPEAT_MS};
    export_position *position;
    struct error *error = export_position_read(engine, import.row, &arena, &position);
    patience_begin(&patience);
    if (!error && position)
        import.saved = position->count;
    if (!error && !position)
        error = make_target(&import);
    while (!error) {
        error = try_once(&import);
        if (!error || error->code != CODE_UNAVAILABLE)
            return error;
        log_info(engine->log, "an import was interrupted; it goes on",
                 LOG_TEXT("volume", volume->handle), LOG_TEXT("error", error->message));
        error_free(error);
        repository_pause(&import.pause, progress);
        error = progress->cancelled(progress->context)
                    ? error_new(CODE_CANCELLED, "the import was cancelled")
                    : NULL;
    }
    return error;
}
