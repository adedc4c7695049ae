/* SPDX-License-Identifier: Apache-2.0 */
/* The use of a volume at a path: see use.h. */
#include "node/use.h"

#include <string.h>

#include "node/mount.h"
#include "node/mount_group.h"

struct use
use_of_row(const mount_record *record)
{
    return (struct use){record->path, record->staging_path, record->capability, record->read_only};
}

/* ---- capabilities ---- */

static struct error *
check_file_system(const volume_record *volume, const char *wanted)
{
    bool is_image = volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE;
    if (is_image && !volume->fs_type[0])
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is a raw block device and has no file system to mount");
    if (!wanted[0] || strcmp(wanted, is_image ? volume->fs_type : "none") == 0)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION, "the volume is %s, not %s",
                     is_image ? volume->fs_type : "a directory tree", wanted);
}

struct error *
use_check_capability(const volume_record *volume, const volume_capability *capability)
{
    if (capability_is_block(capability)) {
        if (volume->kind == SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE)
            return NULL;
        return error_new(CODE_FAILED_PRECONDITION,
                         "the volume is a directory tree and has no block device");
    }
    const char *group = capability->mount->volume_mount_group;
    struct error *error = group[0] ? mount_group_check(group) : NULL;
    return error ? error : check_file_system(volume, capability->mount->fs_type);
}

/* ---- rows ---- */

static bool
is_same_use(const mount_record *record, const struct use *use)
{
    return record->read_only == use->read_only &&
           strcmp(record->staging_path, use->staging_path) == 0 &&
           capability_is_same(record->capability, use->capability);
}

struct error *
use_check_same(const struct mount_list *uses, const struct use *use)
{
    const mount_record *record = mount_rows_find(uses, use->path);
    if (!record || is_same_use(record, use))
        return NULL;
    return error_new(CODE_ALREADY_EXISTS,
                     "the volume is at %s already, with another capability or access", use->path);
}

/* A file system and raw writes to its device exclude each other. */
static bool
has_other_access_type(const mount_record *record, const struct use *use)
{
    return capability_is_block(record->capability) != capability_is_block(use->capability) &&
           strcmp(record->path, use->path) != 0;
}

bool
use_conflicts(const mount_record *record, const struct use *use)
{
    if (strcmp(record->path, use->path) == 0)
        return !is_same_use(record, use);
    return has_other_access_type(record, use);
}

struct error *
use_check_access_type(const struct mount_list *uses, const struct use *use)
{
    for (size_t i = 0; i < uses->count; i++)
        if (has_other_access_type(uses->records[i], use))
            return error_new(CODE_FAILED_PRECONDITION,
                             "the volume is in use at %s %s: it cannot be both at a time",
                             uses->records[i]->path,
                             capability_is_block(use->capability) ? "as a file system"
                                                                  : "as a block device");
    return NULL;
}

static mount_record *
make_record(const char *handle, const struct use *use, struct arena *arena)
{
    mount_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__mount_record__init(record);
    record->volume_handle = (char *)handle;
    record->path = (char *)use->path;
    record->capability = (volume_capability *)use->capability;
    record->read_only = use->read_only;
    record->staging_path = (char *)use->staging_path;
    return record;
}

struct error *
use_record(struct engine *engine, const char *handle, const struct mount_list *rows,
           const struct use *use, struct arena *arena, mount_record **out, bool *is_new)
{
    struct error *error = use_check_same(rows, use);
    if (error)
        return error;
    *out = mount_rows_find(rows, use->path);
    *is_new = !*out;
    if (*out)
        return NULL;
    *out = make_record(handle, use, arena);
    return mount_rows_add(engine, *out, arena);
}

/* ---- mounts ---- */

struct error *
use_is_mounted(struct backing *backing, const struct use *use, bool *is_mounted)
{
    bool has_no_path = capability_is_block(use->capability) && !use->staging_path[0];
    if (!backing->is_image && !backing->path[0]) {
        /* The tree is gone, so there is nothing to compare with: any mount counts. */
        *is_mounted = mount_is_point(use->path);
        return NULL;
    }
    if (backing->is_image && has_no_path) {
        *is_mounted = backing->own.fd >= 0;
        return NULL;
    }
    return backing_is_at(backing, use->path, is_mounted);
}

struct error *
use_drop_unmounted(struct engine *engine, struct backing *backing, struct mount_list *rows,
                   use_selects *selects, const struct use *wanted)
{
    struct error *error = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < rows->count && !error; i++) {
        struct use use = use_of_row(rows->records[i]);
        bool is_mounted = true;
        if (!selects || selects(rows->records[i], wanted))
            error = use_is_mounted(backing, &use, &is_mounted);
        if (!error && !is_mounted)
            error = mount_rows_delete(engine, rows->records[i]);
        else
            rows->records[kept++] = rows->records[i];
    }
    rows->count = kept;
    return error;
}

struct error *
use_list(struct engine *engine, const volume_record *volume, struct arena *arena,
         struct mount_list *out)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct error *error = mount_rows_list(engine, volume->handle, arena, out);
    if (!error && out->count)
        error = backing_find(engine, volume, &backing);
    return error ? error : use_drop_unmounted(engine, &backing, out, NULL, NULL);
}

struct error *
use_apply_group(const struct use *use)
{
    const char *group = use->capability->mount->volume_mount_group;
    return group[0] && !use->read_only ? mount_group_apply(use->path, group) : NULL;
}
