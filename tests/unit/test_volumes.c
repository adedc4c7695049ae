/* SPDX-License-Identifier: Apache-2.0 */
/* The engine over a store in memory and directories: the life of volumes and snapshots. */
#include <sys/stat.h>

#include "volumes_ends.h"

/* ---- facts ---- */

static void
the_same_name_gives_the_same_volume(void)
{
    struct bench bench;
    bench_open(&bench);
    volume_record *first = create(&bench, "a");
    volume_record *again = create(&bench, "a");
    CHECK_TEXT(again->handle, first->handle);
    CHECK(strcmp(create(&bench, "b")->handle, first->handle) != 0);
    bench_close(&bench);
}

static void
the_same_name_with_other_wishes_is_refused(void)
{
    struct bench bench;
    volume_record *volume;
    bench_open(&bench);
    struct volume_request request = request_for(&bench, "a", 1 << 20);
    must(volume_create(bench.engine, &request, &bench.arena, &volume));
    request.required_bytes = 2 << 20;
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &volume)),
                 CODE_ALREADY_EXISTS);
    request = request_for(&bench, "a", 1 << 20);
    text_map_set(&request.parameters, &bench.arena, "label", "x");
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &volume)),
                 CODE_ALREADY_EXISTS);
    bench_close(&bench);
}

static void
a_limit_alone_is_a_limit(void)
{
    struct bench bench;
    bench_open(&bench);
    struct volume_request request = request_for(&bench, "limited", 0);
    volume_record *volume = NULL, *again = NULL;
    request.limit_bytes = 5 << 20;
    must(volume_create(bench.engine, &request, &bench.arena, &volume));
    CHECK_NUMBER(volume->size_bytes, 5 << 20);
    must(volume_create(bench.engine, &request, &bench.arena, &again));
    CHECK_TEXT(again->handle, volume->handle);
    request.name = "hardly limited";
    request.limit_bytes = INT64_MAX;
    must(volume_create(bench.engine, &request, &bench.arena, &volume));
    CHECK(volume->size_bytes > 0);
    bench_close(&bench);
}

/* A row of before has no mark, and its image was copied on write unless it asked not to be. */
static void
images_are_written_in_place_unless_they_are_older(void)
{
    struct bench bench;
    bench_open(&bench);
    volume_record *volume, *asked;
    struct volume_request request = request_for(&bench, "image", 1 << 20);
    text_map_set(&request.parameters, &bench.arena, "kind", "image");
    must(volume_create(bench.engine, &request, &bench.arena, &volume));
    CHECK(volume_settings(volume, &bench.arena).nocow);
    volume->nocow = false;
    CHECK(!volume_settings(volume, &bench.arena).nocow);
    request.name = "asked";
    text_map_set(&request.parameters, &bench.arena, "nocow", "true");
    must(volume_create(bench.engine, &request, &bench.arena, &asked));
    asked->nocow = false;
    CHECK(volume_settings(asked, &bench.arena).nocow);
    CHECK(!volume_settings(create(&bench, "directory"), &bench.arena).nocow);
    bench_close(&bench);
}

static void
unknown_parameters_are_refused(void)
{
    struct bench bench;
    volume_record *volume;
    bench_open(&bench);
    struct volume_request request = request_for(&bench, "a", 0);
    text_map_set(&request.parameters, &bench.arena, "colour", "red");
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &volume)),
                 CODE_INVALID_ARGUMENT);
    bench_close(&bench);
}

static void
a_clone_is_a_copy_and_can_be_asked_for_again(void)
{
    struct bench bench;
    volume_record *clone, *again;
    bench_open(&bench);
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "one");
    struct volume_request request = request_for(&bench, "clone", 0);
    request.source_kind = SOURCE_VOLUME;
    request.source_handle = source->handle;
    must(volume_create(bench.engine, &request, &bench.arena, &clone));
    write_file(&bench, source, "two");
    check_file(&bench, clone, "one");
    must(volume_create(bench.engine, &request, &bench.arena, &again));
    CHECK_TEXT(again->handle, clone->handle);
    request.source_handle = "nothing";
    request.name = "other";
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_NOT_FOUND);
    bench_close(&bench);
}

static void
a_snapshot_outlives_its_volume(void)
{
    struct bench bench;
    struct text_map none = {0};
    snapshot_record *snapshot, *again;
    volume_record *restored;
    bench_open(&bench);
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "one");
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &snapshot));
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &again));
    CHECK_TEXT(again->handle, snapshot->handle);
    must(volume_delete(bench.engine, source->handle));
    struct volume_request request = request_for(&bench, "restored", 0);
    request.source_kind = SOURCE_SNAPSHOT;
    request.source_handle = snapshot->handle;
    must(volume_create(bench.engine, &request, &bench.arena, &restored));
    check_file(&bench, restored, "one");
    must(snapshot_delete(bench.engine, snapshot->handle));
    must(snapshot_delete(bench.engine, snapshot->handle));
    bench_close(&bench);
}

static void
an_attached_volume_cannot_be_deleted(void)
{
    struct bench bench;
    bench_open(&bench);
    volume_record *volume = create(&bench, "a");
    must(volume_attach(bench.engine, volume->handle, "node-1", false, &bench.mount, 0));
    must(volume_attach(bench.engine, volume->handle, "node-1", false, &bench.mount, 0));
    CHECK_NUMBER(
        take_code(volume_attach(bench.engine, volume->handle, "node-1", true, &bench.mount, 0)),
        CODE_ALREADY_EXISTS);
    CHECK_NUMBER(
        take_code(volume_attach(bench.engine, volume->handle, "node-2", false, &bench.mount, 0)),
        CODE_FAILED_PRECONDITION);
    CHECK_NUMBER(take_code(volume_delete(bench.engine, volume->handle)), CODE_FAILED_PRECONDITION);
    must(volume_detach(bench.engine, volume->handle, ""));
    must(volume_delete(bench.engine, volume->handle));
    must(volume_delete(bench.engine, volume->handle));
    bench_close(&bench);
}

static void
pages_stand_though_volumes_go(void)
{
    struct bench bench;
    struct volume_page page;
    volume_record *volumes[5];
    bench_open(&bench);
    for (int i = 0; i < 5; i++) {
        volumes[i] = create(&bench, (const char[2]){(char)('a' + i), '\0'});
        usleep(2000); /* handles sort by the millisecond */
    }
    must(volume_list(bench.engine, NULL, 2, &bench.arena, &page));
    CHECK_NUMBER(page.count, 2);
    CHECK_TEXT(page.volumes[0]->handle, volumes[0]->handle);
    CHECK(page.next != NULL);
    must(volume_delete(bench.engine, volumes[1]->handle));
    must(volume_delete(bench.engine, volumes[2]->handle));
    must(volume_list(bench.engine, page.next, 2, &bench.arena, &page));
    CHECK_NUMBER(page.count, 2);
    CHECK_TEXT(page.volumes[0]->handle, volumes[3]->handle);
    CHECK(page.next == NULL);
    bench_close(&bench);
}

static void
a_name_that_is_being_worked_on_is_told_so(void)
{
    struct bench bench;
    struct name_lock *lock;
    volume_record *volume;
    bench_open(&bench);
    must(name_lock_take(&bench.engine->locks, "volume", "a", &lock));
    struct volume_request request = request_for(&bench, "a", 0);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &volume)),
                 CODE_ABORTED);
    name_lock_release(&lock);
    must(volume_create(bench.engine, &request, &bench.arena, &volume));
    bench_close(&bench);
}

/* The sweep runs beside everything else. */
static bool
is_gone_soon(const char *path)
{
    struct stat found;
    for (int i = 0; i < 500; i++) {
        if (stat(path, &found) != 0)
            return true;
        usleep(10000);
    }
    return false;
}

static void
make_orphan(struct bench *bench, const char *handle, char *path, size_t size)
{
    struct data orphan = {0};
    snprintf(orphan.handle, sizeof orphan.handle, "%s", handle);
    must(backend_create(bench->backend, &orphan, &(struct data_settings){0}));
    must(backend_path(bench->backend, &orphan, path, size));
}

static void
data_without_a_row_is_swept_away_after_the_start(void)
{
    struct bench bench;
    struct stat found;
    char old[4096], young[4096];
    bench_open(&bench);
    volume_record *kept = create(&bench, "kept");
    write_file(&bench, kept, "one");
    engine_close(bench.engine); /* so that nobody sweeps what is being made */
    make_orphan(&bench, "00000000000000000000000", old, sizeof old);
    make_orphan(&bench, "zzzzzzzzzz0000000000000", young, sizeof young);
    open_engine(&bench);
    CHECK(is_gone_soon(old));
    engine_close(bench.engine);
    bench.engine = NULL;
    /* It might be one that is being made. */
    CHECK(stat(young, &found) == 0);
    open_engine(&bench);
    check_file(&bench, kept, "one");
    bench_close(&bench);
}

static void
a_volume_that_a_power_failure_has_undone_is_made_again(void)
{
    struct bench bench;
    struct stat found;
    char path[4096];
    bench_open(&bench);
    volume_record *volume = create(&bench, "a");
    struct data data = volume_data(volume);
    must(backend_path(bench.backend, &data, path, sizeof path));
    engine_close(bench.engine);
    must(backend_remove(bench.backend, &data));
    open_engine(&bench);
    CHECK(stat(path, &found) == 0);
    bench_close(&bench);
}

/* As long as the kernel runs nothing can be undone, so nobody looks: what is missing was taken away. */
static void
nothing_is_made_again_while_the_kernel_runs(void)
{
    struct bench bench;
    struct stat found;
    char path[4096];
    bench_open(&bench);
    engine_close(bench.engine);
    bench.boot_id = "first";
    open_engine(&bench);
    volume_record *volume = create(&bench, "a");
    struct data data = volume_data(volume);
    must(backend_path(bench.backend, &data, path, sizeof path));
    engine_close(bench.engine);
    must(backend_remove(bench.backend, &data));
    open_engine(&bench);
    CHECK(stat(path, &found) != 0);
    engine_close(bench.engine);
    bench.boot_id = "second";
    open_engine(&bench);
    CHECK(stat(path, &found) == 0);
    bench_close(&bench);
}

static void
volumes_without_their_store_are_not_swept_away(void)
{
    struct bench bench;
    struct stat found;
    char path[4096];
    bench_open(&bench);
    volume_record *volume = create(&bench, "a");
    struct data data = volume_data(volume);
    must(backend_path(bench.backend, &data, path, sizeof path));
    engine_close(bench.engine);
    store_close(bench.store);
    must(store_open("memory:", NULL, &bench.store));
    bench.engine = NULL;
    CHECK_NUMBER(take_code(engine_open(&(struct engine_options){bench.store, bench.backend,
                                                                &node_volume_use, "node-1", &quiet},
                                       &bench.engine)),
                 CODE_FAILED_PRECONDITION);
    CHECK(stat(path, &found) == 0);
    bench_close(&bench);
}

/* The process died between growing the image and writing its row. */
static void
an_image_larger_than_its_row_is_copied_and_changed_as_it_is(void)
{
    struct bench bench;
    volume_record *volume, *clone;
    snapshot_record *snapshot;
    int64_t size;
    bench_open(&bench);
    bench.mount_type.fs_type = "ext4";
    struct volume_request request = request_for(&bench, "a", 8 << 20);
    must(volume_create(bench.engine, &request, &bench.arena, &volume));
    struct data data = volume_data(volume);
    must(backend_change(bench.backend, &data, &(struct data_settings){.size_bytes = 16 << 20}));
    struct text_map none = {0};
    must(snapshot_create(bench.engine, "s", volume->handle, &none, 10000, &bench.arena, &snapshot));
    CHECK_NUMBER(snapshot->size_bytes, 16 << 20);
    struct volume_request copy = request_for(&bench, "b", 0);
    copy.source_kind = SOURCE_VOLUME;
    copy.source_handle = volume->handle;
    copy.wait_ms = 10000;
    must(volume_create(bench.engine, &copy, &bench.arena, &clone));
    CHECK_NUMBER(clone->size_bytes, 16 << 20);
    must(volume_expand(bench.engine, volume->handle, 12 << 20, 0, &size));
    CHECK_NUMBER(size, 16 << 20);
    must(volume_get(bench.engine, volume->handle, &bench.arena, &volume));
    CHECK_NUMBER(volume->size_bytes, 16 << 20);
    bench_close(&bench);
}

int
main(void)
{
    the_same_name_gives_the_same_volume();
    the_same_name_with_other_wishes_is_refused();
    a_limit_alone_is_a_limit();
    images_are_written_in_place_unless_they_are_older();
    unknown_parameters_are_refused();
    a_clone_is_a_copy_and_can_be_asked_for_again();
    a_snapshot_outlives_its_volume();
    an_attached_volume_cannot_be_deleted();
    pages_stand_though_volumes_go();
    a_name_that_is_being_worked_on_is_told_so();
    data_without_a_row_is_swept_away_after_the_start();
    a_volume_that_a_power_failure_has_undone_is_made_again();
    nothing_is_made_again_while_the_kernel_runs();
    volumes_without_their_store_are_not_swept_away();
    an_image_larger_than_its_row_is_copied_and_changed_as_it_is();
    return check_report("test_volumes");
}
