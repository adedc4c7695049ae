/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and repairing inconsistencies: see doctor.h. Rebuilding is in doctor_rebuild.c. */
#include "node/doctor.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "node/mount.h"
#include "node/use.h"
#include "volumes/data_lock.h"
#include "volumes/handle.h"
#include "volumes/held.h"
#include "volumes/mend.h"
#include "volumes/move_rows.h"
#include "volumes/replica.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define PAGE 256
#define STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

struct examination {
    struct engine *engine;
    bool repairs;
    doctor_found *found;
    void *context;
    struct arena arena; /* of the current page or entry */
};

static void
end_examination(struct examination *exam)
{
    arena_clear(&exam->arena);
}

static void
tell(struct examination *exam, const char *kind, const char *subject, bool is_repaired,
     const char *message)
{
    struct finding finding = {kind, subject, message, is_repaired};
    exam->found(exam->context, &finding);
}

/* ---- rows ---- */

static bool
has_data(struct examination *exam, const struct data *data, const char *advice)
{
    char path[PATH_MAX];
    struct error *error AUTO(error_cleanup) =
        backend_path(exam->engine->backend, data, path, sizeof path);
    bool is_lost = error && error->code == CODE_NOT_FOUND;
    if (is_lost)
        tell(exam, "lost-data", data->handle, false, advice);
    return !is_lost;
}

static struct error *
check_name(struct examination *exam, const struct row_kind *kind, const ProtobufCMessage *record)
{
    struct row named;
    const char *handle = rows_handle(kind, record);
    struct error *error AUTO(error_cleanup) =
        rows_find(exam->engine, kind, rows_name(kind, record), &exam->arena, &named);
    if (!error && named.record && strcmp(rows_handle(kind, named.record), handle) == 0)
        return NULL;
    struct error *failed = exam->repairs ? rows_mend_name(exam->engine, kind, record) : NULL;
    tell(exam, "lost-name", handle, exam->repairs && !failed,
         "its name does not lead to it: creating it again would make a second one");
    return failed;
}

/* `failed`: why it could not be repaired. */
static void
tell_need(struct examination *exam, const char *handle, const struct mend_need *need,
          const struct error *failed)
{
    bool is_repaired = exam->repairs && !failed;
    if (failed)
        tell(exam, "unreadable-data", handle, false, failed->message);
    if (need->settings)
        tell(exam, "lost-settings", handle, is_repaired, "its size or a parameter is not in force");
    if (need->note == NOTE_LOST)
        tell(exam, "lost-note", handle, is_repaired,
             "the note beside its data is missing or damaged: a lost store could not be rebuilt");
}

static struct error *
repair_volume(struct examination *exam, const char *handle)
{
    struct held_volume held AUTO(held_release) = {0};
    struct error *error = held_take(exam->engine, handle, 0, &exam->arena, &held);
    return error ? error : mend_volume(exam->engine, &held, &exam->arena);
}

static void
check_volume_data(struct examination *exam, const volume_record *volume)
{
    struct data data = volume_data(volume);
    struct mend_need need;
    if (!has_data(
            exam, &data,
            "the volume's data is not there: restore it from a snapshot, or delete the volume"))
        return;
    struct error *error AUTO(error_cleanup) =
        mend_look_at_volume(exam->engine, volume, &exam->arena, &need);
    if (!error && exam->repairs)
        error = repair_volume(exam, volume->handle);
    tell_need(exam, volume->handle, &need, error);
}

static struct error *
check_volume(struct examination *exam, ProtobufCMessage *record)
{
    const volume_record *volume = (const volume_record *)record;
    if (volume->state == SKYCAP__RECORDS__VOLUME_RECORD__STATE__GONE)
        return NULL; /* its name may be another volume's by now */
    if (volume->state == SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY)
        check_volume_data(exam, volume);
    return check_name(exam, &volume_rows, record);
}

/* Whether the data is lost. Users cannot delete such a snapshot; it is only good for its data. */
static bool
forget_hidden(struct examination *exam, const snapshot_record *snapshot)
{
    char path[PATH_MAX];
    struct data data = snapshot_data(snapshot);
    struct error *error AUTO(error_cleanup) =
        backend_path(exam->engine->backend, &data, path, sizeof path);
    if (!error || error->code != CODE_NOT_FOUND)
        return false;
    struct error *failed AUTO(error_cleanup) =
        exam->repairs ? rows_delete(exam->engine, &snapshot_rows, &snapshot->base) : NULL;
    tell(exam, "lost-data", snapshot->handle, exam->repairs && !failed,
         "the data of a snapshot for transfers is not there: the next transfer sends everything");
    return true;
}

static void
check_snapshot_data(struct examination *exam, snapshot_record *snapshot)
{
    struct data data = snapshot_data(snapshot);
    struct mend_need need;
    if (!has_data(exam, &data, "the snapshot's data is not there: delete the snapshot"))
        return;
    struct error *error AUTO(error_cleanup) =
        mend_look_at_snapshot(exam->engine, snapshot, &exam->arena, &need);
    if (!error && exam->repairs)
        error = mend_snapshot(exam->engine, snapshot, &exam->arena);
    tell_need(exam, snapshot->handle, &need, error);
}

static struct error *
check_snapshot(struct examination *exam, ProtobufCMessage *record)
{
    snapshot_record *snapshot = (snapshot_record *)record;
    if (snapshot_is_hidden(snapshot) && snapshot->state == STATE(READY) &&
        forget_hidden(exam, snapshot))
        return NULL;
    if (snapshot->state == STATE(READY))
        check_snapshot_data(exam, snapshot);
    return snapshot->group_handle[0] ? NULL : check_name(exam, &snapshot_rows, record);
}

typedef struct error *check_row(struct examination *exam, ProtobufCMessage *record);

static struct error *
check_rows(struct examination *exam, const struct row_kind *kind, check_row *check)
{
    char after[BACKEND_HANDLE_SIZE] = "";
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    while (!error && page.has_more) {
        arena_clear(&exam->arena);
        error = rows_list(exam->engine, kind, after, PAGE, &exam->arena, &page);
        for (size_t i = 0; i < page.count && !error; i++)
            error = check(exam, page.rows[i].record);
        if (page.count && !error)
            snprintf(after, sizeof after, "%s",
                     rows_handle(kind, page.rows[page.count - 1].record));
    }
    return error;
}

/* ---- data ---- */

/* Not the copy of a volume that has moved away. */
static bool
is_expected(const volume_record *volume)
{
    return volume->state != VOLUME_STATE(LEFT) && volume->state != VOLUME_STATE(GONE);
}

/* What arrives for a copy of another node's snapshot: see volumes/replica_work.c. */
static bool
is_arriving(struct examination *exam, const struct data *data)
{
    snapshot_record *snapshot;
    struct error *error AUTO(error_cleanup) =
        snapshot_get_any(exam->engine, data->handle, &exam->arena, &snapshot);
    return !error && snapshot_is_replica(snapshot) &&
           snapshot->state == SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__COPYING;
}

static bool
is_known(struct examination *exam, const struct data *data)
{
    struct row row;
    struct error *error AUTO(error_cleanup) =
        rows_get(exam->engine, data->role == ROLE_SNAPSHOT ? &snapshot_rows : &volume_rows,
                 data->handle, &exam->arena, &row);
    if (!error && data->role == ROLE_VOLUME)
        return is_expected((const volume_record *)row.record);
    if (error && data->role == ROLE_VOLUME && is_arriving(exam, data))
        return true;
    return !error || error->code != CODE_NOT_FOUND;
}

/* With the lock of the data: who writes a row for it waits for the lock before it makes data. */
static bool
is_orphan(struct examination *exam, const struct data *data, struct name_lock **lock)
{
    const struct row_kind *kind = data->role == ROLE_SNAPSHOT ? &snapshot_rows : &volume_rows;
    if (is_known(exam, data))
        return false;
    struct error *error AUTO(error_cleanup) =
        data_lock_exclusive(exam->engine, kind, data->handle, lock);
    return !error && !is_known(exam, data);
}

static struct error *
check_entry(void *context, const struct backend_entry *entry)
{
    struct examination *exam = context;
    char start[BACKEND_HANDLE_SIZE];
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    arena_clear(&exam->arena);
    handle_print_least(exam->engine->started_ms, start);
    /*
     * Incomplete data with a row is being copied, or will be after the next start: the copy itself
     * makes it again.
     */
    if (strcmp(entry->data.handle, start) >= 0 || !is_orphan(exam, &entry->data, &lock))
        return NULL;
    struct error *failed AUTO(error_cleanup) =
        exam->repairs ? backend_remove(exam->engine->backend, &entry->data) : NULL;
    tell(exam, "orphan", entry->data.handle, exam->repairs && !failed,
         failed            ? failed->message
         : entry->is_whole ? "data that nothing refers to"
                           : "what an interrupted copy has left");
    return NULL;
}

/* ---- mounts and devices ---- */

static struct error *
is_mounted(struct examination *exam, const volume_record *volume, const mount_record *record,
           bool *out)
{
    struct backing backing AUTO(backing_clear) = BACKING_NONE;
    struct use use = use_of_row(record);
    struct error *error = backing_find(exam->engine, volume, &backing);
    return error ? error : use_is_mounted(&backing, &use, out);
}

/* Holds the volume: a row whose mount is just being made is not lost. */
static struct error *
forget_use(struct examination *exam, const mount_record *record)
{
    struct held_volume held AUTO(held_release) = {0};
    bool is_used = false;
    struct error *error = held_take(exam->engine, record->volume_handle, 0, &exam->arena, &held);
    bool has_no_volume = error && error->code == CODE_NOT_FOUND;
    if (!error)
        error = is_mounted(exam, held.record, record, &is_used);
    if (!has_no_volume && (error || is_used))
        return error ? error : error_new(CODE_ABORTED, "it is in use again");
    error_free(error);
    return mount_rows_delete(exam->engine, record);
}

static void
check_use(struct examination *exam, const mount_record *record)
{
    volume_record *volume;
    bool is_used = false;
    struct error *error AUTO(error_cleanup) =
        volume_get(exam->engine, record->volume_handle, &exam->arena, &volume);
    if (!error)
        error = is_mounted(exam, volume, record, &is_used);
    if (!error && is_used)
        return;
    struct error *failed AUTO(error_cleanup) = exam->repairs ? forget_use(exam, record) : NULL;
    tell(exam, "lost-mount", record->path, exam->repairs && !failed,
         "the volume is not there any more, as after a reboot: stage and publish it again");
}

static struct error *
check_uses(struct examination *exam)
{
    struct mount_list uses;
    arena_clear(&exam->arena);
    struct error *error = mount_rows_list(exam->engine, NULL, &exam->arena, &uses);
    for (size_t i = 0; i < uses.count && !error; i++)
        check_use(exam, uses.records[i]);
    return error;
}

/* .../volume-images/HANDLE/disk/image, if that is an image of ours; false otherwise. */
static bool
find_handle(struct examination *exam, const char *file, char handle[BACKEND_HANDLE_SIZE])
{
    static const char before[] = "/volume-images/";
    char path[PATH_MAX];
    const char *at = strstr(file, before);
    if (!at)
        return false;
    size_t size = strcspn(at + sizeof before - 1, "/");
    if (size == 0 || size >= BACKEND_HANDLE_SIZE)
        return false;
    struct data data = {.kind = KIND_IMAGE, .role = ROLE_VOLUME};
    memcpy(data.handle, at + sizeof before - 1, size);
    memcpy(handle, data.handle, BACKEND_HANDLE_SIZE);
    struct error *error AUTO(error_cleanup) =
        backend_path(exam->engine->backend, &data, path, sizeof path);
    return !error && strcmp(path, file) == 0;
}

/*
 * According to the rows or, if they were lost, to the mounts: the name of a removed device is used
 * again.
 */
static struct error *
is_device_used(struct examination *exam, const char *handle, const char *device, bool *is_used)
{
    struct mount_list uses;
    struct error *error = mount_rows_list(exam->engine, handle, &exam->arena, &uses);
    *is_used = !error && uses.count;
    return error || *is_used ? error : mount_find_device(device, is_used);
}

static struct error *
check_device(void *context, const char *device, const char *file)
{
    struct examination *exam = context;
    char handle[BACKEND_HANDLE_SIZE];
    bool is_used;
    if (!find_handle(exam, file, handle))
        return NULL;
    arena_clear(&exam->arena);
    struct error *error = is_device_used(exam, handle, device, &is_used);
    if (error || is_used)
        return error;
    error = exam->repairs ? loop_drop(device) : NULL;
    tell(exam, "unused-device", device, exam->repairs && !error,
         arena_print(&exam->arena, "a device of the volume %s, which is not in use", handle));
    return error;
}

static struct error *
check_rest(struct examination *exam)
{
    struct error *error = backend_list(exam->engine->backend, check_entry, exam);
    return error ? error : loop_list(check_device, exam);
}

static void
log_finding(void *context, const struct finding *finding)
{
    const struct engine *engine = context;
    if (finding->is_repaired)
        log_info(engine->log, "removed leftover data", LOG_TEXT("kind", finding->kind),
                 LOG_TEXT("subject", finding->subject));
    else
        log_warn(engine->log, "could not remove leftover data",
                 LOG_TEXT("subject", finding->subject), LOG_TEXT("error", finding->message));
}

struct error *
doctor_sweep(struct engine *engine)
{
    struct examination exam AUTO(end_examination) = {engine, true, log_finding, engine, {0}};
    arena_init(&exam.arena, NULL, 0, SIZE_MAX);
    return check_rest(&exam);
}

struct error *
doctor_examine(struct engine *engine, bool repairs, doctor_found *found, void *context)
{
    struct examination exam AUTO(end_examination) = {engine, repairs, found, context, {0}};
    arena_init(&exam.arena, NULL, 0, SIZE_MAX);
    struct error *error = check_rows(&exam, &volume_rows, check_volume);
    if (!error)
        error = check_rows(&exam, &snapshot_rows, check_snapshot);
    if (!error)
        error = check_uses(&exam);
    return error ? error : check_rest(&exam);
}
