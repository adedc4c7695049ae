/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerPublishVolume on a node that takes only so many volumes; over a real connection. */
#include <pthread.h>
#include <stdatomic.h>

#include "csi_ends.h"

#define VOLUMES 12
#define LIMIT 3
#define ROUNDS 20

struct bench {
    char directory[64];
    struct csi_ends csi;
    char *ids[VOLUMES];
};

/* ---- calls ---- */

static enum code
publish(struct bench *bench, const char *id)
{
    Csi__V1__VolumeCapability__MountVolume mount = CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
    Csi__V1__VolumeCapability__AccessMode mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
    Csi__V1__VolumeCapability capability = CSI__V1__VOLUME_CAPABILITY__INIT;
    Csi__V1__ControllerPublishVolumeRequest request =
        CSI__V1__CONTROLLER_PUBLISH_VOLUME_REQUEST__INIT;
    Csi__V1__ControllerPublishVolumeResponse *reply;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
    capability.mount = &mount;
    capability.access_mode = &mode;
    request.volume_id = (char *)id;
    request.node_id = (char *)"node-1";
    request.volume_capability = &capability;
    struct error *error AUTO(error_cleanup) =
        channel_call(bench->csi.ends.channel, CSI_V1_CONTROLLER_CONTROLLER_PUBLISH_VOLUME,
                     &request.base, NULL, &arena, &reply);
    return error ? error->code : CODE_OK;
}

static enum code
try_unpublish(struct bench *bench, const char *id)
{
    Csi__V1__ControllerUnpublishVolumeRequest request =
        CSI__V1__CONTROLLER_UNPUBLISH_VOLUME_REQUEST__INIT;
    Csi__V1__ControllerUnpublishVolumeResponse *reply;
    request.volume_id = (char *)id;
    request.node_id = (char *)"node-1";
    struct error *error AUTO(error_cleanup) =
        csi_call(&bench->csi, CSI_V1_CONTROLLER_CONTROLLER_UNPUBLISH_VOLUME, &request.base, &reply);
    return error ? error->code : CODE_OK;
}

static void
unpublish(struct bench *bench, const char *id)
{
    CHECK_NUMBER(try_unpublish(bench, id), CODE_OK);
}

static void
bench_open(struct bench *bench)
{
    snprintf(bench->directory, sizeof bench->directory, "/tmp/skycap-publish-XXXXXX");
    CHECK(mkdtemp(bench->directory) != NULL);
    csi_ends_open(&bench->csi, "dir", bench->directory);
    bench->csi.controller.max_volumes_per_node = LIMIT;
    for (size_t i = 0; i < VOLUMES; i++)
        bench->ids[i] = csi_create_volume(
            &bench->csi, arena_print(&bench->csi.arena, "volume-%zu", i), "", 1 << 20);
}

static void
bench_close(struct bench *bench)
{
    csi_ends_close(&bench->csi);
    csi_remove_directory(bench->directory);
}

/* ---- all at the same time ---- */

struct caller {
    struct bench *bench;
    const char *id;
    pthread_barrier_t *start;
    enum code code;
    pthread_t thread;
};

static void *
call_publish(void *context)
{
    struct caller *caller = context;
    pthread_barrier_wait(caller->start);
    caller->code = publish(caller->bench, caller->id);
    return NULL;
}

/* How many were told that it is done. */
static unsigned
publish_all_at_once(struct bench *bench)
{
    struct caller callers[VOLUMES];
    pthread_barrier_t start;
    unsigned done = 0;
    pthread_barrier_init(&start, NULL, VOLUMES);
    for (size_t i = 0; i < VOLUMES; i++) {
        callers[i] = (struct caller){.bench = bench, .id = bench->ids[i], .start = &start};
        CHECK(pthread_create(&callers[i].thread, NULL, call_publish, &callers[i]) == 0);
    }
    for (size_t i = 0; i < VOLUMES; i++) {
        pthread_join(callers[i].thread, NULL);
        if (callers[i].code != CODE_OK)
            CHECK_NUMBER(callers[i].code, CODE_RESOURCE_EXHAUSTED);
        done += callers[i].code == CODE_OK;
    }
    pthread_barrier_destroy(&start);
    return done;
}

static void
calls_at_the_same_time_do_not_pass_the_limit(void)
{
    struct bench bench = {0};
    bench_open(&bench);
    for (unsigned round = 0; round < ROUNDS; round++) {
        CHECK_NUMBER(publish_all_at_once(&bench), LIMIT);
        for (size_t i = 0; i < VOLUMES; i++)
            unpublish(&bench, bench.ids[i]);
    }
    bench_close(&bench);
}

/* ---- one after the other ---- */

static void
a_volume_counts_once_until_it_is_unpublished(void)
{
    struct bench bench = {0};
    bench_open(&bench);
    for (size_t i = 0; i < LIMIT; i++) {
        CHECK_NUMBER(publish(&bench, bench.ids[i]), CODE_OK);
        CHECK_NUMBER(publish(&bench, bench.ids[i]), CODE_OK);
    }
    CHECK_NUMBER(publish(&bench, bench.ids[LIMIT]), CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(publish(&bench, bench.ids[0]), CODE_OK); /* again, on a node that is full */
    unpublish(&bench, bench.ids[0]);
    unpublish(&bench, bench.ids[0]);
    CHECK_NUMBER(publish(&bench, bench.ids[LIMIT]), CODE_OK);
    CHECK_NUMBER(publish(&bench, bench.ids[0]), CODE_RESOURCE_EXHAUSTED);
    bench_close(&bench);
}

static void
a_restart_knows_what_is_published(void)
{
    struct bench bench = {0};
    bench_open(&bench);
    for (size_t i = 0; i < LIMIT; i++)
        CHECK_NUMBER(publish(&bench, bench.ids[i]), CODE_OK);
    csi_ends_reopen_engine(&bench.csi);
    bench.csi.controller.max_volumes_per_node = LIMIT;
    CHECK_NUMBER(publish(&bench, bench.ids[LIMIT]), CODE_RESOURCE_EXHAUSTED);
    unpublish(&bench, bench.ids[0]);
    CHECK_NUMBER(publish(&bench, bench.ids[LIMIT]), CODE_OK);
    CHECK_NUMBER(publish(&bench, bench.ids[0]), CODE_RESOURCE_EXHAUSTED);
    bench_close(&bench);
}

/* A limit that was set lower than what is published already takes nothing away, and gives nothing. */
static void
a_lower_limit_is_kept_to(void)
{
    struct bench bench = {0};
    bench_open(&bench);
    bench.csi.controller.max_volumes_per_node = 0;
    for (size_t i = 0; i < VOLUMES - 1; i++)
        CHECK_NUMBER(publish(&bench, bench.ids[i]), CODE_OK);
    bench.csi.controller.max_volumes_per_node = LIMIT;
    CHECK_NUMBER(publish(&bench, bench.ids[0]), CODE_OK);
    CHECK_NUMBER(publish(&bench, bench.ids[VOLUMES - 1]), CODE_RESOURCE_EXHAUSTED);
    bench_close(&bench);
}

static atomic_bool has_notes = true;
static struct error *(*write_note)(struct backend *, const struct data *, const void *, size_t);

static struct error *
write_note_or_not(struct backend *backend, const struct data *data, const void *note, size_t size)
{
    return atomic_load(&has_notes) ? write_note(backend, data, note, size)
                                   : error_new(CODE_INTERNAL, "no note today");
}

/* The row is written, the note beside the data is not: the call fails, and the same again succeeds. */
static void
a_call_that_failed_halfway_counts_as_its_row_says(void)
{
    struct bench bench = {0};
    bench_open(&bench);
    struct backend_ops ops = *bench.csi.backend->ops;
    write_note = ops.write_note;
    ops.write_note = write_note_or_not;
    engine_close(bench.csi.engine); /* it has threads that use the back end */
    bench.csi.backend->ops = &ops;
    csi_ends_open_engine(&bench.csi);
    bench.csi.controller.max_volumes_per_node = 1;
    atomic_store(&has_notes, false);
    CHECK_NUMBER(publish(&bench, bench.ids[0]), CODE_INTERNAL);
    CHECK_NUMBER(publish(&bench, bench.ids[1]), CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(publish(&bench, bench.ids[0]), CODE_OK);
    CHECK_NUMBER(try_unpublish(&bench, bench.ids[0]), CODE_INTERNAL);
    unpublish(&bench, bench.ids[0]);
    atomic_store(&has_notes, true);
    CHECK_NUMBER(publish(&bench, bench.ids[1]), CODE_OK);
    bench_close(&bench);
}

int
main(void)
{
    calls_at_the_same_time_do_not_pass_the_limit();
    a_volume_counts_once_until_it_is_unpublished();
    a_restart_knows_what_is_published();
    a_lower_limit_is_kept_to();
    a_call_that_failed_halfway_counts_as_its_row_says();
    return check_report("csi_publish");
}
