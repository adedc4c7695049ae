/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that take their time: the engine over a back end whose copies wait until the test lets them go. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "slow_backend.h"
#include "volumes/copy.h"
#include "volumes/mount_rows.h"
#include "volumes_ends.h"

#define VOLUME_STATE(name) SKYCAP__RECORDS__VOLUME_RECORD__STATE__##name
#define SNAPSHOT_STATE(name) SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__##name

#define MANY_COPIES 8 /* more than run at a time */

static const struct text_map none = {0};

/* ---- short ways ---- */

static void
slow_open(struct bench *bench)
{
    bench_open(bench);
    engine_close(bench->engine); /* it uses the back end from its own threads */
    slow_down(bench->backend);
    open_engine(bench);
}

static struct volume_request
clone_of(struct bench *bench, const char *name, const char *source_handle, uint64_t wait_ms)
{
    struct volume_request request = request_for(bench, name, 0);
    request.source_kind = SOURCE_VOLUME;
    request.source_handle = source_handle;
    request.wait_ms = wait_ms;
    return request;
}

/* The handle of the only operation there is. */
static const char *
find_operation(struct bench *bench, operation_record **out)
{
    struct ops_page page;
    must(ops_list(bench->engine->ops, NULL, 0, &bench->arena, &page));
    CHECK_NUMBER(page.count, 1);
    *out = page.records[0];
    return page.records[0]->id;
}

static unsigned
count_data(struct bench *bench)
{
    unsigned count = 0;
    char command[256];
    snprintf(command, sizeof command, "find '%s' -mindepth 2 -maxdepth 2 -type d | wc -l",
             bench->directory);
    FILE *found = popen(command, "re");
    CHECK(found && fscanf(found, "%u", &count) == 1);
    if (found)
        pclose(found);
    return count;
}

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

static void
reopen(struct bench *bench)
{
    engine_close(bench->engine);
    open_engine(bench);
}

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
    a_stop_lets_copies_go_on_at_the_next_start();
    a_snapshot_of_another_instant_is_not_made();
    a_directory_that_changes_while_it_is_copied_is_refused();
    who_asks_for_each_file_for_itself_gets_a_copy_that_may_be_torn();
    without_its_source_a_copy_fails_at_the_next_start();
    return check_report("test_volumes_copy");
}
