/* SPDX-License-Identifier: Apache-2.0 */
/* Problems of volumes and of the storage: see health.h. */
#include "node/health.h"

#include <limits.h>
#include <string.h>
#include <sys/statvfs.h>

#include "node/use.h"
#include "volumes/move_rows.h"
#include "volumes/volume.h"

/* With less than this left, new data will soon be refused. */
#define NEARLY_FULL_PERCENT 2

static void
add_problem(struct health_report *report, enum problem_kind kind, const char *reason,
            const char *message)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->problems[i].reason, reason) == 0)
            return;
    if (report->count < HEALTH_MOST)
        report->problems[report->count++] = (struct problem){kind, reason, message};
}

void
health_check_volume(struct engine *engine, const volume_record *volume, struct arena *arena,
                    struct health_report *out)
{
    char path[PATH_MAX];
    struct data data = volume_data(volume);
    struct error *error AUTO(error_cleanup) =
        backend_path(engine->backend, &data, path, sizeof path);
    if (volume->state == VOLUME_STATE(LOST))
        add_problem(out, PROBLEM_DATA_LOSS, "DataMissing",
                    "the volume was lost with the store of its node: recover it from a copy on "
                    "another node, or delete it");
    else if (error && error->code == CODE_NOT_FOUND)
        add_problem(out, PROBLEM_DATA_LOSS, "DataMissing",
                    "the volume's data is not there any more: restore it from a snapshot");
    else if (error)
        add_problem(out, PROBLEM_INACCESSIBLE, "BackendUnreachable",
                    arena_string(arena, error->message));
    if (error)
        return;
    struct error *read_only AUTO(error_cleanup) =
        backend_check(backend_of(engine->backend, data.handle));
    if (read_only)
        add_problem(out, PROBLEM_DEGRADED, "BackendReadOnly",
                    arena_string(arena, read_only->message));
}

static void
check_use(const struct use *use, bool is_mounted, struct arena *arena, struct health_report *out)
{
    struct statvfs found;
    if (!is_mounted)
        add_problem(out, PROBLEM_INACCESSIBLE, "NotMounted",
                    arena_print(arena,
                                "the volume is not at %s any more: it must be staged and "
                                "published again",
                                use->path));
    else if (!capability_is_block(use->capability) && !use->read_only &&
             statvfs(use->path, &found) == 0 && (found.f_flag & ST_RDONLY))
        add_problem(out, PROBLEM_DEGRADED, "ReadOnlyFileSystem",
                    arena_print(arena,
                                "the file system at %s has become read-only: look at the "
                                "kernel's log",
                                use->path));
}

struct error *
health_check_uses(struct engine *engine, const volume_record *volume, struct arena *arena,
                  struct health_report *out)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct mount_list rows;
    struct error *error = mount_rows_list(engine, volume->handle, arena, &rows);
    if (error || !rows.count)
        return error;
    struct error *unknown AUTO(error_cleanup) = backing_find(engine, volume, &backing);
    for (size_t i = 0; i < rows.count; i++) {
        struct use use = use_of_row(rows.records[i]);
        bool is_mounted = false;
        if (!unknown)
            unknown = use_is_mounted(&backing, &use, &is_mounted);
        check_use(&use, is_mounted, arena, out);
    }
    return NULL;
}

static void
check_backend(struct backend *backend, struct arena *arena, struct health_report *out)
{
    struct backend_capacity capacity;
    struct error *error AUTO(error_cleanup) = backend_capacity(backend, &capacity);
    struct error *read_only AUTO(error_cleanup) = error ? NULL : backend_check(backend);
    if (error)
        add_problem(out, PROBLEM_INACCESSIBLE, "BackendUnreachable",
                    arena_string(arena, error->message));
    else if (read_only)
        add_problem(out, PROBLEM_DEGRADED, "BackendReadOnly",
                    arena_string(arena, read_only->message));
    else if (capacity.available_bytes < capacity.total_bytes / 100 * NEARLY_FULL_PERCENT)
        add_problem(out, PROBLEM_DEGRADED, "NearlyFull",
                    arena_print(arena,
                                capacity.is_limited_below
                                    ? "%ju bytes are left of %ju: make room on the disk that the "
                                      "pool of the %s back end is on"
                                    : "%ju bytes are left of %ju: delete volumes or snapshots, or "
                                      "give the %s back end more space",
                                (uintmax_t)capacity.available_bytes,
                                (uintmax_t)capacity.total_bytes, backend->ops->name));
}

/* Ready: the free space is known, and writing is possible. */
struct error *
health_check_ready(struct engine *engine)
{
    struct backend_capacity capacity;
    struct error *error = NULL;
    for (struct backend *one = engine->backend; one && !error; one = one->next) {
        error = backend_capacity(one, &capacity);
        if (!error)
            error = backend_check(one);
        error = error_wrap(error, "the %s back end cannot be used", one->ops->name);
    }
    return error;
}

void
health_check_backend(struct engine *engine, struct arena *arena, struct health_report *out)
{
    for (struct backend *one = engine->backend; one; one = one->next)
        check_backend(one, arena, out);
}
