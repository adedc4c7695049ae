/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that take their time: the engine over a back end whose copies wait until the test lets them go. */
#include <pthread.h>

#include "copy_bench.h"
#include "volumes/copy.h"

#define MANY_COPIES 8 /* more than run at a time */

/* ---- clones ---- */

static void
a_clone_that_takes_long_is_waited_for_by_the_same_request(void)
{
    struct bench bench;
    volume_record *clone;
    struct volume_page page;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "one");
    struct volume_request request = clone_of(&bench, "clone", source->handle, 20);
    struct error *error = volume_create(bench.engine, &request, &bench.arena, &clone);
    CHECK(error && strstr(error->message, "still being copied, 30%"));
    CHECK_NUMBER(take_code(error), CODE_ABORTED);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ABORTED);
    must(volume_list(bench.engine, NULL, 0, &bench.arena, &page));
    CHECK_NUMBER(page.count, 1);
    request.required_bytes = 1 << 20;
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ALREADY_EXISTS);
    atomic_store(&is_held, false);
    request = clone_of(&bench, "clone", source->handle, PATIENCE_MS);
    must(volume_create(bench.engine, &request, &bench.arena, &clone));
    CHECK_NUMBER(clone->state, VOLUME_STATE(READY));
    check_file(&bench, clone, "one");
    CHECK_NUMBER(atomic_load(&copies), 1);
    must(volume_list(bench.engine, NULL, 0, &bench.arena, &page));
    CHECK_NUMBER(page.count, 2);
    bench_close(&bench);
}

static void *
clone_in_thread(void *context)
{
    struct bench *bench = context;
    struct arena arena;
    struct ops_page page;
    volume_record *clone = NULL;
    const char *code = "OK";
    arena_init(&arena, NULL, 0, SIZE_MAX);
    must(ops_list(bench->engine->ops, NULL, 0, &arena, &page));
    struct volume_request request = clone_of(
        bench, "clone", page.records[0]->description + strlen("copy the volume "), PATIENCE_MS);
    enum code result = take_code(volume_create(bench->engine, &request, &arena, &clone));
    /* Two that come at the same moment for the key: one of them is told so. */
    if (result != CODE_OK && result != CODE_ABORTED)
        code = error_code_name(result);
    arena_clear(&arena);
    return (void *)code;
}

static void
many_requests_for_one_clone_start_one_copy(void)
{
    struct bench bench;
    volume_record *clone;
    pthread_t threads[8];
    void *result;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    struct volume_request request = clone_of(&bench, "clone", source->handle, 0);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ABORTED);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_create(&threads[i], NULL, clone_in_thread, &bench);
    usleep(50000);
    atomic_store(&is_held, false);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], &result);
        CHECK_TEXT(result, "OK");
    }
    CHECK_NUMBER(atomic_load(&copies), 1);
    bench_close(&bench);
}

static void
a_copy_that_fails_leaves_nothing_and_tells_why(void)
{
    struct bench bench;
    volume_record *clone;
    operation_record *operation;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    unsigned before = count_data(&bench);
    atomic_store(&fails, true);
    atomic_store(&is_held, false);
    struct volume_request request = clone_of(&bench, "clone", source->handle, PATIENCE_MS);
    struct error *error = volume_create(bench.engine, &request, &bench.arena, &clone);
    CHECK(error && strstr(error->message, "no space left"));
    CHECK_NUMBER(take_code(error), CODE_RESOURCE_EXHAUSTED);
    find_operation(&bench, &operation);
    CHECK_NUMBER(operation->state, OPERATION_STATE(FAILED));
    CHECK_TEXT(operation->kind, COPY_VOLUME);
    CHECK_NUMBER(count_data(&bench), before);
    atomic_store(&fails, false);
    must(volume_create(bench.engine, &request, &bench.arena, &clone));
    CHECK_NUMBER(clone->state, VOLUME_STATE(READY));
    bench_close(&bench);
}

static void
a_volume_that_is_being_copied_cannot_be_used_but_deleted(void)
{
    struct bench bench;
    volume_record *clone, *found;
    snapshot_record *snapshot;
    operation_record *operation;
    int64_t size;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    struct volume_request request = clone_of(&bench, "clone", source->handle, 0);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ABORTED);
    const char *handle = find_operation(&bench, &operation);
    struct engine *engine = bench.engine;
    CHECK_NUMBER(take_code(volume_get(engine, handle, &bench.arena, &found)), CODE_ABORTED);
    CHECK_NUMBER(take_code(volume_expand(engine, handle, 1 << 20, 0, &size)), CODE_ABORTED);
    CHECK_NUMBER(take_code(volume_attach(engine, handle, "node-1", false, &bench.mount, 0)),
                 CODE_ABORTED);
    CHECK_NUMBER(take_code(snapshot_create(engine, "s", handle, &none, 0, &bench.arena, &snapshot)),
                 CODE_ABORTED);
    must(volume_delete(engine, handle));
    must(volume_delete(engine, handle));
    find_operation(&bench, &operation);
    CHECK_NUMBER(operation->state, OPERATION_STATE(CANCELLED));
    CHECK_NUMBER(take_code(volume_get(engine, handle, &bench.arena, &found)), CODE_NOT_FOUND);
    must(volume_delete(engine, source->handle));
    CHECK_NUMBER(atomic_load(&copies), 0);
    bench_close(&bench);
}

static void
what_is_copied_from_cannot_be_deleted(void)
{
    struct bench bench;
    volume_record *clone;
    snapshot_record *snapshot;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    atomic_store(&is_held, false);
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &snapshot));
    atomic_store(&is_held, true);
    struct volume_request request = clone_of(&bench, "clone", source->handle, 0);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ABORTED);
    struct volume_request restore = clone_of(&bench, "restored", snapshot->handle, 0);
    restore.source_kind = SOURCE_SNAPSHOT;
    CHECK_NUMBER(take_code(volume_create(bench.engine, &restore, &bench.arena, &clone)),
                 CODE_ABORTED);
    CHECK_NUMBER(take_code(volume_delete(bench.engine, source->handle)), CODE_FAILED_PRECONDITION);
    CHECK_NUMBER(take_code(snapshot_delete(bench.engine, snapshot->handle)),
                 CODE_FAILED_PRECONDITION);
    atomic_store(&is_held, false);
    restore.wait_ms = request.wait_ms = PATIENCE_MS;
    must(volume_create(bench.engine, &request, &bench.arena, &clone));
    must(volume_create(bench.engine, &restore, &bench.arena, &clone));
    must(volume_delete(bench.engine, source->handle));
    must(snapshot_delete(bench.engine, snapshot->handle));
    bench_close(&bench);
}

/* ---- snapshots ---- */

static void
a_snapshot_that_takes_long_is_there_but_not_ready(void)
{
    struct bench bench;
    snapshot_record *snapshot, *again;
    struct snapshot_page page;
    volume_record *restored;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "one");
    must(snapshot_create(bench.engine, "s", source->handle, &none, 20, &bench.arena, &snapshot));
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(COPYING));
    must(snapshot_list(bench.engine, NULL, NULL, 0, &bench.arena, &page));
    CHECK_NUMBER(page.count, 1);
    CHECK_NUMBER(page.snapshots[0]->state, SNAPSHOT_STATE(COPYING));
    struct volume_request request = clone_of(&bench, "restored", snapshot->handle, PATIENCE_MS);
    request.source_kind = SOURCE_SNAPSHOT;
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &restored)),
                 CODE_ABORTED);
    atomic_store(&is_held, false);
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &again));
    CHECK_TEXT(again->handle, snapshot->handle);
    CHECK_NUMBER(again->state, SNAPSHOT_STATE(READY));
    CHECK(again->created_ns == snapshot->created_ns);
    must(volume_create(bench.engine, &request, &bench.arena, &restored));
    check_file(&bench, restored, "one");
    CHECK_NUMBER(atomic_load(&copies), 2);
    bench_close(&bench);
}

static void
use(struct bench *bench, const volume_record *volume)
{
    mount_record record = SKYCAP__RECORDS__MOUNT_RECORD__INIT;
    record.volume_handle = volume->handle;
    record.path = "/somewhere";
    must(mount_rows_add(bench->engine, &record, &bench->arena));
}

/* Whoever has the answer writes on, and what is written then must not be in the snapshot. */
static void
a_snapshot_of_a_volume_in_use_is_not_answered_before_it_is_taken(void)
{
    struct bench bench;
    snapshot_record *snapshot;
    char name[16];
    slow_open(&bench);
    volume_record *unused = create(&bench, "unused");
    volume_record *used = create(&bench, "used");
    use(&bench, used);
    for (int i = 0; i < MANY_COPIES; i++) {
        snprintf(name, sizeof name, "s%d", i);
        must(
            snapshot_create(bench.engine, name, unused->handle, &none, 0, &bench.arena, &snapshot));
        CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(COPYING));
    }
    CHECK_NUMBER(take_code(snapshot_create(bench.engine, "s", used->handle, &none, 20, &bench.arena,
                                           &snapshot)),
                 CODE_ABORTED);
    atomic_store(&is_held, false);
    must(snapshot_create(bench.engine, "s", used->handle, &none, PATIENCE_MS, &bench.arena,
                         &snapshot));
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(READY));
    bench_close(&bench);
}

static void
deleting_a_snapshot_cancels_its_copy(void)
{
    struct bench bench;
    snapshot_record *snapshot, *found;
    operation_record *operation;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    unsigned before = count_data(&bench);
    must(snapshot_create(bench.engine, "s", source->handle, &none, 0, &bench.arena, &snapshot));
    must(snapshot_delete(bench.engine, snapshot->handle));
    CHECK_TEXT(find_operation(&bench, &operation), snapshot->handle);
    CHECK_NUMBER(operation->state, OPERATION_STATE(CANCELLED));
    CHECK_NUMBER(take_code(snapshot_get(bench.engine, snapshot->handle, &bench.arena, &found)),
                 CODE_NOT_FOUND);
    CHECK_NUMBER(count_data(&bench), before);
    atomic_store(&is_held, false);
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &found));
    CHECK(strcmp(found->handle, snapshot->handle) != 0);
    bench_close(&bench);
}

static void *
cancel_only_operation(void *context)
{
    struct bench *bench = context;
    struct arena arena;
    struct ops_page page = {0};
    wait_until_begun(1);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    must(ops_list(bench->engine->ops, NULL, 0, &arena, &page));
    must(ops_cancel(bench->engine->ops, page.records[0]->id));
    arena_clear(&arena);
    return NULL;
}

static void
who_waits_for_a_copy_hears_that_it_was_cancelled(void)
{
    struct bench bench;
    snapshot_record *snapshot;
    pthread_t thread;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    pthread_create(&thread, NULL, cancel_only_operation, &bench);
    CHECK_NUMBER(take_code(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS,
                                           &bench.arena, &snapshot)),
                 CODE_CANCELLED);
    pthread_join(thread, NULL);
    bench_close(&bench);
}

/* ---- instant copies ---- */

/* A second start within a boot writes nothing by itself: what the test counts is the copy's. */
static void
an_instant_copy_is_one_write_and_no_operation(void)
{
    struct bench bench;
    snapshot_record *snapshot;
    struct ops_page page;
    uint64_t before, after;
    bench_open(&bench);
    bench.boot_id = "only";
    reopen(&bench);
    reopen(&bench);
    bench.backend->copies_are_instant = true;
    volume_record *source = create(&bench, "source");
    must(store_revision(bench.store, &before));
    must(snapshot_create(bench.engine, "s", source->handle, &none, 0, &bench.arena, &snapshot));
    must(store_revision(bench.store, &after));
    CHECK_NUMBER(after - before, 1);
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(READY));
    must(ops_list(bench.engine->ops, NULL, 0, &bench.arena, &page));
    CHECK_NUMBER(page.count, 0);
    bench_close(&bench);
}

int
main(void)
{
    a_clone_that_takes_long_is_waited_for_by_the_same_request();
    many_requests_for_one_clone_start_one_copy();
    a_copy_that_fails_leaves_nothing_and_tells_why();
    a_volume_that_is_being_copied_cannot_be_used_but_deleted();
    what_is_copied_from_cannot_be_deleted();
    a_snapshot_that_takes_long_is_there_but_not_ready();
    a_snapshot_of_a_volume_in_use_is_not_answered_before_it_is_taken();
    deleting_a_snapshot_cancels_its_copy();
    who_waits_for_a_copy_hears_that_it_was_cancelled();
    an_instant_copy_is_one_write_and_no_operation();
    return check_report("test_volumes_copy");
}
