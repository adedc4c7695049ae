/* SPDX-License-Identifier: Apache-2.0 */
/* Driver `oim`, its controller side: what is provisioned, what is remembered, and what becomes of it when answers are lost or nobody answers. */
#include "message/message_map.h"
#include "oim_ends.h"

#define MIB (INT64_C(1) << 20)

/* Takes what is asked for; the id. */
static const char *
make(struct oim_pair *pair, const struct wanted *wanted, int64_t expected_size)
{
    const char *id = "";
    int64_t size = 0;
    CHECK_CODE(pair_create(pair, wanted, &id, &size), CODE_OK);
    CHECK_NUMBER(size, expected_size);
    return id;
}

static enum code
refusal(struct oim_pair *pair, const struct wanted *wanted)
{
    const char *id;
    int64_t size;
    return take_code(pair_create(pair, wanted, &id, &size));
}

/* "name name" of all volumes, page by page. */
static const char *
list(struct oim_pair *pair, int32_t most)
{
    Csi__V1__ListVolumesRequest request = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
    Csi__V1__ListVolumesResponse *reply;
    const char *names = "";
    request.max_entries = most;
    do {
        succeed(pair_call(pair, "csi.v1.Controller/ListVolumes", &request.base, 0, &reply));
        CHECK(!most || reply->n_entries <= (size_t)most);
        for (size_t i = 0; i < reply->n_entries; i++)
            names = arena_print(&pair->arena, "%s%s%s", names, names[0] ? " " : "",
                                reply->entries[i]->volume->volume_id);
        request.starting_token = arena_string(&pair->arena, reply->next_token);
        csi__v1__list_volumes_response__free_unpacked(reply, NULL);
    } while (request.starting_token[0]);
    return names;
}

static enum code
validate(struct oim_pair *pair, const char *id, const char *fs_type, bool *is_confirmed)
{
    Csi__V1__ValidateVolumeCapabilitiesRequest request =
        CSI__V1__VALIDATE_VOLUME_CAPABILITIES_REQUEST__INIT;
    Csi__V1__ValidateVolumeCapabilitiesResponse *reply;
    Csi__V1__VolumeCapability *capability =
        capability_of(&pair->arena, fs_type, CAPABILITY_MODE(SINGLE_NODE_WRITER));
    request.volume_id = (char *)id;
    request.volume_capabilities = &capability;
    request.n_volume_capabilities = 1;
    struct error *error =
        pair_call(pair, "csi.v1.Controller/ValidateVolumeCapabilities", &request.base, 0, &reply);
    if (!error) {
        *is_confirmed = reply->confirmed != NULL;
        csi__v1__validate_volume_capabilities_response__free_unpacked(reply, NULL);
    }
    return take_code(error);
}

/* ---- sizes and names ---- */

static void
sizes_are_whole_sectors_within_the_limits(void)
{
    struct oim_pair pair;
    pair_open(&pair);
    make(&pair, &(struct wanted){"raw"}, MIB);
    make(&pair, &(struct wanted){"odd", .required = 1000}, 1024);
    make(&pair, &(struct wanted){"small", .limit = 5000}, 4608);
    make(&pair, &(struct wanted){"files", ""}, 2 * MIB); /* as ext4 needs it */
    make(&pair, &(struct wanted){"xfs", "xfs"}, 300 * MIB);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"a", .required = 1000, .limit = 1001}),
                 CODE_OUT_OF_RANGE);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"a", .limit = 100}), CODE_OUT_OF_RANGE);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"a", "xfs", .limit = 200 * MIB}),
                 CODE_OUT_OF_RANGE);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"a", .required = INT64_MAX}), CODE_OUT_OF_RANGE);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"a", "ntfs"}), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(
        refusal(&pair, &(struct wanted){"a", .mode = CAPABILITY_MODE(MULTI_NODE_MULTI_WRITER)}),
        CODE_INVALID_ARGUMENT);
    CHECK_TEXT(list(&pair, 0), "files odd raw small xfs");
    CHECK_TEXT(list(&pair, 2), "files odd raw small xfs");
    pair_close(&pair);
}

static void
a_name_has_one_volume(void)
{
    struct oim_pair pair;
    pair_open(&pair);
    CHECK_TEXT(make(&pair, &(struct wanted){"pvc-1", "", MIB * 4}, MIB * 4), "pvc-1");
    CHECK_TEXT(make(&pair, &(struct wanted){"pvc-1", "", MIB * 4}, MIB * 4), "pvc-1");
    CHECK_TEXT(make(&pair, &(struct wanted){"pvc-1", "ext4", MIB}, MIB * 4), "pvc-1");
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"pvc-1", "", MIB * 8}), CODE_ALREADY_EXISTS);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"pvc-1", "", MIB, MIB * 2}), CODE_ALREADY_EXISTS);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"pvc-1", "btrfs"}), CODE_ALREADY_EXISTS);
    pair_close(&pair);
}

static void
odd_names_have_handles_of_their_own(void)
{
    struct oim_pair pair;
    pair_open(&pair);
    const char *slash = make(&pair, &(struct wanted){"a/b"}, MIB);
    const char *space = make(&pair, &(struct wanted){"a b"}, MIB);
    CHECK(strncmp(slash, "h-", 2) == 0 && strlen(slash) == 34);
    CHECK(strcmp(slash, space) != 0);
    CHECK_TEXT(make(&pair, &(struct wanted){"a/b"}, MIB), slash);
    /* A name that looks like somebody's handle is not taken for it. */
    const char *third = make(&pair, &(struct wanted){slash}, MIB);
    CHECK(strcmp(third, slash) != 0);
    CHECK_CODE(pair_delete(&pair, third), CODE_OK);
    CHECK(fake_find(&pair.fake, slash) && !fake_find(&pair.fake, third));
    pair_close(&pair);
}

/* ---- lost answers and lost bdevs ---- */

static void
a_lost_answer_leaves_nothing_twice(void)
{
    struct oim_pair pair;
    pair_open(&pair);
    atomic_store(&pair.fake.loses_answers, true);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"v", .required = MIB}), CODE_UNAVAILABLE);
    CHECK(fake_find(&pair.fake, "v") != NULL);
    CHECK_TEXT(list(&pair, 0), "");
    pair_restart(&pair);
    atomic_store(&pair.fake.loses_answers, false);
    CHECK_TEXT(make(&pair, &(struct wanted){"v", .required = MIB}, MIB), "v");
    CHECK_TEXT(list(&pair, 0), "v");

    atomic_store(&pair.fake.loses_answers, true);
    CHECK_CODE(pair_delete(&pair, "v"), CODE_UNAVAILABLE);
    CHECK(!fake_find(&pair.fake, "v"));
    CHECK_TEXT(list(&pair, 0), "v"); /* until it is certain */
    pair_restart(&pair);
    atomic_store(&pair.fake.loses_answers, false);
    CHECK_CODE(pair_delete(&pair, "v"), CODE_OK);
    CHECK_TEXT(list(&pair, 0), "");
    CHECK_CODE(pair_delete(&pair, "v"), CODE_OK);
    CHECK_CODE(pair_delete(&pair, "no handle/at all"), CODE_OK);
    pair_close(&pair);
}

static void
a_volume_is_what_the_controller_has(void)
{
    struct oim_pair pair;
    bool is_confirmed = false;
    pair_open(&pair);
    make(&pair, &(struct wanted){"v", "ext4"}, 2 * MIB);
    CHECK_NUMBER(validate(&pair, "v", "ext4", &is_confirmed), CODE_OK);
    CHECK(is_confirmed);
    CHECK_NUMBER(validate(&pair, "v", "xfs", &is_confirmed), CODE_OK);
    CHECK(!is_confirmed);
    CHECK_NUMBER(validate(&pair, "w", "ext4", &is_confirmed), CODE_NOT_FOUND);
    fake_find(&pair.fake, "v")->size = 0; /* the accelerator has forgotten it */
    CHECK_NUMBER(validate(&pair, "v", "ext4", &is_confirmed), CODE_NOT_FOUND);
    make(&pair, &(struct wanted){"v", "ext4"}, 2 * MIB);
    CHECK_NUMBER(validate(&pair, "v", "ext4", &is_confirmed), CODE_OK);
    fake_find(&pair.fake, "v")->is_mapped = true;
    CHECK_CODE(pair_delete(&pair, "v"), CODE_FAILED_PRECONDITION);
    CHECK_TEXT(list(&pair, 0), "v");
    fake_find(&pair.fake, "v")->is_mapped = false;
    CHECK_CODE(pair_delete(&pair, "v"), CODE_OK);
    pair_close(&pair);
}

/* ---- nobody answers ---- */

static void
facts_tell_whether_the_controller_answers(void)
{
    struct oim_pair pair;
    pair_open(&pair);
    struct driver_facts *facts = driver_facts(pair.driver);
    CHECK(facts->is_known);
    CHECK_TEXT(facts->node_id, "here");
    CHECK_TEXT(text_map_find(&facts->topology, "topology.skycap.dev/node"), "here");
    driver_facts_release(facts);
    server_free(pair.fake.ends.server);
    CHECK(wait_for_facts(pair.driver, false, NULL));
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"v"}), CODE_UNAVAILABLE);
    fake_serve(&pair.fake);
    CHECK(wait_for_facts(pair.driver, true, NULL));
    make(&pair, &(struct wanted){"v"}, MIB);
    pair_close(&pair);
}

struct hung_call {
    struct oim_pair *pair;
    enum code code;
};

static void *
run_hung_call(void *argument)
{
    struct hung_call *hung = argument;
    hung->code = refusal(hung->pair, &(struct wanted){"v", .timeout_ms = 500});
    return NULL;
}

static void
a_controller_that_hangs_costs_bounded_time_and_calls(void)
{
    struct oim_pair pair;
    pthread_t thread;
    pair_prepare(&pair);
    pair_open_driver(&pair, pair_settings(&pair), 1);
    CHECK(wait_for_facts(pair.driver, true, NULL));
    atomic_store(&pair.fake.hangs, true);
    uint64_t start = timers_now();
    struct hung_call hung = {&pair, CODE_OK};
    pthread_create(&thread, NULL, run_hung_call, &hung);
    sleep_ms(100);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"w"}), CODE_RESOURCE_EXHAUSTED);
    pthread_join(thread, NULL);
    CHECK_NUMBER(hung.code, CODE_DEADLINE_EXCEEDED);
    CHECK(ms_since(start) < 2000);
    CHECK(wait_for_facts(pair.driver, false, NULL));
    /* The monitor has asked in vain often enough: nobody waits any more. */
    CHECK(wait_for_trouble(pair.driver, ""));
    sleep_ms(2500);
    start = timers_now();
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"v"}), CODE_UNAVAILABLE);
    CHECK(ms_since(start) < 250);
    atomic_store(&pair.fake.hangs, false);
    gate_pass(&pair.fake.may_go);
    CHECK(wait_for_facts(pair.driver, true, NULL));
    make(&pair, &(struct wanted){"v"}, MIB);
    pair_close(&pair);
}

/* ---- through a registry ---- */

static void
calls_through_a_registry_name_the_controller(void)
{
    struct oim_pair pair;
    pair_prepare(&pair);
    const struct setting *settings =
        make_settings(&pair.arena, "registry", pair.fake.ends.address, NULL);
    pair_open_driver(&pair, settings, 64);
    CHECK(wait_for_facts(pair.driver, true, NULL));
    CHECK_TEXT(pair.fake.controller_id, "here"); /* the node's own, unless it is said */
    pair_close(&pair);

    pair_prepare(&pair);
    settings = make_settings(&pair.arena, "registry", pair.fake.ends.address, "controller",
                             "host-0", NULL);
    pair_open_driver(&pair, settings, 64);
    CHECK(wait_for_facts(pair.driver, true, NULL));
    CHECK_TEXT(pair.fake.controller_id, "host-0");
    pair_close(&pair);
}

/* ---- another driver's volumes ---- */

static void
an_emulation_has_the_node_side_only(void)
{
    struct oim_pair pair;
    Csi__V1__NodeStageVolumeRequest request = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
    struct text_map context = {0}, secrets = {0};
    pair_prepare(&pair);
    const struct setting *settings =
        make_settings(&pair.arena, "endpoint", pair.fake.ends.address, "emulate", "ceph-csi", NULL);
    pair_open_driver(&pair, settings, 64);
    struct driver_facts *facts = driver_facts(pair.driver);
    CHECK_NUMBER(facts->controller, 0);
    CHECK(facts->node != 0);
    driver_facts_release(facts);
    CHECK_NUMBER(refusal(&pair, &(struct wanted){"v"}), CODE_UNIMPLEMENTED);

    text_map_set(&context, &pair.arena, "pool", "rbd");
    text_map_set(&context, &pair.arena, "monitors", "m1");
    text_map_set(&secrets, &pair.arena, "admin", "hidden");
    message_map_write(&context, &pair.arena,
                      &csi__v1__node_stage_volume_request__volume_context_entry__descriptor,
                      &request.volume_context, &request.n_volume_context);
    message_map_write(&secrets, &pair.arena,
                      &csi__v1__node_stage_volume_request__secrets_entry__descriptor,
                      &request.secrets, &request.n_secrets);
    request.volume_id = "any id/at all";
    request.staging_target_path = "/tmp/nowhere/image-1/globalmount";
    request.volume_capability = capability_of(&pair.arena, "", CAPABILITY_MODE(SINGLE_NODE_WRITER));
    CHECK_CODE(pair_call(&pair, "csi.v1.Node/NodeStageVolume", &request.base, 0, NULL),
               CODE_FAILED_PRECONDITION);
    CHECK_TEXT(pair.fake.params, "admin hidden m1 rbd image-1");
    pair_close(&pair);
}

int
main(void)
{
    sizes_are_whole_sectors_within_the_limits();
    a_name_has_one_volume();
    odd_names_have_handles_of_their_own();
    a_lost_answer_leaves_nothing_twice();
    a_volume_is_what_the_controller_has();
    facts_tell_whether_the_controller_answers();
    a_controller_that_hangs_costs_bounded_time_and_calls();
    calls_through_a_registry_name_the_controller();
    an_emulation_has_the_node_side_only();
    return check_report("driver_oim");
}
