/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller refuses before it asks the accelerator, and what it says when that does not answer. The accelerator is an SPDK target that is not there: all
 * that gets past the checks is UNAVAILABLE.
 */
#include "oim/controller.h"

#include "backends/loop.h"
#include "oim/accelerator.h"
#include "proto/oim.rpc.h"
#include "rpc_ends.h"

struct oim_ends {
    struct ends ends;
    struct oim_controller *controller;
};

static struct oim_controller_options
options_of(struct oim_ends *oim)
{
    return (struct oim_controller_options){.id = "host-0",
                                           .accelerator = "spdk",
                                           .spdk_socket = "/tmp/skycap-no-spdk-is-here",
                                           .vhost_device = "00:15.0",
                                           .runtime = oim->ends.runtime,
                                           .log = &oim->ends.log};
}

static void
oim_open(struct oim_ends *oim)
{
    *oim = (struct oim_ends){0};
    ends_choose_address(oim->ends.address);
    ends_open_runtime(&oim->ends, (struct runtime_options){0});
    struct oim_controller_options options = options_of(oim);
    succeed(oim_controller_open(&options, &oim->controller));
    oim->ends.server = server_new(oim->ends.runtime, &(struct server_options){0});
    oim_controller_add(oim->controller, oim->ends.server);
    succeed(server_listen(oim->ends.server, oim->ends.address, NULL));
    oim_controller_begin(oim->controller);
    succeed(channel_open(oim->ends.runtime, oim->ends.address, &(struct channel_options){0},
                         &oim->ends.channel));
}

static void
oim_close(struct oim_ends *oim)
{
    oim_controller_stop(oim->controller);
    channel_close(oim->ends.channel);
    server_free(oim->ends.server);
    oim_controller_close(oim->controller);
    runtime_close(oim->ends.runtime);
}

static enum code
ask(struct oim_ends *oim, const struct method *method, const ProtobufCMessage *request)
{
    struct arena arena AUTO(arena_clear);
    ProtobufCMessage *reply;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return take_code(channel_call(oim->ends.channel, method, request, NULL, &arena, &reply));
}

static enum code
provision(struct oim_ends *oim, const char *name, int64_t size)
{
    Oim__V0__ProvisionMallocBDevRequest request = OIM__V0__PROVISION_MALLOC_BDEV_REQUEST__INIT;
    request.bdev_name = (char *)name;
    request.size = size;
    return ask(oim, OIM_V0_CONTROLLER_PROVISION_MALLOC_BDEV, &request.base);
}

static enum code
check_bdev(struct oim_ends *oim, const char *name)
{
    Oim__V0__CheckMallocBDevRequest request = OIM__V0__CHECK_MALLOC_BDEV_REQUEST__INIT;
    request.bdev_name = (char *)name;
    return ask(oim, OIM_V0_CONTROLLER_CHECK_MALLOC_BDEV, &request.base);
}

static enum code
unmap(struct oim_ends *oim, const char *name)
{
    Oim__V0__UnmapVolumeRequest request = OIM__V0__UNMAP_VOLUME_REQUEST__INIT;
    request.volume_id = (char *)name;
    return ask(oim, OIM_V0_CONTROLLER_UNMAP_VOLUME, &request.base);
}

static enum code
map(struct oim_ends *oim, const char *name, Oim__V0__CephParams *ceph)
{
    Oim__V0__MapVolumeRequest request = OIM__V0__MAP_VOLUME_REQUEST__INIT;
    Oim__V0__MallocParams malloc_params = OIM__V0__MALLOC_PARAMS__INIT;
    request.volume_id = (char *)name;
    request.params_case = ceph ? OIM__V0__MAP_VOLUME_REQUEST__PARAMS_CEPH
                               : OIM__V0__MAP_VOLUME_REQUEST__PARAMS_MALLOC;
    if (ceph)
        request.ceph = ceph;
    else
        request.malloc = &malloc_params;
    return ask(oim, OIM_V0_CONTROLLER_MAP_VOLUME, &request.base);
}

/* All four treat names alike. */
static void
check_name(struct oim_ends *oim, const char *name, enum code wanted)
{
    CHECK_NUMBER(provision(oim, name, 512), wanted);
    CHECK_NUMBER(check_bdev(oim, name), wanted);
    CHECK_NUMBER(map(oim, name, NULL), wanted);
    CHECK_NUMBER(unmap(oim, name), wanted);
}

static void
test_names(struct oim_ends *oim)
{
    char name[ACCELERATOR_NAME_MAX + 2];
    memset(name, 'n', sizeof name);
    name[ACCELERATOR_NAME_MAX + 1] = '\0';
    check_name(oim, name, CODE_INVALID_ARGUMENT);
    name[ACCELERATOR_NAME_MAX] = '\0';
    check_name(oim, name, CODE_UNAVAILABLE);
    check_name(oim, "", CODE_INVALID_ARGUMENT);
    check_name(oim, "a\nb", CODE_INVALID_ARGUMENT);
    check_name(oim, "a\x7f", CODE_INVALID_ARGUMENT);
    check_name(oim, "a\xc2\x85", CODE_INVALID_ARGUMENT);
    check_name(oim, "../../etc/passwd", CODE_UNAVAILABLE);
    check_name(oim, "gr\xc3\xbc\xc3\x9f", CODE_UNAVAILABLE);
}

static void
test_sizes(struct oim_ends *oim)
{
    CHECK_NUMBER(provision(oim, "v", -512), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(provision(oim, "v", INT64_MIN), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(provision(oim, "v", 1), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(provision(oim, "v", 513), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(provision(oim, "v", 0), CODE_UNAVAILABLE);
    CHECK_NUMBER(provision(oim, "v", 1024), CODE_UNAVAILABLE);
}

static void
test_params(struct oim_ends *oim)
{
    Oim__V0__MapVolumeRequest none = OIM__V0__MAP_VOLUME_REQUEST__INIT;
    Oim__V0__CephParams ceph = OIM__V0__CEPH_PARAMS__INIT;
    none.volume_id = "v";
    CHECK_NUMBER(ask(oim, OIM_V0_CONTROLLER_MAP_VOLUME, &none.base), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(map(oim, "v", &ceph), CODE_INVALID_ARGUMENT);
    ceph.pool = "rbd";
    CHECK_NUMBER(map(oim, "v", &ceph), CODE_INVALID_ARGUMENT);
    ceph.image = "image";
    CHECK_NUMBER(map(oim, "v", &ceph), CODE_UNAVAILABLE);
}

/* ---- opening ---- */

static void
check_refused(struct oim_controller_options options, const char *said)
{
    struct oim_controller *controller = NULL;
    struct error *error AUTO(error_cleanup) = oim_controller_open(&options, &controller);
    CHECK(error && !controller && error->code == CODE_INVALID_ARGUMENT);
    CHECK(error && strstr(error->message, said));
}

static void
test_options(struct oim_ends *oim)
{
    const struct oim_controller_options good = options_of(oim);
    struct oim_controller_options bad = good;
    bad.accelerator = "warp";
    check_refused(bad, "kernel, spdk");
    bad = good;
    bad.vhost_device = NULL;
    check_refused(bad, "--vhost-device");
    bad.vhost_device = "nonsense";
    check_refused(bad, "nonsense");
    bad = good;
    bad.id = "";
    check_refused(bad, "id");
    bad = good;
    bad.registry = "localhost:1";
    check_refused(bad, "address");
}

/* Of the numbers that the kernel has, those from which no longer one can be made by another digit. */
static void
test_own_names(void)
{
    CHECK(loop_has_own_name("/dev/loop1048575") || !loop_has_own_name("/dev/loop500000"));
    CHECK(!loop_has_own_name("/dev/loop1048576"));
    CHECK(!loop_has_own_name("/dev/loop7"));
    CHECK(!loop_has_own_name("/dev/loop"));
    CHECK(!loop_has_own_name("/dev/loop500000p1"));
    CHECK(!loop_has_own_name("/dev/sda"));
}

int
main(void)
{
    struct oim_ends oim;
    oim_open(&oim);
    test_names(&oim);
    test_sizes(&oim);
    test_params(&oim);
    test_options(&oim);
    oim_close(&oim);
    test_own_names();
    return check_report("oim_controller");
}
