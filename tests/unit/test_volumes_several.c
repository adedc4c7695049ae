/* SPDX-License-Identifier: Apache-2.0 */
/* The engine over two back ends: which one a volume comes to, clones and restores into the other one, and what a reboot takes. */
#include <fcntl.h>

#include "base/text_map.h"
#include "several_backends.h"
#include "volumes/group.h"
#include "volumes_ends.h"

static const struct text_map none = {0};

/* ---- short ways ---- */

static void
several_open(struct bench *bench)
{
    char second[128];
    bench_open(bench);
    engine_close(bench->engine); /* it uses the back end from its own thread */
    snprintf(second, sizeof second, "%s/second", bench->directory);
    add_second(bench->backend, second, "memory", true, &quiet);
    open_engine(bench);
}

static struct volume_request
request_in(struct bench *bench, const char *name, const char *backend)
{
    struct volume_request request = request_for(bench, name, 0);
    if (backend)
        text_map_set(&request.parameters, &bench->arena, "backend", backend);
    return request;
}

static volume_record *
make(struct bench *bench, struct volume_request request, enum source_kind kind, const char *source)
{
    volume_record *volume = NULL;
    request.source_kind = kind;
    request.source_handle = source;
    must(volume_create(bench->engine, &request, &bench->arena, &volume));
    return volume;
}

static bool
is_in_second(const volume_record *volume)
{
    const char *end = strrchr(volume->handle, '-');
    return end && strcmp(end, "-memory") == 0;
}

static size_t
count_operations(struct bench *bench)
{
    struct ops_page page;
    must(ops_list(bench->engine->ops, NULL, 0, &bench->arena, &page));
    for (size_t i = 0; i < page.count; i++)
        CHECK_NUMBER(page.records[i]->state, OPERATION_STATE(SUCCEEDED));
    return page.count;
}

static struct volume_request
as_image(struct bench *bench, struct volume_request request)
{
    text_map_set(&request.parameters, &bench->arena, "kind", "image");
    request.required_bytes = 1 << 20;
    return request;
}

static void
write_image(struct bench *bench, const volume_record *volume, const char *text)
{
    char path[4096];
    struct data data = volume_data(volume);
    must(backend_path(bench->backend, &data, path, sizeof path));
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, text, strlen(text), 4096) == (ssize_t)strlen(text));
    close(fd);
}

static void
check_image(struct bench *bench, const volume_record *volume, const char *text)
{
    char path[4096], found[64] = "";
    struct data data = volume_data(volume);
    must(backend_path(bench->backend, &data, path, sizeof path));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && pread(fd, found, strlen(text), 4096) == (ssize_t)strlen(text));
    CHECK_TEXT(found, text);
    close(fd);
}

/* ---- where a volume comes to ---- */

static void
a_volume_comes_where_it_is_asked_for(void)
{
    struct bench bench;
    volume_record *again = NULL;
    several_open(&bench);
    CHECK(!is_in_second(create(&bench, "default")));
    CHECK(!is_in_second(make(&bench, request_in(&bench, "first", "dir"), SOURCE_NONE, NULL)));
    struct volume_request request = request_in(&bench, "second", "memory");
    volume_record *volume = make(&bench, request, SOURCE_NONE, NULL);
    CHECK(is_in_second(volume));
    must(volume_create(bench.engine, &request, &bench.arena, &again));
    CHECK_TEXT(again->handle, volume->handle);
    request = request_in(&bench, "second", NULL);
    CHECK_NUMBER(take_code(volume_create(bench.engine, &request, &bench.arena, &again)),
                 CODE_ALREADY_EXISTS);
    must(volume_delete(bench.engine, volume->handle));
    bench_close(&bench);
}

static void
a_back_end_that_is_not_there_is_told_with_those_that_are(void)
{
    struct bench bench;
    volume_record *volume = NULL;
    struct text_map change = {0};
    several_open(&bench);
    struct volume_request request = request_in(&bench, "v", "btrfs");
    struct error *error = volume_create(bench.engine, &request, &bench.arena, &volume);
    CHECK(error && strstr(error->message, "dir, memory"));
    CHECK_NUMBER(take_code(error), CODE_INVALID_ARGUMENT);
    volume = create(&bench, "v");
    text_map_set(&change, &bench.arena, "backend", "memory");
    CHECK_NUMBER(take_code(volume_modify(bench.engine, volume->handle, &change)),
                 CODE_INVALID_ARGUMENT);
    bench_close(&bench);
}

/* ---- copies ---- */

static void
a_tree_is_cloned_into_the_other_and_back(void)
{
    struct bench bench;
    several_open(&bench);
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "one");
    volume_record *there =
        make(&bench, request_in(&bench, "there", "memory"), SOURCE_VOLUME, source->handle);
    CHECK(is_in_second(there));
    check_file(&bench, there, "one");
    write_file(&bench, there, "two");
    volume_record *beside =
        make(&bench, request_in(&bench, "beside", NULL), SOURCE_VOLUME, there->handle);
    CHECK(is_in_second(beside));
    check_file(&bench, beside, "two");
    volume_record *back =
        make(&bench, request_in(&bench, "back", "dir"), SOURCE_VOLUME, there->handle);
    CHECK(!is_in_second(back));
    check_file(&bench, back, "two");
    check_file(&bench, source, "one");
    CHECK_NUMBER(count_operations(&bench), 3);
    bench_close(&bench);
}

static void
an_image_is_cloned_into_the_other_and_back(void)
{
    struct bench bench;
    several_open(&bench);
    volume_record *source =
        make(&bench, as_image(&bench, request_in(&bench, "source", NULL)), SOURCE_NONE, NULL);
    write_image(&bench, source, "blocks");
    volume_record *there = make(&bench, as_image(&bench, request_in(&bench, "there", "memory")),
                                SOURCE_VOLUME, source->handle);
    CHECK(is_in_second(there));
    check_image(&bench, there, "blocks");
    struct volume_request request = as_image(&bench, request_in(&bench, "back", "dir"));
    request.required_bytes = 2 << 20;
    volume_record *back = make(&bench, request, SOURCE_VOLUME, there->handle);
    CHECK(!is_in_second(back));
    CHECK_NUMBER(back->size_bytes, 2 << 20);
    check_image(&bench, back, "blocks");
    CHECK_NUMBER(count_operations(&bench), 2);
    bench_close(&bench);
}

/* However fast copies are where the source is. */
static void
a_clone_into_the_other_is_an_operation(void)
{
    struct bench bench;
    several_open(&bench);
    bench.backend->copies_are_instant = true;
    volume_record *source = create(&bench, "source");
    write_file(&bench, source, "one");
    make(&bench, request_in(&bench, "beside", NULL), SOURCE_VOLUME, source->handle);
    CHECK_NUMBER(count_operations(&bench), 0);
    volume_record *there =
        make(&bench, request_in(&bench, "there", "memory"), SOURCE_VOLUME, source->handle);
    check_file(&bench, there, "one");
    CHECK_NUMBER(count_operations(&bench), 1);
    bench_close(&bench);
}

static void
a_snapshot_stays_with_its_volume_and_is_restored_into_either(void)
{
    struct bench bench;
    snapshot_record *snapshot;
    several_open(&bench);
    volume_record *source = make(&bench, request_in(&bench, "v", "memory"), SOURCE_NONE, NULL);
    write_file(&bench, source, "one");
    must(snapshot_create(bench.engine, "s", source->handle, &none, PATIENCE_MS, &bench.arena,
                         &snapshot));
    CHECK(strstr(snapshot->handle, "-memory") != NULL);
    write_file(&bench, source, "two");
    volume_record *same =
        make(&bench, request_in(&bench, "same", NULL), SOURCE_SNAPSHOT, snapshot->handle);
    volume_record *other =
        make(&bench, request_in(&bench, "other", "dir"), SOURCE_SNAPSHOT, snapshot->handle);
    CHECK(is_in_second(same) && !is_in_second(other));
    check_file(&bench, same, "one");
    check_file(&bench, other, "one");
    must(snapshot_delete(bench.engine, snapshot->handle));
    bench_close(&bench);
}

static void
a_group_is_of_volumes_of_one_back_end(void)
{
    struct bench bench;
    struct group group;
    several_open(&bench);
    const char *mixed[] = {create(&bench, "a")->handle, NULL};
    mixed[1] = make(&bench, request_in(&bench, "b", "memory"), SOURCE_NONE, NULL)->handle;
    const char *alike[] = {
        mixed[1], make(&bench, request_in(&bench, "c", "memory"), SOURCE_NONE, NULL)->handle};
    CHECK_NUMBER(take_code(group_create(bench.engine, "g", mixed, 2, &none, &bench.arena, &group)),
                 CODE_FAILED_PRECONDITION);
    must(group_create(bench.engine, "g", alike, 2, &none, &bench.arena, &group));
    CHECK_NUMBER(group.count, 2);
    must(group_delete(bench.engine, group.record->handle));
    bench_close(&bench);
}

/* ---- a restart ---- */

static void
drop_data(struct bench *bench, const volume_record *volume)
{
    struct data data = volume_data(volume);
    must(backend_remove(bench->backend, &data));
}

/* Only rows of what was in memory are forgotten: what a disk had may come back with it. */
static void
a_reboot_takes_only_what_was_in_memory(void)
{
    struct bench bench;
    volume_record *found;
    several_open(&bench);
    volume_record *lost = make(&bench, request_in(&bench, "lost", "memory"), SOURCE_NONE, NULL);
    volume_record *there = make(&bench, request_in(&bench, "there", "memory"), SOURCE_NONE, NULL);
    volume_record *first = create(&bench, "first");
    drop_data(&bench, lost);
    drop_data(&bench, first);
    engine_close(bench.engine);
    open_engine(&bench);
    CHECK_NUMBER(take_code(volume_get(bench.engine, lost->handle, &bench.arena, &found)),
                 CODE_NOT_FOUND);
    must(volume_get(bench.engine, there->handle, &bench.arena, &found));
    must(volume_get(bench.engine, first->handle, &bench.arena, &found));
    bench_close(&bench);
}

int
main(void)
{
    a_volume_comes_where_it_is_asked_for();
    a_back_end_that_is_not_there_is_told_with_those_that_are();
    a_tree_is_cloned_into_the_other_and_back();
    an_image_is_cloned_into_the_other_and_back();
    a_clone_into_the_other_is_an_operation();
    a_snapshot_stays_with_its_volume_and_is_restored_into_either();
    a_group_is_of_volumes_of_one_back_end();
    a_reboot_takes_only_what_was_in_memory();
    return check_report("test_volumes_several");
}
