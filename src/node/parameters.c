/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters for the use of a volume: see parameters.h. */
#include "node/parameters.h"

#include <sys/stat.h>

#include "backends/format.h"
#include "node/cgroup.h"
#include "volumes/io_limits.h"
#include "volumes/upkeep.h"
#include "volumes/volume.h"

static struct error *
set_label(const volume_record *volume, const struct use *use, const struct text_map *parameters)
{
    const char *label = text_map_find(parameters, "label");
    if (!label || !volume->fs_type[0] || use->read_only || capability_is_block(use->capability))
        return NULL;
    return format_set_label(use->path, volume->fs_type, label);
}

/* ---- I/O limits ---- */

static struct error *
limit_device(const struct loop_device *device, const struct use *use,
             const struct text_map *parameters)
{
    struct stat found;
    if (device->fd < 0 || fstat(device->fd, &found) != 0)
        return NULL;
    struct cgroup_device where = {CGROUP_ROOT, use->path, found.st_rdev};
    return cgroup_limit_io(&where, parameters);
}

static struct error *
limit_backing(struct backing *backing, const struct use *use, const struct text_map *parameters)
{
    bool has_reader = use->read_only && capability_is_block(use->capability);
    struct error *error = has_reader ? backing_find_reader(backing) : NULL;
    return error ? error
                 : limit_device(has_reader ? &backing->reader : &backing->own, use, parameters);
}

static struct error *
limit_io(struct engine *engine, const volume_record *volume, const struct use *use,
         struct backing *backing, const struct text_map *parameters)
{
    struct backing found AUTO(backing_clear) = BACKING_NONE;
    bool is_for_a_pod = use->staging_path[0] || volume->ephemeral;
    if (!io_limits_are_set(parameters) || !is_for_a_pod)
        return NULL;
    if (cgroup_must_renew_limits(CGROUP_ROOT))
        upkeep_renew_limits(engine);
    struct error *error = backing ? NULL : backing_find(engine, volume, &found);
    return error ? error : limit_backing(backing ? backing : &found, use, parameters);
}

/* Ignores errors: the pod may be ending. limit_io itself requests the next renewal. */
static void
renew_limits_of(struct engine *engine, const mount_record *row, struct arena *arena)
{
    volume_record *volume;
    struct use use = use_of_row(row);
    struct error *error AUTO(error_cleanup) =
        volume_get(engine, row->volume_handle, arena, &volume);
    if (error)
        return;
    struct text_map parameters = volume_parameters(volume, arena);
    error_free(limit_io(engine, volume, &use, NULL, &parameters));
}

struct error *
parameters_renew_limits(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct mount_list rows;
    struct error *error = mount_rows_list(engine, NULL, &arena, &rows);
    for (size_t i = 0; i < rows.count && !error; i++)
        renew_limits_of(engine, rows.records[i], &arena);
    return error;
}

/* ---- all of them ---- */

static struct error *
apply(struct engine *engine, const volume_record *volume, const struct use *use,
      struct backing *backing, struct arena *arena)
{
    struct text_map parameters = volume_parameters(volume, arena);
    struct error *error = set_label(volume, use, &parameters);
    return error ? error : limit_io(engine, volume, use, backing, &parameters);
}

void
parameters_try(struct engine *engine, const volume_record *volume, const struct use *use,
               struct backing *backing, struct arena *arena)
{
    struct error *error AUTO(error_cleanup) = apply(engine, volume, use, backing, arena);
    if (error)
        log_warn(engine->log, "a parameter of a volume is not in force",
                 LOG_TEXT("volume", volume->handle), LOG_TEXT("error", error->message));
}

struct error *
parameters_apply_all(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct mount_list rows;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &rows);
    for (size_t i = 0; i < rows.count && !error; i++) {
        struct use use = use_of_row(rows.records[i]);
        error = apply(engine, volume, &use, NULL, arena);
    }
    return error;
}
