/* SPDX-License-Identifier: Apache-2.0 */
/* Driver `oim`, its node side, on loop devices: data outlives unstaging, and every half state is made good. Needs root. */
#include <sys/mount.h>

#include "backends/format.h"
#include "node/mount.h"
#include "oim_ends.h"

#define MIB (INT64_C(1) << 20)
#define SIZE (16 * MIB)

/* One volume "v" with a place to stage it and one to publish it. */
struct setup {
    struct oim_pair pair;
    char staging[80], target[80];
};

static void
setup_open(struct setup *setup)
{
    struct oim_pair *pair = &setup->pair;
    pair_open(pair);
    pair->fake.has_devices = true;
    snprintf(setup->staging, sizeof setup->staging, "%s/staging", pair->directory);
    snprintf(setup->target, sizeof setup->target, "%s/target", pair->directory);
}

static void
setup_close(struct setup *setup)
{
    umount2(setup->target, MNT_DETACH);
    umount2(setup->staging, MNT_DETACH);
    for (size_t i = 0; i < MOST_BDEVS; i++)
        if (setup->pair.fake.bdevs[i].size)
            error_free(loop_detach(
                fake_file(&setup->pair.fake, setup->pair.fake.bdevs[i].name, &setup->pair.arena)));
    pair_close(&setup->pair);
}

static void
make(struct setup *setup, const char *name, const char *fs_type)
{
    const char *id;
    int64_t size;
    succeed(pair_create(&setup->pair, &(struct wanted){name, fs_type, SIZE}, &id, &size));
}

/* ---- calls ---- */

struct way {
    const char *id;      /* NULL: "v" */
    const char *fs_type; /* NULL: block */
    bool is_read_only;
    uint32_t timeout_ms;
    const char *group; /* NULL: none */
};

static Csi__V1__VolumeCapability *
way_capability(struct setup *setup, struct way way)
{
    Csi__V1__VolumeCapability *capability =
        capability_of(&setup->pair.arena, way.fs_type, CAPABILITY_MODE(SINGLE_NODE_WRITER));
    if (way.group)
        capability->mount->volume_mount_group = (char *)way.group;
    return capability;
}

static struct error *
stage(struct setup *setup, struct way way)
{
    Csi__V1__NodeStageVolumeRequest request = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
    request.volume_id = (char *)(way.id ? way.id : "v");
    request.staging_target_path = setup->staging;
    request.volume_capability = way_capability(setup, way);
    return pair_call(&setup->pair, "csi.v1.Node/NodeStageVolume", &request.base, way.timeout_ms,
                     NULL);
}

static struct error *
unstage(struct setup *setup, const char *id)
{
    Csi__V1__NodeUnstageVolumeRequest request = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;
    request.volume_id = (char *)id;
    request.staging_target_path = setup->staging;
    return pair_call(&setup->pair, "csi.v1.Node/NodeUnstageVolume", &request.base, 0, NULL);
}

static struct error *
publish_at(struct setup *setup, struct way way, const char *path)
{
    Csi__V1__NodePublishVolumeRequest request = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
    request.volume_id = (char *)(way.id ? way.id : "v");
    request.staging_target_path = setup->staging;
    request.target_path = (char *)path;
    request.readonly = way.is_read_only;
    request.volume_capability = way_capability(setup, way);
    return pair_call(&setup->pair, "csi.v1.Node/NodePublishVolume", &request.base, 0, NULL);
}

static struct error *
publish(struct setup *setup, struct way way)
{
    return publish_at(setup, way, setup->target);
}

static struct error *
unpublish(struct setup *setup)
{
    Csi__V1__NodeUnpublishVolumeRequest request = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;
    request.volume_id = "v";
    request.target_path = setup->target;
    return pair_call(&setup->pair, "csi.v1.Node/NodeUnpublishVolume", &request.base, 0, NULL);
}

/* ---- data ---- */

/* At an offset, so that a device's ends stay empty. */
static bool
write_text(const char *path, const char *text, off_t offset)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && pwrite(fd, text, strlen(text), offset) == (ssize_t)strlen(text) &&
                      fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return is_written;
}

static bool
has_text(const char *path, const char *text, off_t offset)
{
    char found[64] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_same = fd >= 0 && pread(fd, found, strlen(text), offset) == (ssize_t)strlen(text) &&
                   strcmp(found, text) == 0;
    if (fd >= 0)
        close(fd);
    return is_same;
}

static const char *
file_in(struct setup *setup, const char *directory)
{
    return arena_print(&setup->pair.arena, "%s/file", directory);
}

static bool
is_mapped(struct setup *setup, const char *name)
{
    struct fake_bdev *bdev = fake_find(&setup->pair.fake, name);
    return bdev && bdev->is_mapped;
}

/* Nothing of ours is left on the node. */
static void
check_nothing_stays(struct setup *setup)
{
    CHECK(!is_mapped(setup, "v"));
    CHECK(!mount_is_point(setup->staging));
    CHECK(!mount_is_point(setup->target));
    CHECK_CODE(pair_delete(&setup->pair, "v"), CODE_OK);
}

/* ---- file systems ---- */

static void
files_outlive_unstaging(void)
{
    struct setup setup;
    struct way way = {.fs_type = "ext4"};
    setup_open(&setup);
    make(&setup, "v", "ext4");
    CHECK_CODE(publish(&setup, way), CODE_FAILED_PRECONDITION);
    CHECK_CODE(stage(&setup, way), CODE_OK);
    CHECK_CODE(stage(&setup, way), CODE_OK);
    CHECK_NUMBER(atomic_load(&setup.pair.fake.maps), 1); /* the second found it all there */
    CHECK_CODE(stage(&setup, (struct way){.fs_type = "xfs"}), CODE_FAILED_PRECONDITION);
    CHECK_CODE(stage(&setup, (struct way){.fs_type = NULL}), CODE_ALREADY_EXISTS);
    CHECK_CODE(publish(&setup, way), CODE_OK);
    CHECK_CODE(publish(&setup, way), CODE_OK);
    CHECK_CODE(publish(&setup, (struct way){.fs_type = "ext4", .is_read_only = true}),
               CODE_ALREADY_EXISTS);
    const char *elsewhere = arena_print(&setup.pair.arena, "%s-2", setup.target);
    CHECK_CODE(publish_at(&setup, way, elsewhere), CODE_FAILED_PRECONDITION);
    CHECK(write_text(file_in(&setup, setup.target), "kept", 0));
    CHECK_CODE(unstage(&setup, "v"), CODE_FAILED_PRECONDITION);
    CHECK_CODE(pair_delete(&setup.pair, "v"), CODE_FAILED_PRECONDITION);
    CHECK_CODE(unpublish(&setup), CODE_OK);
    CHECK_CODE(unpublish(&setup), CODE_OK);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    CHECK(!is_mapped(&setup, "v"));
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);

    CHECK_CODE(stage(&setup, way), CODE_OK);
    CHECK_CODE(publish(&setup, (struct way){.fs_type = "ext4", .is_read_only = true}), CODE_OK);
    CHECK(has_text(file_in(&setup, setup.target), "kept", 0));
    CHECK(!write_text(file_in(&setup, setup.target), "lost", 0));
    CHECK_CODE(unpublish(&setup), CODE_OK);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    check_nothing_stays(&setup);
    setup_close(&setup);
}

static void
stats_are_told(void)
{
    struct setup setup;
    Csi__V1__NodeGetVolumeStatsRequest request = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;
    Csi__V1__NodeGetVolumeStatsResponse *reply;
    setup_open(&setup);
    make(&setup, "v", "ext4");
    CHECK_CODE(stage(&setup, (struct way){.fs_type = "ext4"}), CODE_OK);
    request.volume_id = "v";
    request.volume_path = setup.target;
    CHECK_CODE(pair_call(&setup.pair, "csi.v1.Node/NodeGetVolumeStats", &request.base, 0, &reply),
               CODE_NOT_FOUND);
    request.volume_path = setup.staging;
    succeed(pair_call(&setup.pair, "csi.v1.Node/NodeGetVolumeStats", &request.base, 0, &reply));
    CHECK_NUMBER(reply->n_usage, 2);
    CHECK(reply->usage[0]->total > 8 * MIB && reply->usage[0]->total <= SIZE);
    CHECK_NUMBER(reply->usage[1]->unit, CSI__V1__VOLUME_USAGE__UNIT__INODES);
    CHECK(reply->usage[1]->available > 0);
    csi__v1__node_get_volume_stats_response__free_unpacked(reply, NULL);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    check_nothing_stays(&setup);
    setup_close(&setup);
}

/* ---- raw devices ---- */

static void
a_raw_device_is_bound_where_it_is_published(void)
{
    struct setup setup;
    struct way way = {.fs_type = NULL};
    struct stat found;
    setup_open(&setup);
    make(&setup, "v", NULL);
    CHECK_CODE(stage(&setup, (struct way){.fs_type = "ext4"}), CODE_FAILED_PRECONDITION);
    CHECK_CODE(stage(&setup, way), CODE_OK);
    CHECK_CODE(publish(&setup, way), CODE_OK);
    CHECK(stat(setup.target, &found) == 0 && S_ISBLK(found.st_mode));
    CHECK(write_text(setup.target, "kept", 8 * MIB));
    CHECK_CODE(unpublish(&setup), CODE_OK);
    CHECK(stat(setup.target, &found) != 0);
    CHECK_CODE(publish(&setup, (struct way){.is_read_only = true}), CODE_OK);
    CHECK(has_text(setup.target, "kept", 8 * MIB));
    CHECK(!write_text(setup.target, "lost", 8 * MIB));
    CHECK_CODE(unpublish(&setup), CODE_OK);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    check_nothing_stays(&setup);
    setup_close(&setup);
}

/* What was written raw is nobody's half-made file system. */
static void
raw_data_is_never_formatted_over(void)
{
    struct setup setup;
    setup_open(&setup);
    make(&setup, "v", "ext4");
    CHECK_CODE(stage(&setup, (struct way){.fs_type = NULL}), CODE_OK);
    CHECK_CODE(publish(&setup, (struct way){.fs_type = NULL}), CODE_OK);
    CHECK(write_text(setup.target, "kept", 4096));
    CHECK_CODE(unpublish(&setup), CODE_OK);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    CHECK_CODE(stage(&setup, (struct way){.fs_type = "ext4"}), CODE_FAILED_PRECONDITION);
    CHECK(has_text(fake_file(&setup.pair.fake, "v", &setup.pair.arena), "kept", 4096));
    check_nothing_stays(&setup);
    setup_close(&setup);
}

/* ---- half states ---- */

static void
an_interrupted_format_is_done_again(void)
{
    struct setup setup;
    setup_open(&setup);
    make(&setup, "v", "ext4");
    /* Half of it, as a crash in the middle of mkfs leaves it. */
    CHECK(write_text(fake_file(&setup.pair.fake, "v", &setup.pair.arena), "half a file system",
                     2048));
    CHECK_CODE(stage(&setup, (struct way){.fs_type = "ext4"}), CODE_OK);
    CHECK(write_text(file_in(&setup, setup.staging), "kept", 0));
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    check_nothing_stays(&setup);
    setup_close(&setup);
}

static void
a_restart_at_any_point_leaks_nothing(void)
{
    struct setup setup;
    struct way way = {.fs_type = "ext4"};
    setup_open(&setup);
    make(&setup, "v", "ext4");
    /* Mapped, but nobody was told. */
    atomic_store(&setup.pair.fake.loses_answers, true);
    CHECK_CODE(stage(&setup, way), CODE_UNAVAILABLE);
    CHECK(is_mapped(&setup, "v"));
    pair_restart(&setup.pair);
    atomic_store(&setup.pair.fake.loses_answers, false);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    CHECK(!is_mapped(&setup, "v"));

    CHECK_CODE(stage(&setup, way), CODE_OK);
    pair_restart(&setup.pair);
    CHECK_CODE(publish(&setup, way), CODE_OK);
    pair_restart(&setup.pair);
    CHECK_CODE(unpublish(&setup), CODE_OK);
    /* Unmounted and unmapped, but nobody was told. */
    atomic_store(&setup.pair.fake.loses_answers, true);
    CHECK_CODE(unstage(&setup, "v"), CODE_UNAVAILABLE);
    pair_restart(&setup.pair);
    atomic_store(&setup.pair.fake.loses_answers, false);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    check_nothing_stays(&setup);
    setup_close(&setup);
}

static void
a_reboot_is_made_good(void)
{
    struct setup setup;
    struct way way = {.fs_type = "ext4"};
    setup_open(&setup);
    make(&setup, "v", "ext4");
    CHECK_CODE(stage(&setup, way), CODE_OK);
    CHECK_CODE(publish(&setup, way), CODE_OK);
    CHECK(write_text(file_in(&setup, setup.target), "kept", 0));
    /* The rows stay, the mounts do not. */
    CHECK(umount2(setup.target, 0) == 0 && umount2(setup.staging, 0) == 0);
    pair_restart(&setup.pair);
    CHECK_CODE(publish(&setup, way), CODE_FAILED_PRECONDITION);
    CHECK_CODE(stage(&setup, way), CODE_OK);
    CHECK_CODE(publish(&setup, way), CODE_OK);
    CHECK(has_text(file_in(&setup, setup.target), "kept", 0));
    CHECK(umount2(setup.target, 0) == 0 && umount2(setup.staging, 0) == 0);
    CHECK_CODE(unpublish(&setup), CODE_OK);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    check_nothing_stays(&setup);
    setup_close(&setup);
}

static void
a_stale_staging_with_another_group_is_replaced(void)
{
    struct setup setup;
    struct way way = {.fs_type = "ext4", .group = "4711"};
    struct way other = {.fs_type = "ext4", .group = "4712"};
    setup_open(&setup);
    make(&setup, "v", "ext4");
    CHECK_CODE(stage(&setup, way), CODE_OK);
    CHECK_CODE(publish(&setup, way), CODE_OK);
    CHECK_CODE(stage(&setup, other), CODE_ALREADY_EXISTS);
    CHECK_CODE(publish(&setup, other), CODE_ALREADY_EXISTS);
    CHECK(umount2(setup.target, 0) == 0 && umount2(setup.staging, 0) == 0);
    CHECK_CODE(stage(&setup, other), CODE_OK);
    CHECK_CODE(publish(&setup, other), CODE_OK);
    CHECK_CODE(unpublish(&setup), CODE_OK);
    CHECK_CODE(unstage(&setup, "v"), CODE_OK);
    check_nothing_stays(&setup);
    setup_close(&setup);
}

static void
a_device_that_does_not_come_is_unmapped_again(void)
{
    struct setup setup;
    setup_open(&setup);
    make(&setup, "v", "ext4");
    setup.pair.fake.has_devices = false;
    uint64_t start = timers_now();
    struct error *error = stage(&setup, (struct way){.fs_type = "ext4", .timeout_ms = 700});
    CHECK(error && strstr(error->message, "block/of-nobody"));
    CHECK_CODE(error, CODE_DEADLINE_EXCEEDED);
    CHECK(ms_since(start) < 1500);
    check_nothing_stays(&setup);
    setup_close(&setup);
}

/* The place of "v", whose target has begun anew and knows nothing of it, is given to "w". */
static void
a_place_that_was_given_away_is_nobody_elses(void)
{
    struct setup setup;
    struct way raw = {.fs_type = NULL};
    setup_open(&setup);
    make(&setup, "v", NULL);
    make(&setup, "w", NULL);
    CHECK_CODE(stage(&setup, raw), CODE_OK);
    CHECK_CODE(publish(&setup, raw), CODE_OK);
    CHECK_CODE(unpublish(&setup), CODE_OK);
    struct loop_device loop AUTO(loop_release) = LOOP_NONE;
    succeed(loop_find(fake_file(&setup.pair.fake, "v", &setup.pair.arena), &loop));
    setup.pair.fake.only_device =
        arena_print(&setup.pair.arena, "/devices/virtual/block%s", strrchr(loop.path, '/'));
    loop_release(&loop);
    fake_find(&setup.pair.fake, "v")->is_mapped = false;
    char of_v[sizeof setup.staging];
    memcpy(of_v, setup.staging, sizeof of_v);
    snprintf(setup.staging, sizeof setup.staging, "%s/staging-of-w", setup.pair.directory);
    CHECK_CODE(stage(&setup, (struct way){.id = "w"}), CODE_OK);
    CHECK_CODE(publish(&setup, (struct way){.id = "w"}), CODE_OK);
    memcpy(setup.staging, of_v, sizeof of_v);
    const char *elsewhere = arena_print(&setup.pair.arena, "%s-2", setup.target);
    CHECK_CODE(publish_at(&setup, raw, elsewhere), CODE_FAILED_PRECONDITION);
    umount2(elsewhere, MNT_DETACH);
    setup_close(&setup);
}

/* ---- somebody else's ---- */

static void
provision_by_hand(struct setup *setup, const char *name)
{
    struct fake_bdev *bdev = &setup->pair.fake.bdevs[MOST_BDEVS - 1];
    *bdev = (struct fake_bdev){.size = SIZE};
    snprintf(bdev->name, sizeof bdev->name, "%s", name);
    int fd = open(fake_file(&setup->pair.fake, name, &setup->pair.arena),
                  O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && ftruncate(fd, SIZE) == 0 && close(fd) == 0);
}

static void
a_bdev_that_somebody_else_made_is_used_as_it_is(void)
{
    struct setup setup;
    setup_open(&setup);
    CHECK_CODE(stage(&setup, (struct way){"theirs", "ext4"}), CODE_NOT_FOUND);
    provision_by_hand(&setup, "theirs");
    const char *file = fake_file(&setup.pair.fake, "theirs", &setup.pair.arena);
    CHECK(write_text(file, "their data", 4096));
    CHECK_CODE(stage(&setup, (struct way){"theirs", "ext4"}), CODE_FAILED_PRECONDITION);
    CHECK(has_text(file, "their data", 4096));
    CHECK(!is_mapped(&setup, "theirs"));
    CHECK(truncate(file, 0) == 0 && truncate(file, SIZE) == 0);
    CHECK_CODE(stage(&setup, (struct way){"theirs", ""}), CODE_OK);
    CHECK(write_text(file_in(&setup, setup.staging), "kept", 0));
    CHECK_CODE(unstage(&setup, "theirs"), CODE_OK);
    CHECK(!is_mapped(&setup, "theirs"));
    CHECK_CODE(stage(&setup, (struct way){"theirs", ""}), CODE_OK);
    CHECK(has_text(file_in(&setup, setup.staging), "kept", 0));
    CHECK_CODE(unstage(&setup, "theirs"), CODE_OK);
    setup_close(&setup);
}

int
main(void)
{
    if (getuid() != 0 || access("/dev/loop-control", W_OK) != 0) {
        fprintf(stderr, "skipped: loop devices and mounts need root\n");
        return 77;
    }
    files_outlive_unstaging();
    stats_are_told();
    a_raw_device_is_bound_where_it_is_published();
    raw_data_is_never_formatted_over();
    an_interrupted_format_is_done_again();
    a_restart_at_any_point_leaks_nothing();
    a_reboot_is_made_good();
    a_stale_staging_with_another_group_is_replaced();
    a_device_that_does_not_come_is_unmapped_again();
    a_place_that_was_given_away_is_nobody_elses();
    a_bdev_that_somebody_else_made_is_used_as_it_is();
    return check_report("driver_oim_node");
}
