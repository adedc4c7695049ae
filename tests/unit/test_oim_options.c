/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of driver `oim`, and how another driver's volumes are described to OIM. */
#include "drivers/oim_options.h"

#include "driver_ends.h"

static struct arena arena;
static struct oim_options options;

/* The message, "" for none. */
static const char *
read_settings(const struct setting *settings)
{
    struct error *error AUTO(error_cleanup) = oim_options_read(settings, &arena, &options);
    CHECK(!error || error->code == CODE_INVALID_ARGUMENT);
    return error ? arena_string(&arena, error->message) : "";
}

#define READ(...) read_settings(make_settings(&arena, __VA_ARGS__, NULL))

static void
one_of_two_targets(void)
{
    CHECK_TEXT(READ("endpoint", "unix:///run/oim.sock"), "");
    CHECK_TEXT(options.target, "unix:///run/oim.sock");
    CHECK(!options.is_registry && !options.controller && !options.emulation);
    CHECK_TEXT(options.sysfs, "/sys");
    CHECK_NUMBER(options.probe_interval_ms, 10000);
    CHECK_TEXT(READ("registry", "unix:///run/registry.sock", "controller", "host-0"), "");
    CHECK(options.is_registry);
    CHECK_TEXT(options.controller, "host-0");
    CHECK_TEXT(READ("controller", "a"),
               "line 1: registry: it is missing; or say `endpoint:`, a controller's own");
    CHECK_TEXT(READ("registry", "unix:/a", "endpoint", "unix:/b"),
               "line 2: registry: there is `endpoint:` too; use only one");
    CHECK_TEXT(READ("endpoint", "unix:/a", "controller", ""),
               "line 2: controller: it is empty; leave it out for the node's id");
    CHECK_TEXT(READ("endpoint", "unix:/a", "sysfs", "sys"),
               "line 2: sysfs: this is not an absolute path");
    CHECK(strstr(READ("endpoint", "unix:/a", "spdk", "x"), "spdk"));
}

static void
the_network_needs_tls(void)
{
    const struct setting *files =
        make_settings(&arena, "ca", "/ca", "certificate", "/crt", "key", "/key", NULL);
    const struct setting *tcp = make_settings(&arena, "registry", "dns:///registry:8999", NULL);
    CHECK_TEXT(read_settings(tcp),
               "line 2: registry: this is a network address: set `tls:` or `insecure: true`");
    CHECK_TEXT(read_settings(add_setting(&arena, tcp, "tls", files)), "");
    CHECK(options.tls.is_given);
    CHECK_TEXT(options.tls.name, NULL);
    CHECK_TEXT(READ("registry", "registry:8999", "insecure", "true"), "");
    CHECK(!options.tls.is_given);
    const struct setting *both =
        make_settings(&arena, "registry", "registry:8999", "insecure", "true", NULL);
    CHECK_TEXT(read_settings(add_setting(&arena, both, "tls", files)),
               "line 2: insecure: there is `tls:` too; use only one");
    CHECK_TEXT(READ("endpoint", "unix:/a", "insecure", "true"),
               "line 2: insecure: this needs an endpoint like HOST:PORT");
}

#define SERVER(...) oim_options_server(make_settings(&arena, __VA_ARGS__, NULL), "host-1", &arena)

/* What tells whether two connections lead to one controller. */
static void
servers(void)
{
    CHECK_TEXT(SERVER("endpoint", "unix:///none/./oim.sock"), "unix:/none/./oim.sock");
    CHECK_TEXT(SERVER("endpoint", "unix:///none/oim.sock", "controller", "host-2"),
               "unix:/none/oim.sock");
    const char *by_default = SERVER("registry", "unix:///none/registry.sock");
    CHECK_TEXT(by_default, "unix:/none/registry.sock#host-1");
    CHECK_TEXT(SERVER("registry", "/none/registry.sock", "controller", "host-1"), by_default);
    CHECK_TEXT(SERVER("registry", "/none/registry.sock", "controller", "host-2"),
               "unix:/none/registry.sock#host-2");
    CHECK_TEXT(SERVER("registry", "dns:///registry:8999", "insecure", "true"),
               SERVER("registry", "registry:8999", "insecure", "true"));
    CHECK(!SERVER("endpoint", "unix:///none/oim.sock", "emulate", "ceph-csi"));
    CHECK(!SERVER("controller", "a"));
}

static void
emulations(void)
{
    const struct setting *clusters = make_settings(&arena, "c1", "10.0.0.1:6789", NULL);
    const struct setting *unix_only = make_settings(&arena, "endpoint", "unix:/a", NULL);
    const struct setting *ceph =
        make_settings(&arena, "endpoint", "unix:/a", "emulate", "ceph-csi", NULL);
    CHECK_TEXT(read_settings(add_setting(&arena, ceph, "clusters", clusters)), "");
    CHECK(options.emulation == &oim_emulations[0]);
    CHECK_TEXT(text_map_find(&options.clusters, "c1"), "10.0.0.1:6789");
    CHECK_TEXT(READ("endpoint", "unix:/a", "emulate", "nfs"),
               "line 2: emulate: \"nfs\" is none of: ceph-csi");
    CHECK_TEXT(read_settings(add_setting(&arena, unix_only, "clusters", clusters)),
               "line 3: clusters: this is for `emulate: ceph-csi`");
}

/* ---- ceph-csi ---- */

static struct text_map
map_of(const char *const *pairs)
{
    struct text_map map = {0};
    for (; *pairs; pairs += 2)
        text_map_set(&map, &arena, pairs[0], pairs[1]);
    return map;
}

#define MAP(...) map_of((const char *const[]){__VA_ARGS__, NULL})

/* "user secret monitors pool image", or what is wrong. */
static const char *
describe(const struct oim_emulated_volume *volume)
{
    Oim__V0__MapVolumeRequest request = OIM__V0__MAP_VOLUME_REQUEST__INIT;
    struct error *error AUTO(error_cleanup) =
        oim_emulations[0].set_parameters(volume, &arena, &request);
    if (error) {
        CHECK(!strstr(error->message, "hidden"));
        return arena_string(&arena, error->message);
    }
    CHECK_NUMBER(request.params_case, OIM__V0__MAP_VOLUME_REQUEST__PARAMS_CEPH);
    const Oim__V0__CephParams *ceph = request.ceph;
    return arena_print(&arena, "%s %s %s %s %s", ceph->user_id, ceph->secret, ceph->monitors,
                       ceph->pool, ceph->image);
}

#define UUID "6de2a2a1-0000-11ee-8000-0242ac110002"

static void
ceph_volumes_of_today(void)
{
    struct text_map clusters = MAP("c1", "m1:6789,m2:6789");
    struct text_map secrets = MAP("userID", "kube", "userKey", "hidden");
    struct oim_emulated_volume volume = {
        .id = "0001-0002-c1-0000000000000001-" UUID,
        .staging_path = "/var/lib/kubelet/plugins/x/globalmount",
        .context = MAP("clusterID", "c1", "pool", "rbd", "imageName", "image-1"),
        .secrets = secrets,
        .clusters = &clusters,
    };
    CHECK_TEXT(describe(&volume), "kube hidden m1:6789,m2:6789 rbd image-1");
    volume.context = MAP("clusterID", "c1", "pool", "rbd");
    CHECK_TEXT(describe(&volume), "kube hidden m1:6789,m2:6789 rbd csi-vol-" UUID);
    volume.context = MAP("clusterID", "c1", "pool", "rbd", "volumeNamePrefix", "mine-");
    CHECK_TEXT(describe(&volume), "kube hidden m1:6789,m2:6789 rbd mine-" UUID);
    volume.id = "by-hand";
    CHECK(strstr(describe(&volume), "imageName"));
    volume.context = MAP("clusterID", "c1", "pool", "rbd", "staticVolume", "true");
    CHECK_TEXT(describe(&volume), "kube hidden m1:6789,m2:6789 rbd by-hand");
    volume.context = MAP("clusterID", "c2", "pool", "rbd", "imageName", "i");
    CHECK(strstr(describe(&volume), "\"c2\"") && strstr(describe(&volume), "clusters:"));
    volume.context = MAP("clusterID", "c1", "imageName", "i");
    CHECK_TEXT(describe(&volume), "volume_context has no \"pool\"");
    volume.context = MAP("clusterID", "c1", "pool", "rbd", "imageName", "i");
    volume.secrets = MAP("userID", "kube");
    CHECK_TEXT(describe(&volume), "secrets has no \"userKey\"");
}

static void
ceph_volumes_of_old(void)
{
    struct text_map clusters = {0};
    struct oim_emulated_volume volume = {
        .id = "csi-rbd-1",
        .staging_path = "/var/lib/kubelet/plugins/kubernetes.io/csi/pv/pvc-7/globalmount",
        .context = MAP("pool", "rbd", "monitors", "m1:6789", "adminid", "admin", "userid", "kube"),
        .secrets = MAP("admin", "hidden-1", "kube", "hidden-2"),
        .clusters = &clusters,
    };
    CHECK_TEXT(describe(&volume), "kube hidden-2 m1:6789 rbd pvc-7");
    volume.context = MAP("pool", "rbd", "monValueFromSecret", "monitors");
    volume.secrets = MAP("admin", "hidden-1", "monitors", "m3:6789");
    CHECK_TEXT(describe(&volume), "admin hidden-1 m3:6789 rbd pvc-7");
    volume.secrets = MAP("admin", "hidden-1");
    CHECK_TEXT(describe(&volume), "secrets has no \"monitors\"");
    volume.context = MAP("pool", "rbd", "monitors", "m1:6789", "userid", "nobody");
    CHECK_TEXT(describe(&volume), "secrets has no \"nobody\"");
    volume.context = MAP("pool", "rbd", "monitors", "m1:6789");
    volume.staging_path = "/somewhere/else";
    CHECK(strstr(describe(&volume), "globalmount"));
    volume.staging_path = "/globalmount";
    CHECK(strstr(describe(&volume), "image"));
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    one_of_two_targets();
    the_network_needs_tls();
    servers();
    emulations();
    ceph_volumes_of_today();
    ceph_volumes_of_old();
    arena_clear(&arena);
    return check_report("oim_options");
}
