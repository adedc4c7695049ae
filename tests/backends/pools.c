/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the pool: a btrfs in a file. They open and close the back end themselves. */
#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>

#include "backends/loop.h"
#include "facts.h"

static char image_path[4096], pool_path[4096];

/* False: the directory is on btrfs, there is no pool. */
static bool
needs_pool(void)
{
    struct statfs status;
    snprintf(image_path, sizeof image_path, "%s/pool.img", scene.directory);
    snprintf(pool_path, sizeof pool_path, "%s/pool", scene.directory);
    if (statfs(scene.directory, &status) == 0 && status.f_type != BTRFS_SUPER_MAGIC)
        return true;
    scene.not_for_this = "the directory is on btrfs itself";
    return false;
}

static bool
is_mounted(void)
{
    struct stat parent, here;
    return stat(scene.directory, &parent) == 0 && stat(pool_path, &here) == 0 &&
           parent.st_dev != here.st_dev;
}

static void
sleep_us(unsigned us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000l};
    nanosleep(&time, NULL);
}

/* A process that opens the back end, makes a volume, and is killed at some moment before or after. */
static void
open_and_be_killed(unsigned after_us)
{
    pid_t child = fork();
    if (child == 0) {
        if (!scene_open())
            _exit(1);
        error_free(create(VOLUME("from-the-dead"), MIB));
        pause();
    }
    sleep_us(after_us);
    kill(child, SIGKILL);
    EXPECT(waitpid(child, NULL, 0) == child);
}

static void
forget_pool(void)
{
    char mark[4096];
    snprintf(mark, sizeof mark, "%s/backend", scene.directory);
    umount2(pool_path, MNT_DETACH);
    EXPECT(unlink(image_path) == 0 || errno == ENOENT);
    EXPECT(unlink(mark) == 0 || errno == ENOENT);
}

static unsigned
count_unfinished(void)
{
    unsigned count = 0;
    DIR *directory = opendir(scene.directory);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += !strncmp(entry->d_name, "pool.img.", 9);
    closedir(directory);
    return count;
}

/* How long it takes where nobody kills it. */
static unsigned
time_making_us(void)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!scene_open())
        return 0;
    SUCCEEDS(create(VOLUME("first"), MIB));
    clock_gettime(CLOCK_MONOTONIC, &end);
    SUCCEEDS(drop(VOLUME("first")));
    scene_close();
    forget_pool();
    return (unsigned)((end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000);
}

/* Half of them comes too late, or nearly: a process that begins takes its time, too. */
static void
a_kill_while_the_pool_is_made_is_mended_by_the_next_start(void)
{
    unsigned unfinished = 0;
    if (!needs_pool())
        return;
    unsigned step_us = time_making_us() / 12 + 1;
    for (unsigned i = 0; i < 24; i++) {
        open_and_be_killed(i * step_us + random_number(step_us));
        unfinished += !exists(image_path);
        if (!scene_open())
            return;
        SUCCEEDS(create(VOLUME("after"), MIB));
        EXPECT(put_text(path_of(VOLUME("after"), "file"), "alive"));
        SUCCEEDS(drop(VOLUME("from-the-dead")));
        SUCCEEDS(drop(VOLUME("after")));
        scene_close();
        EXPECT(count_unfinished() == 0);
        EXPECT(!is_mounted());
        EXPECT(has_no_device(image_path));
        forget_pool();
    }
    EXPECT(unfinished > 0);
    EXPECT(unfinished < 24);
}

static void
nothing_is_left_when_it_is_closed_and_all_is_back_when_it_is_opened(void)
{
    if (!needs_pool() || !scene_open())
        return;
    SUCCEEDS(create(VOLUME("lasting"), MIB));
    EXPECT(put_text(path_of(VOLUME("lasting"), "file"), "still here"));
    EXPECT(is_mounted());
    scene_close();
    EXPECT(!is_mounted());
    EXPECT(has_no_device(image_path));
    if (!scene_open())
        return;
    EXPECT(has_text(path_of(VOLUME("lasting"), "file"), "still here"));
    SUCCEEDS(drop(VOLUME("lasting")));
    scene_close();
}

/* In a process of its own; 0 if all went well. */
static int
open_and_close_often(unsigned number)
{
    struct statfs status;
    char handle[32];
    snprintf(handle, sizeof handle, "process-%u", number);
    for (unsigned i = 0; i < 10; i++) {
        if (!scene_open())
            return 1;
        bool is_good =
            EXPECT(statfs(pool_path, &status) == 0 && status.f_type == BTRFS_SUPER_MAGIC) &&
            SUCCEEDS(create(VOLUME(handle), MIB)) && SUCCEEDS(drop(VOLUME(handle)));
        scene_close();
        if (!is_good)
            return 1;
    }
    return 0;
}

static void
processes_that_open_and_close_it_at_once_do_not_harm_each_other(void)
{
    pid_t children[8];
    if (!needs_pool())
        return;
    forget_pool();
    for (unsigned i = 0; i < COUNT_OF(children); i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(open_and_close_often(i));
    }
    for (unsigned i = 0; i < COUNT_OF(children); i++) {
        int status = -1;
        EXPECT(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    EXPECT(!is_mounted() && has_no_device(image_path));
    EXPECT(rmdir(pool_path) == 0);
}

static void
a_pool_in_use_stays_and_is_found(void)
{
    struct loop_device before = LOOP_NONE, after = LOOP_NONE;
    if (!needs_pool() || !scene_open())
        return;
    SUCCEEDS(create(VOLUME("used"), MIB));
    EXPECT(put_text(path_of(VOLUME("used"), "file"), "x"));
    FILE *user = fopen(path_of(VOLUME("used"), "file"), "r");
    EXPECT(user);
    SUCCEEDS(loop_find(image_path, &before));
    scene_close();
    EXPECT(is_mounted());
    if (!scene_open())
        return;
    SUCCEEDS(loop_find(image_path, &after));
    EXPECT(!strcmp(before.path, after.path));
    loop_release(&before);
    loop_release(&after);
    fclose(user);
    SUCCEEDS(drop(VOLUME("used")));
    scene_close();
    EXPECT(!is_mounted());
}

/* A volume that is mounted elsewhere keeps the file system alive, but not the mount of the pool. */
static void
a_pool_with_a_volume_that_is_mounted_stays(void)
{
    char target[4096];
    if (!needs_pool() || !scene_open())
        return;
    snprintf(target, sizeof target, "%s/target", scene.directory);
    SUCCEEDS(create(VOLUME("bound"), MIB));
    EXPECT(mkdir(target, 0700) == 0);
    EXPECT(mount(path_of(VOLUME("bound"), NULL), target, NULL, MS_BIND, NULL) == 0);
    scene_close();
    EXPECT(is_mounted());
    EXPECT(umount2(target, 0) == 0);
    EXPECT(rmdir(target) == 0);
    if (!scene_open())
        return;
    SUCCEEDS(drop(VOLUME("bound")));
    scene_close();
    EXPECT(!is_mounted() && has_no_device(image_path));
}

static void
a_pool_that_is_missing_is_lost(void)
{
    char aside[4200];
    struct backend_options options = {.directory = scene.directory, .log = &scene.log};
    struct backend *backend = NULL;
    if (!needs_pool())
        return;
    snprintf(aside, sizeof aside, "%s.aside", image_path);
    EXPECT(rename(image_path, aside) == 0);
    FAILS(CODE_DATA_LOSS, backend_open(scene.name, &options, &backend));
    EXPECT(!exists(image_path));
    EXPECT(rename(aside, image_path) == 0);
}

static void
a_pool_that_somebody_unmounts_comes_back(void)
{
    if (!needs_pool() || !scene_open())
        return;
    SUCCEEDS(create(VOLUME("before"), MIB));
    EXPECT(umount2(pool_path, MNT_DETACH) == 0);
    EXPECT(!is_mounted());
    SUCCEEDS(create(VOLUME("after"), MIB));
    EXPECT(is_mounted());
    EXPECT(put_text(path_of(VOLUME("before"), "file"), "x"));
    EXPECT(exists(path_of(VOLUME("after"), NULL)));
    SUCCEEDS(drop(VOLUME("before")));
    SUCCEEDS(drop(VOLUME("after")));
    scene_close();
    EXPECT(!is_mounted() && has_no_device(image_path));
}

static void
a_pool_grows_when_it_is_opened(void)
{
    struct backend_capacity before, after;
    struct stat status;
    if (!needs_pool() || !scene_open())
        return;
    SUCCEEDS(backend_capacity(scene.backend, &before));
    EXPECT(stat(image_path, &status) == 0);
    uint64_t size = (uint64_t)status.st_size;
    EXPECT((uint64_t)status.st_blocks * 512 < size / 2);
    scene_close();
    scene.pool_bytes = size + 512 * MIB;
    if (!scene_open())
        return;
    SUCCEEDS(backend_capacity(scene.backend, &after));
    EXPECT(after.total_bytes == before.total_bytes + 512 * MIB);
    scene_close();
}

static void
something_else_in_the_place_of_the_pool_is_refused(void)
{
    struct backend_options options = {.directory = scene.directory, .log = &scene.log};
    struct backend *backend = NULL;
    if (!needs_pool())
        return;
    EXPECT(mount("none", pool_path, "tmpfs", 0, NULL) == 0);
    FAILS(CODE_FAILED_PRECONDITION, backend_open(scene.name, &options, &backend));
    EXPECT(umount(pool_path) == 0);
}

/* When it does is the kernel's business: after minutes. */
static void
deleted_data_will_go_back_to_the_disk(void)
{
    bool found = false;
    char line[4096];
    if (!needs_pool() || !scene_open())
        return;
    FILE *mounts = fopen("/proc/self/mounts", "r");
    while (mounts && fgets(line, sizeof line, mounts))
        found |= strstr(line, pool_path) && strstr(line, "discard=async");
    fclose(mounts);
    EXPECT(found);
    scene_close();
}

const struct fact facts_of_pools[] = {
    {"a kill while the pool is made is mended by the next start",
     a_kill_while_the_pool_is_made_is_mended_by_the_next_start},
    {"nothing is left when it is closed and all is back when it is opened",
     nothing_is_left_when_it_is_closed_and_all_is_back_when_it_is_opened},
    {"processes that open and close it at once do not harm each other",
     processes_that_open_and_close_it_at_once_do_not_harm_each_other},
    {"a pool in use stays and is found", a_pool_in_use_stays_and_is_found},
    {"a pool with a volume that is mounted stays", a_pool_with_a_volume_that_is_mounted_stays},
    {"a pool that is missing is lost", a_pool_that_is_missing_is_lost},
    {"a pool that somebody unmounts comes back", a_pool_that_somebody_unmounts_comes_back},
    {"a pool grows when it is opened", a_pool_grows_when_it_is_opened},
    {"something else in the place of the pool is refused",
     something_else_in_the_place_of_the_pool_is_refused},
    {"deleted data will go back to the disk", deleted_data_will_go_back_to_the_disk},
    {NULL, NULL},
};
