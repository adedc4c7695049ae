/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes groups of snapshots under a writer that shows disorder.
 *
 *     group-cut BACKEND DIRECTORY KIND VOLUMES ROUNDS
 *
 * KIND is tree, raw (a device), or a file system in an image. The writer writes 1, 2, 3, ... to one volume after the other, round and round, and makes
 * each number durable before it writes the next. So a group of one instant has a prefix of the numbers: if it has n it has all before n. To show
 * that disorder would be seen, snapshots are also taken one by one, with some numbers written in between.
 *
 * Exit code 0: good. 1: something is wrong; a line says what.
 */
#include <stdatomic.h>
#include <sys/stat.h>

#include "backends/loop.h"
#include "node/publish.h"
#include "unit/csi_ends.h"
#include "volumes/volume.h"

#define MOST_VOLUMES 16u
#define VOLUME_BYTES (INT64_C(32) << 20)
#define SLOTS 64u /* in each volume's log */
#define SLOT_BYTES 512u

struct trial {
    struct csi_ends csi;
    const char *directory; /* to stage in */
    const char *kind;
    char *volumes[MOST_VOLUMES];
    int logs[MOST_VOLUMES];
    unsigned count;
    pthread_t writer;
    atomic_bool stops;
    atomic_bool pauses;
    atomic_bool is_paused;
    atomic_ulong written; /* the last number that is durable */
    unsigned serial;
};

static bool
is_tree(const struct trial *trial)
{
    return !strcmp(trial->kind, "tree");
}

static bool
is_raw(const struct trial *trial)
{
    return !strcmp(trial->kind, "raw");
}

/* ---- volumes in use ---- */

static Csi__V1__VolumeCapability *
capability_of(struct trial *trial)
{
    struct arena *arena = &trial->csi.arena;
    Csi__V1__VolumeCapability *capability = arena_alloc(arena, sizeof *capability);
    csi__v1__volume_capability__init(capability);
    capability->access_mode = arena_alloc(arena, sizeof *capability->access_mode);
    csi__v1__volume_capability__access_mode__init(capability->access_mode);
    capability->access_mode->mode =
        CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    if (is_raw(trial)) {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
        capability->block = arena_alloc(arena, sizeof *capability->block);
        csi__v1__volume_capability__block_volume__init(capability->block);
    } else {
        capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
        capability->mount = arena_alloc(arena, sizeof *capability->mount);
        csi__v1__volume_capability__mount_volume__init(capability->mount);
    }
    return capability;
}

static char *
stage(struct trial *trial, const char *volume_id)
{
    const char *handle = ids_handle(ID_VOLUME, volume_id);
    char *path = arena_print(&trial->csi.arena, "%s/staged-%s", trial->directory, handle);
    CHECK(mkdir(path, 0700) == 0);
    succeed(stage_volume(trial->csi.engine, handle,
                         &(struct use){path, "", capability_of(trial), false}));
    return path;
}

static void
unstage(struct trial *trial, const char *volume_id, const char *path)
{
    succeed(stage_undo(trial->csi.engine, ids_handle(ID_VOLUME, volume_id), path));
    CHECK(rmdir(path) == 0);
}

static int
open_log_in(const char *directory)
{
    char path[5000];
    snprintf(path, sizeof path, "%s/log", directory);
    int log = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(log >= 0);
    return log;
}

static int
open_device(struct trial *trial, const char *volume_id)
{
    struct loop_device device AUTO(loop_release) = LOOP_NONE;
    succeed(loop_find(csi_path(&trial->csi, volume_id, KIND_IMAGE), &device));
    int log = open(device.path, O_RDWR | O_CLOEXEC);
    CHECK(log >= 0);
    return log;
}

static void
open_volume(struct trial *trial, unsigned i)
{
    char name[32];
    snprintf(name, sizeof name, "volume-%u", i);
    trial->volumes[i] = csi_create_volume(&trial->csi, name, is_tree(trial) ? "" : trial->kind,
                                          is_tree(trial) ? 0 : VOLUME_BYTES);
    const char *path = stage(trial, trial->volumes[i]);
    trial->logs[i] = is_raw(trial) ? open_device(trial, trial->volumes[i]) : open_log_in(path);
}

/* ---- writing ---- */

static void
write_on(struct trial *trial)
{
    atomic_store(&trial->pauses, false);
}

static void
pause_writer(struct trial *trial)
{
    atomic_store(&trial->is_paused, false);
    atomic_store(&trial->pauses, true);
    while (!atomic_load(&trial->is_paused))
        sleep_ms(1);
}

/* False at the end. */
static bool
may_write(struct trial *trial)
{
    while (atomic_load(&trial->pauses)) {
        atomic_store(&trial->is_paused, true);
        sleep_ms(1);
    }
    return !atomic_load(&trial->stops);
}

static off_t
slot_of(const struct trial *trial, unsigned long number)
{
    return (off_t)(number / trial->count % SLOTS * SLOT_BYTES);
}

static void *
write_numbers(void *argument)
{
    struct trial *trial = argument;
    for (unsigned long number = 1; may_write(trial); number++) {
        int log = trial->logs[number % trial->count];
        if (pwrite(log, &number, sizeof number, slot_of(trial, number)) != sizeof number ||
            fdatasync(log) != 0) {
            perror("the writer");
            abort();
        }
        atomic_store(&trial->written, number);
    }
    return NULL;
}

/* ---- reading ---- */

/* The last number in a log, whose numbers are those of volume `index`; 0: none. A gap before it is disorder in itself. */
static unsigned long
read_last(const struct trial *trial, int log, unsigned index)
{
    unsigned long last = 0, found[SLOTS] = {0};
    for (unsigned i = 0; i < SLOTS; i++)
        if (pread(log, &found[i], sizeof found[i], (off_t)(i * SLOT_BYTES)) > 0 && found[i] > last)
            last = found[i];
    CHECK(!last || last % trial->count == index);
    for (unsigned long n = last, seen = 0; n > 0 && seen < SLOTS; seen++) {
        CHECK_NUMBER(found[n / trial->count % SLOTS], n);
        n = n > trial->count ? n - trial->count : 0;
    }
    return last;
}

static char *
restore(struct trial *trial, const char *snapshot_id)
{
    volume_record *record;
    Csi__V1__VolumeCapability *capability = capability_of(trial);
    capability->mount->fs_type = (char *)trial->kind;
    struct volume_request request = {.name = arena_print(&trial->csi.arena, "r%u", trial->serial++),
                                     .capabilities = &capability,
                                     .capability_count = 1,
                                     .source_kind = SOURCE_SNAPSHOT,
                                     .wait_ms = 60000,
                                     .source_handle = ids_handle(ID_SNAPSHOT, snapshot_id)};
    succeed(volume_create(trial->csi.engine, &request, &trial->csi.arena, &record));
    return ids_print(ID_VOLUME, record->handle, &trial->csi.arena);
}

/* What is in an image with a file system, its user sees in a volume that is made of it. */
static unsigned long
read_restored(struct trial *trial, const char *snapshot_id, unsigned index)
{
    char *volume = restore(trial, snapshot_id);
    char *path = stage(trial, volume);
    int log = open_log_in(path);
    unsigned long last = read_last(trial, log, index);
    close(log);
    unstage(trial, volume, path);
    succeed(volume_delete(trial->csi.engine, ids_handle(ID_VOLUME, volume)));
    return last;
}

static unsigned long
read_snapshot(struct trial *trial, const char *snapshot_id, unsigned index)
{
    char path[5000];
    if (!is_raw(trial) && !is_tree(trial))
        return read_restored(trial, snapshot_id, index);
    snprintf(path, sizeof path, "%s%s",
             csi_path(&trial->csi, snapshot_id, is_raw(trial) ? KIND_IMAGE : KIND_TREE),
             is_raw(trial) ? "" : "/log");
    int log = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(log >= 0);
    unsigned long last = read_last(trial, log, index);
    close(log);
    return last;
}

/* `ids` are in the order of the volumes. */
static bool
is_in_order(struct trial *trial, const char *const *ids, unsigned long least)
{
    unsigned long lasts[MOST_VOLUMES], newest = 0;
    bool in_order = true;
    for (unsigned i = 0; i < trial->count; i++) {
        lasts[i] = read_snapshot(trial, ids[i], i);
        if (lasts[i] > newest)
            newest = lasts[i];
    }
    for (unsigned i = 0; i < trial->count; i++) {
        unsigned long back = (newest + trial->count - i) % trial->count;
        in_order &= lasts[i] == (newest > back ? newest - back : 0);
    }
    CHECK(newest >= least); /* what was durable before is there */
    return in_order;
}

/* ---- rounds ---- */

static unsigned
index_of(const struct trial *trial, const char *volume_id)
{
    unsigned i = 0;
    while (i < trial->count && strcmp(trial->volumes[i], volume_id) != 0)
        i++;
    CHECK(i < trial->count);
    return i;
}

static bool
take_group(struct trial *trial, unsigned *ms)
{
    Csi__V1__VolumeGroupSnapshot *group = NULL;
    const char *ids[MOST_VOLUMES] = {0};
    unsigned long least = atomic_load(&trial->written);
    uint64_t start = timers_now();
    const char *name = arena_print(&trial->csi.arena, "g%u", trial->serial++);
    succeed(csi_create_group(&trial->csi, name, trial->volumes, trial->count, &group));
    *ms += ms_since(start);
    CHECK_NUMBER(group->n_snapshots, trial->count);
    for (size_t i = 0; i < group->n_snapshots; i++)
        ids[index_of(trial, group->snapshots[i]->source_volume_id)] =
            group->snapshots[i]->snapshot_id;
    bool in_order = is_in_order(trial, ids, least);
    succeed(csi_delete_group(&trial->csi, group->group_snapshot_id, NULL, 0));
    return in_order;
}

static void
wait_for_numbers(struct trial *trial, unsigned long count)
{
    unsigned long first = atomic_load(&trial->written);
    uint64_t start = timers_now();
    while (atomic_load(&trial->written) < first + count && ms_since(start) < 10 * PATIENCE_MS)
        sleep_ms(1);
    CHECK(atomic_load(&trial->written) >= first + count);
}

/* While nothing is written: a copy of a file system that is being written to is no file system. */
static char *
take_snapshot(struct trial *trial, const char *volume_id)
{
    const char *name = arena_print(&trial->csi.arena, "s%u", trial->serial++);
    pause_writer(trial);
    Csi__V1__Snapshot *snapshot = csi_create_snapshot(&trial->csi, name, volume_id);
    write_on(trial);
    return snapshot->snapshot_id;
}

static bool
take_one_by_one(struct trial *trial)
{
    const char *ids[MOST_VOLUMES];
    for (unsigned i = 0; i < trial->count; i++) {
        ids[i] = take_snapshot(trial, trial->volumes[i]);
        wait_for_numbers(trial, trial->count);
    }
    bool in_order = is_in_order(trial, ids, 0);
    for (unsigned i = 0; i < trial->count; i++)
        succeed(csi_delete_snapshot(&trial->csi, ids[i]));
    return in_order;
}

static void
run_rounds(struct trial *trial, unsigned rounds)
{
    unsigned ms = 0, disorder = 0;
    wait_for_numbers(trial, 2 * SLOTS);
    CHECK(!take_one_by_one(trial));
    for (unsigned i = 0; i < rounds; i++)
        disorder += !take_group(trial, &ms);
    printf("%s, %u volumes (%s): %u of %u groups in disorder, %.1f ms each\n",
           trial->csi.backend->ops->name, trial->count, trial->kind, disorder, rounds,
           (double)ms / rounds);
    CHECK_NUMBER(disorder, 0);
}

static void
close_volumes(struct trial *trial)
{
    for (unsigned i = 0; i < trial->count; i++) {
        const char *handle = ids_handle(ID_VOLUME, trial->volumes[i]);
        close(trial->logs[i]);
        unstage(trial, trial->volumes[i],
                arena_print(&trial->csi.arena, "%s/staged-%s", trial->directory, handle));
        succeed(volume_delete(trial->csi.engine, handle));
    }
}

int
main(int argument_count, char **arguments)
{
    static struct trial trial;
    char data[4096];
    if (argument_count != 6)
        return 2;
    trial.directory = arguments[2];
    trial.kind = arguments[3];
    trial.count = (unsigned)atoi(arguments[4]);
    snprintf(data, sizeof data, "%s/data", trial.directory);
    mkdir(data, 0700);
    csi_ends_open(&trial.csi, arguments[1], data);
    for (unsigned i = 0; i < trial.count; i++)
        open_volume(&trial, i);
    pthread_create(&trial.writer, NULL, write_numbers, &trial);
    run_rounds(&trial, (unsigned)atoi(arguments[5]));
    atomic_store(&trial.stops, true);
    pthread_join(trial.writer, NULL);
    close_volumes(&trial);
    CHECK_NUMBER(csi_count_data(&trial.csi), 0);
    csi_ends_close(&trial.csi);
    return check_report("group-cut");
}
