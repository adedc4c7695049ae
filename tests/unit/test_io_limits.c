/* SPDX-License-Identifier: Apache-2.0 */
/* I/O limits: the pod's control group is found by its uid in either hierarchy, and gets the device's line. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "check.h"
#include "node/cgroup.h"
#include "volumes/io_limits.h"

#define UID "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
#define TARGET "/var/lib/kubelet/pods/" UID "/volumes/kubernetes.io~csi/pv/mount"

static char root[64];
static struct arena arena;

static void
run(const char *command, const char *path)
{
    char line[512];
    snprintf(line, sizeof line, "cd %s && %s %s", root, command, path);
    CHECK_NUMBER(system(line), 0);
}

static void
make_root(void)
{
    strcpy(root, "/tmp/skycap-cgroup-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
}

static void
remove_root(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", root);
    CHECK_NUMBER(system(line), 0);
}

static const char *
contents(const char *path)
{
    static char text[256];
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    int fd = open(whole, O_RDONLY);
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size < 0 ? 0 : size] = '\0';
    return text;
}

static enum code
apply(const char *path, const char *key, const char *value)
{
    struct text_map parameters = {0};
    if (key)
        text_map_set(&parameters, &arena, key, value);
    struct cgroup_device where = {root, path, makedev(7, 3)};
    struct error *error AUTO(error_cleanup) = cgroup_limit_io(&where, &parameters);
    return error ? error->code : CODE_OK;
}

static void
version_2_takes_one_line_for_a_device(void)
{
    static const char slice[] = "kubepods.slice/kubepods-burstable.slice/"
                                "kubepods-burstable-pod1b4e28ba_2fa1_11d2_883f_0016d3cca427.slice";
    char file[300];
    make_root();
    run("mkdir -p", slice);
    snprintf(file, sizeof file, "%s/io.max", slice);
    run("touch", file);
    CHECK_NUMBER(apply(TARGET, "write-bytes-per-second", "20Mi"), CODE_OK);
    CHECK_TEXT(contents(file), "7:3 rbps=max wbps=20971520 riops=max wiops=max");
    CHECK(!cgroup_must_renew_limits(root));
    remove_root();
}

static void
version_1_takes_a_line_in_each_file(void)
{
    static const char group[] = "blkio/kubepods/pod" UID;
    make_root();
    run("mkdir -p", group);
    run("touch", "blkio/kubepods/pod" UID "/tasks"
                 "; for f in read_bps read_iops write_bps write_iops; do "
                 "touch blkio/kubepods/pod" UID "/blkio.throttle.${f}_device; done");
    CHECK_NUMBER(apply(TARGET, "read-operations-per-second", "500"), CODE_OK);
    CHECK_TEXT(contents("blkio/kubepods/pod" UID "/blkio.throttle.read_iops_device"), "7:3 500");
    CHECK_TEXT(contents("blkio/kubepods/pod" UID "/blkio.throttle.write_bps_device"), "7:3 0");
    remove_root();
}

/* They do not inherit: a container that comes later has none before they are applied again. */
static void
version_1_limits_the_containers_too(void)
{
#define POD "blkio/kubepods/burstable/pod" UID
#define LIMIT "/blkio.throttle.write_bps_device"
    make_root();
    for (const char *const *group = (const char *[]){POD, POD "/one", POD "/one/init", NULL};
         *group; group++) {
        run("mkdir -p", *group);
        char files[256];
        snprintf(files, sizeof files, "%s/blkio.throttle.{read,write}_{bps,iops}_device'", *group);
        run("bash -c 'touch", files);
    }
    CHECK_NUMBER(apply(TARGET, "write-bytes-per-second", "1Mi"), CODE_OK);
    CHECK_TEXT(contents(POD LIMIT), "7:3 1048576");
    CHECK_TEXT(contents(POD "/one" LIMIT), "7:3 1048576");
    CHECK_TEXT(contents(POD "/one/init" LIMIT), "7:3 1048576");
    CHECK(cgroup_must_renew_limits(root));
    remove_root();
}

static void
a_pod_without_a_group_is_told_only_if_something_is_limited(void)
{
    make_root();
    CHECK_NUMBER(apply(TARGET, NULL, NULL), CODE_OK);
    CHECK_NUMBER(apply(TARGET, "read-operations-per-second", "500"), CODE_FAILED_PRECONDITION);
    CHECK_NUMBER(apply("/srv/target", "read-operations-per-second", "500"),
                 CODE_FAILED_PRECONDITION);
    remove_root();
}

static void
values_are_checked(void)
{
    make_root();
    CHECK_NUMBER(apply(TARGET, "read-bytes-per-second", "fast"), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(apply(TARGET, "read-bytes-per-second", "0"), CODE_INVALID_ARGUMENT);
    int64_t value = 1;
    struct error *error = io_limits_read("unlimited", &value);
    CHECK(!error && value == 0);
    remove_root();
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    version_2_takes_one_line_for_a_device();
    version_1_takes_a_line_in_each_file();
    version_1_limits_the_containers_too();
    a_pod_without_a_group_is_told_only_if_something_is_limited();
    values_are_checked();
    arena_clear(&arena);
    return check_report("test_io_limits");
}
