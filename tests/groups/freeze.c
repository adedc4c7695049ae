/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that are held freeze for a group: what can be, what cannot, and that whatever happens they go on.
 *
 *     freeze BACKEND DIRECTORY        of a back end that has no instant of its own for several volumes: dir or memory
 *
 * Exit code 0: good. 1: something is wrong; a line says what.
 */
#include "volumes/freeze.h"

#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "node/stage.h"
#include "unit/csi_ends.h"
#include "unit/slow_backend.h"
#include "volumes/group.h"
#include "volumes/snapshot.h"
#include "volumes/volume.h"

#define VOLUME_BYTES (INT64_C(32) << 20)
#define SOON_MS 2000u
#define NEVER_MS 300u /* to see that something does not happen */

struct trial {
    struct csi_ends csi; /* without its server */
    const char *directory;
    Csi__V1__VolumeCapability capability;
    Csi__V1__VolumeCapability__MountVolume mount;
    Csi__V1__VolumeCapability__BlockVolume block;
    Csi__V1__VolumeCapability__AccessMode mode;
    volume_record *image; /* ext4, staged at `path` */
    char *path;
};

/* ---- volumes ---- */

static void
choose(struct trial *trial, const char *fs_type)
{
    trial->mount.fs_type = (char *)fs_type;
    trial->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    trial->capability.mount = &trial->mount;
    if (strcmp(fs_type, "raw") != 0)
        return;
    trial->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
    trial->capability.block = &trial->block;
}

static volume_record *
create(struct trial *trial, const char *name, const char *fs_type)
{
    volume_record *record;
    choose(trial, fs_type);
    struct volume_request request = {
        .name = name,
        .required_bytes = fs_type[0] ? VOLUME_BYTES : 0,
        .capabilities = (volume_capability *[]){&trial->capability},
        .capability_count = 1,
    };
    succeed(volume_create(trial->csi.engine, &request, &trial->csi.arena, &record));
    return record;
}

static char *
stage(struct trial *trial, const volume_record *volume, const char *fs_type, bool read_only)
{
    choose(trial, fs_type);
    char *path = arena_print(&trial->csi.arena, "%s/at-%s", trial->directory, volume->handle);
    CHECK(mkdir(path, 0700) == 0);
    succeed(stage_volume(trial->csi.engine, volume->handle,
                         &(struct use){path, "", &trial->capability, read_only}));
    return path;
}

static void
unstage(struct trial *trial, const volume_record *volume, const char *path)
{
    succeed(stage_undo(trial->csi.engine, volume->handle, path));
    CHECK(rmdir(path) == 0);
}

static enum code
code_of_group(struct trial *trial, const char *name, const volume_record *a, const volume_record *b)
{
    struct group group;
    const char *handles[] = {a->handle, b->handle};
    struct text_map none = {0};
    struct error *error =
        group_create(trial->csi.engine, name, handles, 2, &none, &trial->csi.arena, &group);
    if (!error)
        succeed(group_delete(trial->csi.engine, group.record->handle));
    return take_code(error);
}

/* ---- writers ---- */

/* A process that writes one file and ends. */
static pid_t
start_writer(const char *directory)
{
    pid_t writer = fork();
    if (writer != 0)
        return writer;
    char path[4096];
    snprintf(path, sizeof path, "%s/written", directory);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool is_good = file >= 0 && write(file, "x", 1) == 1 && fsync(file) == 0;
    _exit(is_good ? 0 : 1);
}

#define PAGE 4096u

/* A page that is not there until somebody gives it; NULL where the kernel does not let us. */
static void *
make_missing_page(int *faults)
{
    struct uffdio_api api = {.api = UFFD_API};
    *faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(uintptr_t)page, PAGE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    bool is_good = *faults >= 0 && page != MAP_FAILED && ioctl(*faults, UFFDIO_API, &api) == 0 &&
                   ioctl(*faults, UFFDIO_REGISTER, &range) == 0;
    return is_good ? page : NULL;
}

struct missing {
    int faults;
    void *page;
    unsigned ms;
};

static void *
give_page(void *context)
{
    const struct missing *missing = context;
    struct uffdio_zeropage zero = {.range = {(uintptr_t)missing->page, PAGE}};
    sleep_ms(missing->ms);
    ioctl(missing->faults, UFFDIO_ZEROPAGE, &zero);
    return NULL;
}

/* A process that is in the midst of a write for so long. Until then nobody gets the file system frozen. */
static pid_t
start_slow_writer(const char *directory, unsigned ms)
{
    pid_t writer = fork();
    if (writer != 0)
        return writer;
    char path[4096];
    struct missing missing = {.ms = ms};
    pthread_t giver;
    snprintf(path, sizeof path, "%s/slowly", directory);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    missing.page = make_missing_page(&missing.faults);
    if (file < 0 || !missing.page || pthread_create(&giver, NULL, give_page, &missing) != 0)
        _exit(1);
    _exit(write(file, missing.page, PAGE) == PAGE ? 0 : 1);
}

static bool
ends_within(pid_t process, unsigned ms)
{
    uint64_t start = timers_now();
    int status;
    while (waitpid(process, &status, WNOHANG) == 0) {
        if (ms_since(start) > ms)
            return false;
        sleep_ms(5);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return true;
}

static struct freeze *
begin(struct trial *trial)
{
    struct freeze *freeze;
    succeed(freeze_begin(trial->csi.engine, &trial->image, 1, &freeze));
    return freeze;
}

static void
freeze_by_hand(struct trial *trial, unsigned long request)
{
    int mount = open(trial->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(mount >= 0 && ioctl(mount, request, 0) == 0);
    close(mount);
}

/* ---- facts ---- */

static void
writers_wait_until_it_ends(struct trial *trial)
{
    struct freeze *freeze = begin(trial);
    pid_t writer = start_writer(trial->path);
    CHECK(!ends_within(writer, NEVER_MS));
    CHECK(!freeze_is_over(freeze));
    CHECK_CODE(freeze_end(freeze), CODE_OK);
    CHECK(ends_within(writer, SOON_MS));
}

static void
trees_and_devices_in_use_are_refused(struct trial *trial)
{
    static const char *const kinds[] = {"", "raw"};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        volume_record *volume = create(trial, i ? "device" : "tree", kinds[i]);
        CHECK_NUMBER(code_of_group(trial, "g", trial->image, volume), CODE_OK);
        char *path = stage(trial, volume, kinds[i], false);
        CHECK_NUMBER(code_of_group(trial, "g", trial->image, volume), CODE_FAILED_PRECONDITION);
        unstage(trial, volume, path);
        CHECK_NUMBER(code_of_group(trial, "g", trial->image, volume), CODE_OK);
        succeed(volume_delete(trial->csi.engine, volume->handle));
    }
    CHECK(ends_within(start_writer(trial->path), SOON_MS));
}

static void
a_reader_is_in_nobodys_way(struct trial *trial)
{
    volume_record *volume = create(trial, "read", "");
    char *path = stage(trial, volume, "", true);
    CHECK_NUMBER(code_of_group(trial, "g", trial->image, volume), CODE_OK);
    unstage(trial, volume, path);
    succeed(volume_delete(trial->csi.engine, volume->handle));
}

static void
a_freeze_of_somebody_else_stays(struct trial *trial)
{
    struct freeze *freeze;
    freeze_by_hand(trial, FIFREEZE);
    CHECK_CODE(freeze_begin(trial->csi.engine, &trial->image, 1, &freeze), CODE_ABORTED);
    pid_t writer = start_writer(trial->path);
    CHECK(!ends_within(writer, NEVER_MS));
    freeze_by_hand(trial, FITHAW);
    CHECK(ends_within(writer, SOON_MS));
}

static void
all_goes_on_when_the_process_is_killed(struct trial *trial)
{
    pid_t killed = fork();
    if (killed == 0) {
        begin(trial);
        raise(SIGKILL);
    }
    int status;
    CHECK(waitpid(killed, &status, 0) == killed && WIFSIGNALED(status));
    CHECK(ends_within(start_writer(trial->path), SOON_MS));
}

/* The watching process has gone with the other one, as when a whole container is killed. */
static void
a_start_thaws_what_was_left(struct trial *trial)
{
    char *key = arena_print(&trial->csi.arena, "frozen/%s", trial->image->handle);
    struct store_change row = {key, (const uint8_t *)trial->path, strlen(trial->path), STORE_ANY};
    struct store_entry entry;
    freeze_by_hand(trial, FIFREEZE);
    succeed(store_write(trial->csi.store, &row, 1, NULL));
    csi_ends_reopen_engine(&trial->csi);
    CHECK(ends_within(start_writer(trial->path), SOON_MS));
    CHECK_CODE(store_get(trial->csi.store, key, &trial->csi.arena, &entry), CODE_NOT_FOUND);
}

static void
it_never_lasts_longer_than_it_may(struct trial *trial)
{
    uint64_t start = timers_now();
    struct freeze *freeze = begin(trial);
    CHECK(ends_within(start_writer(trial->path), FREEZE_LONGEST_MS + SOON_MS));
    CHECK(ms_since(start) >= FREEZE_LONGEST_MS);
    CHECK(freeze_is_over(freeze));
    CHECK_CODE(freeze_end(freeze), CODE_FAILED_PRECONDITION);
}

/* It is frozen, as soon as nobody waits to freeze it any more. */
static struct freeze *
begin_soon(struct trial *trial)
{
    struct freeze *freeze = NULL;
    uint64_t start = timers_now();
    struct error *error;
    while ((error = freeze_begin(trial->csi.engine, &trial->image, 1, &freeze)) &&
           error->code == CODE_ABORTED && ms_since(start) < SOON_MS) {
        error_free(error);
        sleep_ms(5);
    }
    succeed(error);
    return freeze;
}

static enum code
code_of_freeze(struct trial *trial, volume_record *const *volumes, size_t count)
{
    struct freeze *freeze;
    struct error *error = freeze_begin(trial->csi.engine, volumes, count, &freeze);
    return take_code(error ? error : freeze_end(freeze));
}

/* The kernel does not let go of who waits for such a writer: it must be somebody whom nobody misses. What was to be frozen with it goes on. */
static void
a_writer_who_takes_longer_is_not_waited_for(struct trial *trial)
{
    volume_record *both[] = {trial->image, create(trial, "beside", "ext4")};
    char *beside = stage(trial, both[1], "ext4", false);
    uint64_t start = timers_now();
    pid_t slow = start_slow_writer(trial->path, FREEZE_LONGEST_MS + NEVER_MS + 3 * SOON_MS);
    sleep_ms(NEVER_MS);
    CHECK_NUMBER(code_of_freeze(trial, both, 2), CODE_FAILED_PRECONDITION);
    CHECK_NUMBER(code_of_freeze(trial, both, 2), CODE_ABORTED);
    CHECK_NUMBER(code_of_freeze(trial, &both[1], 1), CODE_OK);
    CHECK(ends_within(start_writer(beside), SOON_MS));
    CHECK(ms_since(start) < FREEZE_LONGEST_MS + NEVER_MS + SOON_MS);
    CHECK(!ends_within(slow, 0));
    CHECK(ends_within(slow, 3 * SOON_MS));
    CHECK(ends_within(start_writer(trial->path), SOON_MS));
    CHECK_CODE(freeze_end(begin_soon(trial)), CODE_OK);
    CHECK_NUMBER(code_of_freeze(trial, both, 2), CODE_OK);
    unstage(trial, both[1], beside);
    succeed(volume_delete(trial->csi.engine, both[1]->handle));
}

/* Nor does it keep the process from its end, or the one that was to freeze from thawing. */
static void
an_end_does_not_wait_for_a_writer_either(struct trial *trial)
{
    uint64_t start = timers_now();
    pid_t slow = start_slow_writer(trial->path, NEVER_MS + 2 * SOON_MS);
    sleep_ms(NEVER_MS);
    pid_t killed = fork();
    if (killed == 0) {
        alarm(1);
        begin(trial);
        _exit(0);
    }
    int status;
    CHECK(waitpid(killed, &status, 0) == killed && WIFSIGNALED(status));
    CHECK(ms_since(start) < NEVER_MS + SOON_MS);
    CHECK(ends_within(slow, 2 * SOON_MS));
    CHECK(ends_within(start_writer(trial->path), SOON_MS));
    CHECK_CODE(freeze_end(begin_soon(trial)), CODE_OK);
}

static void
nothing_is_left(struct trial *trial)
{
    struct store_list list;
    succeed(store_list(trial->csi.store, "frozen/", NULL, 0, &trial->csi.arena, &list));
    CHECK_NUMBER(list.count, 0);
    CHECK_NUMBER(waitpid(-1, NULL, WNOHANG), -1);
    CHECK_NUMBER(csi_count_data(&trial->csi), 1);
}

static void
trial_open(struct trial *trial, const char *backend)
{
    char data[4096];
    snprintf(data, sizeof data, "%s/data", trial->directory);
    mkdir(data, 0700);
    csi__v1__volume_capability__init(&trial->capability);
    csi__v1__volume_capability__mount_volume__init(&trial->mount);
    csi__v1__volume_capability__block_volume__init(&trial->block);
    csi__v1__volume_capability__access_mode__init(&trial->mode);
    trial->mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    trial->capability.access_mode = &trial->mode;
    csi_ends_open_parts(&trial->csi, backend, data);
    trial->image = create(trial, "image", "ext4");
    trial->path = stage(trial, trial->image, "ext4", false);
}

/* The copy takes longer than the volume can be frozen. Its writers wait once for that, not with each try. */
static void
what_takes_too_long_to_copy_is_frozen_once(struct trial *trial)
{
    snapshot_record *snapshot;
    struct text_map none = {0};
    engine_close(trial->csi.engine); /* its threads use the back end */
    slow_down(trial->csi.backend);
    trial->csi.backend->cuts_images = false;
    csi_ends_open_engine(&trial->csi);
    struct engine *engine = trial->csi.engine;
    CHECK_CODE(snapshot_create(engine, "slow", trial->image->handle, &none, 3 * FREEZE_LONGEST_MS,
                               &trial->csi.arena, &snapshot),
               CODE_FAILED_PRECONDITION);
    CHECK(wait_until_begun(1));
    uint64_t start = timers_now();
    struct error *error = snapshot_create(engine, "slow", trial->image->handle, &none,
                                          3 * FREEZE_LONGEST_MS, &trial->csi.arena, &snapshot);
    CHECK(error && strstr(error->message, "a recent copy of the volume"));
    CHECK_CODE(error, CODE_FAILED_PRECONDITION);
    CHECK(ms_since(start) < FREEZE_LONGEST_MS / 2);
    CHECK(ends_within(start_writer(trial->path), SOON_MS));
    CHECK(wait_until_begun(1));
    atomic_store(&is_held, false);
}

int
main(int count, char **arguments)
{
    static struct trial trial;
    if (count != 3)
        return 2;
    trial.directory = arguments[2];
    trial_open(&trial, arguments[1]);
    writers_wait_until_it_ends(&trial);
    trees_and_devices_in_use_are_refused(&trial);
    a_reader_is_in_nobodys_way(&trial);
    a_freeze_of_somebody_else_stays(&trial);
    all_goes_on_when_the_process_is_killed(&trial);
    a_start_thaws_what_was_left(&trial);
    it_never_lasts_longer_than_it_may(&trial);
    a_writer_who_takes_longer_is_not_waited_for(&trial);
    an_end_does_not_wait_for_a_writer_either(&trial);
    nothing_is_left(&trial);
    what_takes_too_long_to_copy_is_frozen_once(&trial);
    unstage(&trial, trial.image, trial.path);
    succeed(volume_delete(trial.csi.engine, trial.image->handle));
    csi_ends_close(&trial.csi);
    return check_report("freeze");
}
