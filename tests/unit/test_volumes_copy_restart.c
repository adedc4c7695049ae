/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that a stop or a crash interrupts. */
#include <signal.h>
#include <sys/wait.h>

#include "copy_bench.h"
#include "volumes/copy.h"
#include "volumes/mount_rows.h"

/* ---- restarts ---- */

/* From here on volumes are images. */
static void
use_images(struct bench *bench)
{
    bench->backend->cuts_images = false; /* whatever file system the test runs on */
    bench->mount_type.fs_type = "ext4";
}

static volume_record *
create_image(struct bench *bench, const char *name)
{
    char path[4096], bytes[4096];
    use_images(bench);
    volume_record *volume = create(bench, name);
    struct data data = volume_data(volume);
    memset(bytes, 'x', sizeof bytes);
    must(backend_path(bench->backend, &data, path, sizeof path));
    FILE *image = fopen(path, "r+e");
    CHECK(image && fwrite(bytes, sizeof bytes, 1, image) == 1);
    if (image)
        fclose(image);
    return volume;
}

static void
check_image(struct bench *bench, const volume_record *volume)
{
    char path[4096];
    struct data data = volume_data(volume);
    must(backend_path(bench->backend, &data, path, sizeof path));
    FILE *image = fopen(path, "re");
    CHECK(image && fgetc(image) == 'x');
    if (image)
        fclose(image);
}

static void
a_stop_lets_copies_go_on_at_the_next_start(void)
{
    struct bench bench;
    volume_record *clone;
    snapshot_record *snapshot;
    slow_open(&bench);
    volume_record *source = create_image(&bench, "source");
    struct volume_request request = clone_of(&bench, "clone", source->handle, 0);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ABORTED);
    must(snapshot_create(bench.engine, "s", source->handle, &none, 0, &bench.arena, &snapshot));
    CHECK(wait_until_begun(2));
    engine_stop(bench.engine);
    request.wait_ms = PATIENCE_MS; /* and yet it comes back at once */
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ABORTED);
    reopen(&bench);
    CHECK(wait_until_begun(4));
    CHECK_NUMBER(take_code(volume_delete(bench.engine, source->handle)), CODE_FAILED_PRECONDITION);
    atomic_store(&is_held, false);
    must(volume_create(bench.engine, &request, &bench.arena, &clone));
    check_image(&bench, clone);
    const char *handle = snapshot->handle;
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &snapshot));
    CHECK_TEXT(snapshot->handle, handle);
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(READY));
    CHECK_NUMBER(atomic_load(&copies), 2);
    bench_close(&bench);
}

/* It was answered, and is of that instant. The volume has been written to since. */
static void
a_snapshot_of_another_instant_is_not_made(void)
{
    struct bench bench;
    snapshot_record *snapshot;
    operation_record *operation;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "before");
    must(snapshot_create(bench.engine, "s", source->handle, &none, 0, &bench.arena, &snapshot));
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(COPYING));
    CHECK(wait_until_begun(1));
    engine_stop(bench.engine);
    write_file(&bench, source, "later");
    atomic_store(&is_held, false);
    reopen(&bench);
    const char *handle = find_operation(&bench, &operation);
    CHECK_TEXT(handle, snapshot->handle);
    must(ops_wait(bench.engine->ops, handle, PATIENCE_MS, &bench.arena, &operation));
    CHECK_NUMBER(operation->state, OPERATION_STATE(FAILED));
    CHECK_NUMBER(take_code(snapshot_get(bench.engine, handle, &bench.arena, &snapshot)),
                 CODE_NOT_FOUND);
    /* Asked for again it is another one. */
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &snapshot));
    CHECK(strcmp(snapshot->handle, handle) != 0);
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(READY));
    bench_close(&bench);
}

/* Each file would be as it was at another moment. */
static void
a_directory_that_changes_while_it_is_copied_is_refused(void)
{
    struct bench bench;
    snapshot_record *snapshot;
    volume_record *clone;
    operation_record *operation;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "before");
    must(snapshot_create(bench.engine, "s", source->handle, &none, 0, &bench.arena, &snapshot));
    struct volume_request request = clone_of(&bench, "clone", source->handle, 0);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ABORTED);
    CHECK(wait_until_begun(2));
    write_file(&bench, source, "later");
    atomic_store(&is_held, false);
    must(ops_wait(bench.engine->ops, snapshot->handle, PATIENCE_MS, &bench.arena, &operation));
    CHECK_NUMBER(operation->state, OPERATION_STATE(FAILED));
    CHECK_NUMBER(operation->error_code, CODE_FAILED_PRECONDITION);
    CHECK(strstr(operation->error_message, "changed while it was copied") != NULL);
    CHECK_NUMBER(take_code(snapshot_get(bench.engine, snapshot->handle, &bench.arena, &snapshot)),
                 CODE_NOT_FOUND);
    /* When nothing changes it is made, and so is the clone. */
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &snapshot));
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(READY));
    CHECK_TEXT(snapshot_consistency(bench.engine, snapshot, &bench.arena), "instant");
    request.wait_ms = PATIENCE_MS;
    error_free(volume_create(bench.engine, &request, &bench.arena, &clone)); /* the failed one */
    must(volume_create(bench.engine, &request, &bench.arena, &clone));
    check_file(&bench, clone, "later");
    bench_close(&bench);
}

static void
who_asks_for_each_file_for_itself_gets_a_copy_that_may_be_torn(void)
{
    struct bench bench;
    snapshot_record *snapshot;
    struct text_map parameters = {0};
    slow_open(&bench);
    text_map_set(&parameters, &bench.arena, "consistency", "files");
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "before");
    must(snapshot_create(bench.engine, "s", source->handle, &parameters, 0, &bench.arena,
                         &snapshot));
    CHECK(wait_until_begun(1));
    write_file(&bench, source, "later");
    atomic_store(&is_held, false);
    must(snapshot_create(bench.engine, "s", source->handle, &parameters, PATIENCE_MS, &bench.arena,
                         &snapshot));
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(READY));
    CHECK_TEXT(snapshot_consistency(bench.engine, snapshot, &bench.arena), "files");
    text_map_set(&parameters, &bench.arena, "consistency", "perfect");
    CHECK_NUMBER(take_code(snapshot_create(bench.engine, "other", source->handle, &parameters, 0,
                                           &bench.arena, &snapshot)),
                 CODE_INVALID_ARGUMENT);
    bench_close(&bench);
}

static void
without_its_source_a_copy_fails_at_the_next_start(void)
{
    struct bench bench;
    volume_record *clone;
    operation_record *operation;
    slow_open(&bench);
    volume_record *source = create(&bench, "source");
    struct volume_request request = clone_of(&bench, "clone", source->handle, 0);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_ABORTED);
    engine_stop(bench.engine);
    must(rows_delete(bench.engine, &volume_rows, &source->base)); /* as no request can */
    reopen(&bench);
    const char *handle = find_operation(&bench, &operation);
    must(ops_wait(bench.engine->ops, handle, PATIENCE_MS, &bench.arena, &operation));
    CHECK_NUMBER(operation->state, OPERATION_STATE(FAILED));
    CHECK_NUMBER(operation->error_code, CODE_NOT_FOUND);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &clone)),
                 CODE_NOT_FOUND);
    bench_close(&bench);
}

/* ---- a crash, with a store on disk ---- */

static void
open_on_disk(struct bench *bench)
{
    char url[128];
    snprintf(url, sizeof url, "sqlite:%s/store", bench->directory);
    must(store_open(url, NULL, &bench->store));
    must(backend_open("dir", &(struct backend_options){bench->directory, &quiet, 0},
                      &bench->backend));
    slow_down(bench->backend);
    atomic_store(&is_held, false);
    atomic_store(&stops_inside, true);
}

/* Answers for a source, a snapshot and a clone that are being copied, then waits for its end. */
static void
be_the_one_that_crashes(struct bench *bench, int told)
{
    volume_record *clone;
    snapshot_record *snapshot;
    open_on_disk(bench);
    open_engine(bench);
    volume_record *source = create_image(bench, "source");
    must(snapshot_create(bench->engine, "s", source->handle, &none, 0, &bench->arena, &snapshot));
    struct volume_request request = clone_of(bench, "clone", source->handle, 0);
    error_free(volume_create(bench->engine, &request, &bench->arena, &clone));
    while (atomic_load(&copies_inside) < 2)
        usleep(1000);
    if (write(told, snapshot->handle, strlen(snapshot->handle)) < 1)
        _exit(1);
    while (pause())
        continue;
}

/* And the sweep that comes then, in their midst, leaves them alone. */
static void
after_a_crash_copies_are_made_again(void)
{
    struct bench bench;
    volume_record *clone;
    snapshot_record *snapshot;
    struct volume_page volumes;
    char handle[BACKEND_HANDLE_SIZE] = "";
    int ends[2];
    bench_open(&bench); /* for its directory and messages */
    engine_close(bench.engine);
    backend_close(bench.backend);
    store_close(bench.store);
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0)
        be_the_one_that_crashes(&bench, ends[1]);
    close(ends[1]);
    CHECK(read(ends[0], handle, sizeof handle - 1) > 0);
    close(ends[0]);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    open_on_disk(&bench);
    use_images(&bench);
    atomic_store(&lists_after, 2);
    open_engine(&bench);
    while (!atomic_load(&lists))
        usleep(1000);
    atomic_store(&stops_inside, false);
    must(volume_list(bench.engine, NULL, 1, &bench.arena, &volumes));
    const char *source = volumes.volumes[0]->handle;
    must(snapshot_create(bench.engine, "s", source, &none, PATIENCE_MS, &bench.arena, &snapshot));
    CHECK_TEXT(snapshot->handle, handle);
    CHECK_NUMBER(snapshot->state, SNAPSHOT_STATE(READY));
    struct volume_request request = clone_of(&bench, "clone", source, PATIENCE_MS);
    must(volume_create(bench.engine, &request, &bench.arena, &clone));
    check_image(&bench, clone);
    CHECK_NUMBER(atomic_load(&copies), 2);
    bench_close(&bench);
}

int
main(void)
{
    after_a_crash_copies_are_made_again(); /* forks: before threads */
    a_stop_lets_copies_go_on_at_the_next_start();
    a_snapshot_of_another_instant_is_not_made();
    a_directory_that_changes_while_it_is_copied_is_refused();
    who_asks_for_each_file_for_itself_gets_a_copy_that_may_be_torn();
    without_its_source_a_copy_fails_at_the_next_start();
    return check_report("test_volumes_copy_restart");
}
