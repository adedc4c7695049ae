/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.GroupController over directories: groups come and go as a whole. That they are of one instant is shown by tests/conformance. */
#include "csi_ends.h"
#include "node/doctor.h"
#include "volumes/data_lock.h"
#include "volumes/group.h"
#include "volumes/held.h"

#define MEMBERS 3

struct bench {
    struct csi_ends csi;
    char directory[64];
    char *volumes[MEMBERS];
};

static void
bench_open(struct bench *bench)
{
    *bench = (struct bench){.directory = "/tmp/skycap-groups-XXXXXX"};
    CHECK(mkdtemp(bench->directory) != NULL);
    csi_ends_open(&bench->csi, "dir", bench->directory);
    for (int i = 0; i < MEMBERS; i++)
        bench->volumes[i] =
            csi_create_volume(&bench->csi, (const char[]){(char)('a' + i), '\0'}, "", 0);
}

static void
bench_close(struct bench *bench)
{
    csi_ends_close(&bench->csi);
    csi_remove_directory(bench->directory);
}

static Csi__V1__VolumeGroupSnapshot *
create(struct bench *bench, const char *name)
{
    Csi__V1__VolumeGroupSnapshot *group = NULL;
    succeed(csi_create_group(&bench->csi, name, bench->volumes, MEMBERS, &group));
    return group;
}

static enum code
code_of_create(struct bench *bench, const char *name, char **volumes, size_t count)
{
    Csi__V1__VolumeGroupSnapshot *group;
    return take_code(csi_create_group(&bench->csi, name, volumes, count, &group));
}

static struct error *
get(struct bench *bench, const char *id, char **snapshot_ids, size_t count,
    Csi__V1__VolumeGroupSnapshot **out)
{
    Csi__V1__GetVolumeGroupSnapshotRequest request =
        CSI__V1__GET_VOLUME_GROUP_SNAPSHOT_REQUEST__INIT;
    Csi__V1__GetVolumeGroupSnapshotResponse *reply;
    request.group_snapshot_id = (char *)id;
    request.snapshot_ids = snapshot_ids;
    request.n_snapshot_ids = count;
    struct error *error = csi_call(&bench->csi, CSI_V1_GROUP_CONTROLLER_GET_VOLUME_GROUP_SNAPSHOT,
                                   &request.base, &reply);
    *out = error ? NULL : reply->group_snapshot;
    return error;
}

static size_t
count_snapshots(struct bench *bench)
{
    Csi__V1__ListSnapshotsRequest request = CSI__V1__LIST_SNAPSHOTS_REQUEST__INIT;
    Csi__V1__ListSnapshotsResponse *reply;
    succeed(csi_call(&bench->csi, CSI_V1_CONTROLLER_LIST_SNAPSHOTS, &request.base, &reply));
    return reply->n_entries;
}

static void
write_text(struct bench *bench, const char *volume_id, const char *text)
{
    char path[5000];
    snprintf(path, sizeof path, "%s/file", csi_path(&bench->csi, volume_id, KIND_TREE));
    FILE *file = fopen(path, "we");
    CHECK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

static void
check_text_of(struct bench *bench, const char *id, const char *expected)
{
    char path[5000], found[64] = "";
    snprintf(path, sizeof path, "%s/file", csi_path(&bench->csi, id, KIND_TREE));
    FILE *file = fopen(path, "re");
    CHECK(file && fgets(found, sizeof found, file));
    if (file)
        fclose(file);
    CHECK_TEXT(found, expected);
}

static bool
names_volume(const Csi__V1__VolumeGroupSnapshot *group, const char *volume_id)
{
    for (size_t i = 0; i < group->n_snapshots; i++)
        if (!strcmp(group->snapshots[i]->source_volume_id, volume_id))
            return true;
    return false;
}

/* ---- facts ---- */

static void
a_group_has_one_snapshot_of_each_volume(void)
{
    struct bench bench;
    bench_open(&bench);
    Csi__V1__VolumeGroupSnapshot *group = create(&bench, "g");
    CHECK(!strncmp(group->group_snapshot_id, "g:local/", 8));
    CHECK(group->ready_to_use);
    CHECK(group->creation_time && group->creation_time->seconds > 0);
    CHECK_NUMBER(group->n_snapshots, MEMBERS);
    for (size_t i = 0; i < group->n_snapshots; i++) {
        Csi__V1__Snapshot *snapshot = group->snapshots[i];
        CHECK(names_volume(group, bench.volumes[i]));
        CHECK_TEXT(snapshot->group_snapshot_id, group->group_snapshot_id);
        CHECK(snapshot->ready_to_use);
        CHECK_NUMBER(snapshot->creation_time->seconds, group->creation_time->seconds);
        CHECK_NUMBER(snapshot->creation_time->nanos, group->creation_time->nanos);
    }
    CHECK_NUMBER(count_snapshots(&bench), MEMBERS);
    bench_close(&bench);
}

static void
the_same_request_gives_the_same_group(void)
{
    struct bench bench;
    bench_open(&bench);
    char *other_order[] = {bench.volumes[2], bench.volumes[0], bench.volumes[1]};
    Csi__V1__VolumeGroupSnapshot *first = create(&bench, "g"), *again = NULL;
    unsigned data = csi_count_data(&bench.csi);
    succeed(csi_create_group(&bench.csi, "g", other_order, MEMBERS, &again));
    CHECK_TEXT(again->group_snapshot_id, first->group_snapshot_id);
    for (size_t i = 0; i < MEMBERS; i++)
        CHECK_TEXT(again->snapshots[i]->snapshot_id, first->snapshots[i]->snapshot_id);
    CHECK_NUMBER(csi_count_data(&bench.csi), data);
    bench_close(&bench);
}

static void
the_same_name_with_other_wishes_is_refused(void)
{
    struct bench bench;
    bench_open(&bench);
    create(&bench, "g");
    CHECK_NUMBER(code_of_create(&bench, "g", bench.volumes, 2), CODE_ALREADY_EXISTS);
    Csi__V1__CreateVolumeGroupSnapshotRequest__ParametersEntry entry =
        CSI__V1__CREATE_VOLUME_GROUP_SNAPSHOT_REQUEST__PARAMETERS_ENTRY__INIT;
    Csi__V1__CreateVolumeGroupSnapshotRequest request =
        CSI__V1__CREATE_VOLUME_GROUP_SNAPSHOT_REQUEST__INIT;
    Csi__V1__CreateVolumeGroupSnapshotResponse *reply;
    entry.key = (char *)"key";
    entry.value = (char *)"value";
    request.name = (char *)"g";
    request.source_volume_ids = bench.volumes;
    request.n_source_volume_ids = MEMBERS;
    request.parameters = (Csi__V1__CreateVolumeGroupSnapshotRequest__ParametersEntry *[]){&entry};
    request.n_parameters = 1;
    CHECK_CODE(csi_call(&bench.csi, CSI_V1_GROUP_CONTROLLER_CREATE_VOLUME_GROUP_SNAPSHOT,
                        &request.base, &reply),
               CODE_ALREADY_EXISTS);
    bench_close(&bench);
}

static void
what_is_wrong_with_a_request_is_told(void)
{
    struct bench bench;
    bench_open(&bench);
    char *strange[] = {bench.volumes[0], (char *)"elsewhere"};
    char *unknown[] = {bench.volumes[0], (char *)"v:local/0123456789"};
    char *empty[] = {bench.volumes[0], (char *)""};
    char *twice[] = {bench.volumes[0], bench.volumes[1], bench.volumes[0]};
    char *many[GROUP_MOST_MEMBERS + 1];
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = arena_print(&bench.csi.arena, "v:local/%zu", i);
    CHECK_NUMBER(code_of_create(&bench, "", bench.volumes, MEMBERS), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of_create(&bench, "g", bench.volumes, 0), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of_create(&bench, "g", empty, 2), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of_create(&bench, "g", twice, 3), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of_create(&bench, "g", strange, 2), CODE_NOT_FOUND);
    CHECK_NUMBER(code_of_create(&bench, "g", unknown, 2), CODE_NOT_FOUND);
    CHECK_NUMBER(code_of_create(&bench, "g", many, COUNT_OF(many)), CODE_FAILED_PRECONDITION);
    CHECK_NUMBER(count_snapshots(&bench), 0);
    CHECK_NUMBER(csi_count_data(&bench.csi), MEMBERS);
    bench_close(&bench);
}

static void
a_group_is_found_by_its_id(void)
{
    struct bench bench;
    Csi__V1__VolumeGroupSnapshot *found;
    bench_open(&bench);
    Csi__V1__VolumeGroupSnapshot *group = create(&bench, "g");
    char *ids[MEMBERS];
    for (size_t i = 0; i < MEMBERS; i++)
        ids[i] = group->snapshots[MEMBERS - 1 - i]->snapshot_id;
    succeed(get(&bench, group->group_snapshot_id, NULL, 0, &found));
    CHECK_NUMBER(found->n_snapshots, MEMBERS);
    succeed(get(&bench, group->group_snapshot_id, ids, MEMBERS, &found));
    CHECK_TEXT(found->group_snapshot_id, group->group_snapshot_id);
    CHECK_CODE(get(&bench, group->group_snapshot_id, ids, 2, &found), CODE_INVALID_ARGUMENT);
    CHECK_CODE(get(&bench, "", NULL, 0, &found), CODE_INVALID_ARGUMENT);
    CHECK_CODE(get(&bench, "strange", NULL, 0, &found), CODE_NOT_FOUND);
    CHECK_CODE(get(&bench, "g:local/0123456789", NULL, 0, &found), CODE_NOT_FOUND);
    bench_close(&bench);
}

static void
a_member_goes_with_its_group_only(void)
{
    struct bench bench;
    bench_open(&bench);
    Csi__V1__VolumeGroupSnapshot *group = create(&bench, "g");
    CHECK_CODE(csi_delete_snapshot(&bench.csi, group->snapshots[0]->snapshot_id),
               CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(count_snapshots(&bench), MEMBERS);
    succeed(csi_delete_group(&bench.csi, group->group_snapshot_id, NULL, 0));
    CHECK_NUMBER(count_snapshots(&bench), 0);
    CHECK_NUMBER(csi_count_data(&bench.csi), MEMBERS);
    succeed(csi_delete_group(&bench.csi, group->group_snapshot_id, NULL, 0));
    succeed(csi_delete_snapshot(&bench.csi, group->snapshots[0]->snapshot_id));
    bench_close(&bench);
}

static void
a_deletion_that_names_other_snapshots_deletes_nothing(void)
{
    struct bench bench;
    bench_open(&bench);
    Csi__V1__VolumeGroupSnapshot *group = create(&bench, "g");
    char *ids[MEMBERS + 1];
    for (size_t i = 0; i < MEMBERS; i++)
        ids[i] = group->snapshots[i]->snapshot_id;
    ids[MEMBERS] = csi_create_snapshot(&bench.csi, "s", bench.volumes[0])->snapshot_id;
    char *foreign[] = {ids[0], ids[1], ids[MEMBERS]};
    char *repeated[] = {ids[0], ids[1], ids[1]};
    const char *id = group->group_snapshot_id;
    CHECK_CODE(csi_delete_group(&bench.csi, id, ids, 2), CODE_INVALID_ARGUMENT);
    CHECK_CODE(csi_delete_group(&bench.csi, id, ids, MEMBERS + 1), CODE_INVALID_ARGUMENT);
    CHECK_CODE(csi_delete_group(&bench.csi, id, foreign, MEMBERS), CODE_INVALID_ARGUMENT);
    CHECK_CODE(csi_delete_group(&bench.csi, id, repeated, MEMBERS), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(count_snapshots(&bench), MEMBERS + 1);
    CHECK_CODE(csi_delete_group(&bench.csi, "", NULL, 0), CODE_INVALID_ARGUMENT);
    CHECK_CODE(csi_delete_group(&bench.csi, "strange", NULL, 0), CODE_OK);
    succeed(csi_delete_group(&bench.csi, id, ids, MEMBERS));
    CHECK_NUMBER(count_snapshots(&bench), 1);
    bench_close(&bench);
}

/* Members have no names, so nothing that a user asks for is in their way. */
static void
names_never_clash(void)
{
    struct bench bench;
    bench_open(&bench);
    Csi__V1__VolumeGroupSnapshot *first = create(&bench, "g");
    Csi__V1__VolumeGroupSnapshot *second = create(&bench, "h");
    CHECK(strcmp(first->group_snapshot_id, second->group_snapshot_id) != 0);
    csi_create_snapshot(&bench.csi, "g", bench.volumes[0]);
    csi_create_snapshot(&bench.csi, first->group_snapshot_id, bench.volumes[0]);
    CHECK_NUMBER(count_snapshots(&bench), 2 * MEMBERS + 2);
    bench_close(&bench);
}

static void
a_group_outlives_its_volumes_and_a_restart(void)
{
    struct bench bench;
    Csi__V1__VolumeGroupSnapshot *found;
    bench_open(&bench);
    for (int i = 0; i < MEMBERS; i++)
        write_text(&bench, bench.volumes[i], "before");
    Csi__V1__VolumeGroupSnapshot *group = create(&bench, "g");
    for (int i = 0; i < MEMBERS; i++)
        write_text(&bench, bench.volumes[i], "after");
    Csi__V1__DeleteVolumeRequest request = CSI__V1__DELETE_VOLUME_REQUEST__INIT;
    Csi__V1__DeleteVolumeResponse *reply;
    request.volume_id = bench.volumes[0];
    succeed(csi_call(&bench.csi, CSI_V1_CONTROLLER_DELETE_VOLUME, &request.base, &reply));
    csi_ends_reopen_engine(&bench.csi);
    succeed(get(&bench, group->group_snapshot_id, NULL, 0, &found));
    for (size_t i = 0; i < found->n_snapshots; i++)
        check_text_of(&bench, found->snapshots[i]->snapshot_id, "before");
    /* The same request finds the group, though one of its volumes is gone. */
    CHECK_TEXT(create(&bench, "g")->group_snapshot_id, group->group_snapshot_id);
    bench_close(&bench);
}

static void
a_group_that_fails_leaves_nothing(void)
{
    struct bench bench;
    bench_open(&bench);
    /* By handle the last one, so that the others have been copied when it fails. */
    struct data lost = csi_data(bench.volumes[MEMBERS - 1], KIND_TREE);
    for (int i = 0; i < MEMBERS; i++)
        if (strcmp(bench.volumes[i] + 8, lost.handle) > 0)
            lost = csi_data(bench.volumes[i], KIND_TREE);
    succeed(backend_remove(bench.csi.backend, &lost));
    CHECK(code_of_create(&bench, "g", bench.volumes, MEMBERS) != CODE_OK);
    CHECK_NUMBER(count_snapshots(&bench), 0);
    CHECK_NUMBER(csi_count_data(&bench.csi), MEMBERS - 1);
    bench_close(&bench);
}

static void
a_volume_or_group_that_is_being_worked_on_is_told_so(void)
{
    struct bench bench;
    struct name_lock *lock;
    bench_open(&bench);
    struct held_volume held = {0};
    const char *handle = ids_handle(ID_VOLUME, bench.volumes[1]);
    succeed(held_take(bench.csi.engine, handle, 0, &bench.csi.arena, &held));
    CHECK_NUMBER(code_of_create(&bench, "g", bench.volumes, MEMBERS), CODE_ABORTED);
    held_release(&held);
    succeed(name_lock_take(&bench.csi.engine->locks, "group", "g", &lock));
    CHECK_NUMBER(code_of_create(&bench, "g", bench.volumes, MEMBERS), CODE_ABORTED);
    name_lock_release(&lock);
    /* Whoever failed has given all back. */
    Csi__V1__VolumeGroupSnapshot *group = create(&bench, "g");
    succeed(name_lock_take(&bench.csi.engine->locks, "group", "g", &lock));
    CHECK_CODE(csi_delete_group(&bench.csi, group->group_snapshot_id, NULL, 0), CODE_ABORTED);
    name_lock_release(&lock);
    bench_close(&bench);
}

static void
a_group_that_is_copied_from_is_not_deleted(void)
{
    struct bench bench;
    struct name_lock *copying;
    bench_open(&bench);
    Csi__V1__VolumeGroupSnapshot *group = create(&bench, "g");
    const char *handle = ids_handle(ID_SNAPSHOT, group->snapshots[1]->snapshot_id);
    succeed(data_lock_shared(bench.csi.engine, &snapshot_rows, handle, &copying));
    CHECK_CODE(csi_delete_group(&bench.csi, group->group_snapshot_id, NULL, 0),
               CODE_FAILED_PRECONDITION);
    CHECK_NUMBER(count_snapshots(&bench), MEMBERS);
    name_lock_release(&copying);
    succeed(csi_delete_group(&bench.csi, group->group_snapshot_id, NULL, 0));
    bench_close(&bench);
}

static void
the_largest_group_has_all_its_rows_and_notes(void)
{
    struct bench bench;
    char *volumes[GROUP_MOST_MEMBERS];
    Csi__V1__VolumeGroupSnapshot *group;
    uint8_t note[BACKEND_NOTE_SIZE];
    size_t size;
    bench_open(&bench);
    struct arena *arena = &bench.csi.arena;
    for (size_t i = 0; i < COUNT_OF(volumes); i++)
        volumes[i] = csi_create_volume(&bench.csi, arena_print(arena, "many-%zu", i), "", 0);
    succeed(csi_create_group(&bench.csi, "g", volumes, COUNT_OF(volumes), &group));
    CHECK_NUMBER(count_snapshots(&bench), COUNT_OF(volumes));
    struct data data = csi_data(group->snapshots[7]->snapshot_id, KIND_TREE);
    succeed(backend_read_note(bench.csi.backend, &data, note, sizeof note, &size));
    snapshot_record *member = skycap__records__snapshot_record__unpack(NULL, size, note);
    CHECK(member && member->group);
    if (member && member->group) {
        CHECK_TEXT(member->group->name, "g");
        CHECK_TEXT(member->group->handle, member->group_handle);
        CHECK_NUMBER(member->group->n_source_handles, COUNT_OF(volumes));
        CHECK_TEXT(member->group->snapshot_handles[7], member->handle);
    }
    skycap__records__snapshot_record__free_unpacked(member, NULL);
    succeed(csi_delete_group(&bench.csi, group->group_snapshot_id, NULL, 0));
    CHECK_NUMBER(count_snapshots(&bench), 0);
    bench_close(&bench);
}

static void
tell_finding(void *context, const struct finding *finding)
{
    (void)context;
    fprintf(stderr, "%s: %s\n", finding->subject, finding->message);
    CHECK(!"something was found");
}

static void
a_lost_store_gets_its_groups_back(void)
{
    struct bench bench;
    struct store *lost;
    struct doctor_rebuilt rebuilt;
    bench_open(&bench);
    Csi__V1__VolumeGroupSnapshot *group = create(&bench, "g");
    engine_close(bench.csi.engine);
    lost = bench.csi.store;
    succeed(store_open("memory:", NULL, &bench.csi.store));
    succeed(doctor_rebuild(bench.csi.store, bench.csi.backend, tell_finding, NULL, &rebuilt));
    CHECK_NUMBER(rebuilt.snapshots, MEMBERS);
    CHECK_NUMBER(rebuilt.groups, 1);
    csi_ends_open_engine(&bench.csi);
    CHECK_TEXT(create(&bench, "g")->group_snapshot_id, group->group_snapshot_id);
    CHECK_NUMBER(count_snapshots(&bench), MEMBERS);
    succeed(csi_delete_group(&bench.csi, group->group_snapshot_id, NULL, 0));
    CHECK_NUMBER(count_snapshots(&bench), 0);
    store_close(lost);
    bench_close(&bench);
}

static void
the_capability_is_told(void)
{
    struct bench bench;
    Csi__V1__GroupControllerGetCapabilitiesRequest request =
        CSI__V1__GROUP_CONTROLLER_GET_CAPABILITIES_REQUEST__INIT;
    Csi__V1__GroupControllerGetCapabilitiesResponse *reply;
    bench_open(&bench);
    succeed(csi_call(&bench.csi, CSI_V1_GROUP_CONTROLLER_GROUP_CONTROLLER_GET_CAPABILITIES,
                     &request.base, &reply));
    CHECK_NUMBER(reply->n_capabilities, 1);
    CHECK_NUMBER(reply->capabilities[0]->rpc->type, 1);
    bench_close(&bench);
}

int
main(void)
{
    a_group_has_one_snapshot_of_each_volume();
    the_same_request_gives_the_same_group();
    the_same_name_with_other_wishes_is_refused();
    what_is_wrong_with_a_request_is_told();
    a_group_is_found_by_its_id();
    a_member_goes_with_its_group_only();
    a_deletion_that_names_other_snapshots_deletes_nothing();
    names_never_clash();
    a_group_outlives_its_volumes_and_a_restart();
    a_group_that_fails_leaves_nothing();
    a_volume_or_group_that_is_being_worked_on_is_told_so();
    a_group_that_is_copied_from_is_not_deleted();
    the_largest_group_has_all_its_rows_and_notes();
    a_lost_store_gets_its_groups_back();
    the_capability_is_told();
    return check_report("test_csi_groups");
}
