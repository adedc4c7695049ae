/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine makes of what a power cut leaves: data is set back by hand between two starts, each of which is the first of its boot. */
#include <sys/stat.h>

#include "volumes/held.h"
#include "volumes/mend.h"
#include "volumes/settled.h"
#include "volumes_ends.h"

#define MIB (INT64_C(1) << 20)

/* ---- short ways ---- */

static volume_record *
create_image(struct bench *bench, const char *name, int64_t size)
{
    volume_record *volume = NULL;
    bench->mount_type.fs_type = "ext4";
    struct volume_request request = request_for(bench, name, size);
    must(volume_create(bench->engine, &request, &bench->arena, &volume));
    bench->mount_type.fs_type = "";
    return volume;
}

static void
path_of(struct bench *bench, const volume_record *volume, char path[4096])
{
    struct data data = volume_data(volume);
    must(backend_path(bench->backend, &data, path, 4096));
}

static int64_t
size_of(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 ? found.st_size : -1;
}

static void
reopen(struct bench *bench)
{
    engine_close(bench->engine);
    open_engine(bench);
}

static bool
has_note(struct bench *bench, const volume_record *volume)
{
    struct data data = volume_data(volume);
    uint8_t note[BACKEND_NOTE_SIZE];
    size_t size = 0;
    size_t wanted_size;
    uint8_t *wanted = rows_pack(&volume->base, &bench->arena, &wanted_size);
    struct error *error AUTO(error_cleanup) =
        backend_read_note(bench->backend, &data, note, sizeof note, &size);
    return !error && size == wanted_size && memcmp(note, wanted, size) == 0;
}

/* After its start the engine looks at all volumes itself, and may hold one for a moment. */
static bool
is_held(struct error *error)
{
    enum code code = take_code(error);
    CHECK(code == CODE_OK || code == CODE_ABORTED);
    return code == CODE_ABORTED;
}

static void
hold(struct bench *bench, const volume_record *volume, struct held_volume *held)
{
    while (is_held(held_take(bench->engine, volume->handle, 0, &bench->arena, held)))
        usleep(1000);
}

static void
expand(struct bench *bench, const volume_record *volume)
{
    int64_t size;
    while (is_held(volume_expand(bench->engine, volume->handle, 16 * MIB, 0, &size)))
        usleep(1000);
    CHECK_NUMBER(size, 16 * MIB);
}

/* What is older than the last start is looked at beside everything else. */
static bool
has_size_soon(const char *path, int64_t size)
{
    for (int i = 0; i < 1000 && size_of(path) != size; i++)
        usleep(10000);
    return size_of(path) == size;
}

static bool
has_note_soon(struct bench *bench, const volume_record *volume)
{
    for (int i = 0; i < 1000 && !has_note(bench, volume); i++)
        usleep(10000);
    return has_note(bench, volume);
}

/* ---- facts ---- */

static void
a_size_that_was_undone_is_there_again_before_anybody_asks(void)
{
    struct bench bench;
    char path[4096];
    bench_open(&bench);
    path_of(&bench, create_image(&bench, "young", 16 * MIB), path);
    engine_close(bench.engine);
    CHECK(truncate(path, 8 * MIB) == 0);
    open_engine(&bench);
    CHECK_NUMBER(size_of(path), 16 * MIB);
    bench_close(&bench);
}

static void
a_size_of_an_old_volume_is_there_again_soon(void)
{
    struct bench bench;
    char path[4096];
    bench_open(&bench);
    path_of(&bench, create_image(&bench, "old", 16 * MIB), path);
    reopen(&bench);
    engine_close(bench.engine);
    CHECK(truncate(path, 8 * MIB) == 0);
    open_engine(&bench);
    CHECK(has_size_soon(path, 16 * MIB));
    bench_close(&bench);
}

/* Whoever holds the volume when it is to be put right does not put it right. */
static void
a_volume_that_was_held_is_put_right_later(void)
{
    struct bench bench;
    struct held_volume held = {0};
    struct mend_left left;
    char path[4096];
    bench_open(&bench);
    volume_record *volume = create_image(&bench, "held", 16 * MIB);
    path_of(&bench, volume, path);
    hold(&bench, volume, &held);
    CHECK(truncate(path, 8 * MIB) == 0);
    must(mend_all(bench.engine, "", &left));
    CHECK(left.busy && !left.failed);
    CHECK_NUMBER(size_of(path), 8 * MIB);
    held_release(&held);
    do /* the engine's own thread may be at it */
        must(mend_all(bench.engine, "", &left));
    while (left.busy);
    CHECK(!left.failed);
    CHECK_NUMBER(size_of(path), 16 * MIB);
    bench_close(&bench);
}

/* A directory in the place of the image: it cannot be put right. The next process tries again. */
static void
what_could_not_be_put_right_is_tried_again_in_the_same_boot(void)
{
    struct bench bench;
    char path[4096], aside[4200];
    bench_open(&bench);
    path_of(&bench, create_image(&bench, "old", 16 * MIB), path);
    reopen(&bench);
    engine_close(bench.engine);
    snprintf(aside, sizeof aside, "%s.aside", path);
    CHECK(truncate(path, 8 * MIB) == 0);
    CHECK(rename(path, aside) == 0 && mkdir(path, 0700) == 0);
    bench.boot_id = "second";
    open_engine(&bench);
    engine_close(bench.engine);
    CHECK(rmdir(path) == 0 && rename(aside, path) == 0);
    open_engine(&bench);
    CHECK(has_size_soon(path, 16 * MIB));
    bench_close(&bench);
}

/* Of the image, and so of the file system in it: it must grow again at the next mount. */
static void
growth_that_was_undone_is_forgotten(void)
{
    struct bench bench;
    struct held_volume held = {0};
    char path[4096];
    bench_open(&bench);
    volume_record *volume = create_image(&bench, "grown", 16 * MIB);
    path_of(&bench, volume, path);
    hold(&bench, volume, &held);
    held.record->formatted_bytes = 16 * MIB;
    must(held_save(bench.engine, &held, &bench.arena));
    held_release(&held);
    engine_close(bench.engine);
    CHECK(truncate(path, 8 * MIB) == 0);
    open_engine(&bench);
    must(volume_get(bench.engine, volume->handle, &bench.arena, &volume));
    CHECK_NUMBER(volume->size_bytes, 16 * MIB);
    CHECK_NUMBER(volume->formatted_bytes, 8 * MIB);
    bench_close(&bench);
}

static void
asking_again_for_a_size_makes_it_so(void)
{
    struct bench bench;
    char path[4096];
    bench_open(&bench);
    volume_record *volume = create_image(&bench, "a", 8 * MIB);
    path_of(&bench, volume, path);
    expand(&bench, volume);
    CHECK(truncate(path, 8 * MIB) == 0);
    expand(&bench, volume);
    CHECK_NUMBER(size_of(path), 16 * MIB);
    bench_close(&bench);
}

static void
a_note_that_was_undone_is_written_again(void)
{
    struct bench bench;
    bench_open(&bench);
    volume_record *volume = create(&bench, "a");
    struct data data = volume_data(volume);
    CHECK(has_note(&bench, volume));
    engine_close(bench.engine);
    must(backend_write_note(bench.backend, &data, "", 0));
    open_engine(&bench);
    CHECK(has_note(&bench, volume));
    reopen(&bench);
    engine_close(bench.engine);
    must(backend_write_note(bench.backend, &data, "older", 5));
    open_engine(&bench);
    CHECK(has_note_soon(&bench, volume));
    bench_close(&bench);
}

static void
the_note_of_an_expanded_volume_tells_its_size(void)
{
    struct bench bench;
    bench_open(&bench);
    volume_record *volume = create_image(&bench, "a", 8 * MIB);
    expand(&bench, volume);
    must(volume_get(bench.engine, volume->handle, &bench.arena, &volume));
    CHECK_NUMBER(volume->size_bytes, 16 * MIB);
    CHECK(has_note(&bench, volume));
    bench_close(&bench);
}

/* Its row says that it was empty once; but it has outlived a start, so it was durable, and somebody may have written to it. */
static void
a_lost_volume_is_not_replaced_by_an_empty_one(void)
{
    struct bench bench;
    char path[4096];
    bench_open(&bench);
    volume_record *volume = create(&bench, "a");
    struct data data = volume_data(volume);
    path_of(&bench, volume, path);
    write_file(&bench, volume, "precious");
    reopen(&bench);
    engine_close(bench.engine);
    must(backend_remove(bench.backend, &data));
    open_engine(&bench);
    CHECK_NUMBER(size_of(path), -1);
    bench_close(&bench);
}

/* As a rebuild makes it. */
static void
a_store_that_does_not_tell_what_is_durable_replaces_nothing(void)
{
    struct bench bench;
    char path[4096];
    struct store_change forgotten[] = {{"engine/settled", NULL, 0, STORE_ANY},
                                       {"engine/boot", NULL, 0, STORE_ANY}};
    bench_open(&bench);
    volume_record *volume = create(&bench, "a");
    struct data data = volume_data(volume);
    path_of(&bench, volume, path);
    engine_close(bench.engine);
    must(store_write(bench.store, forgotten, COUNT_OF(forgotten), NULL));
    must(backend_remove(bench.backend, &data));
    open_engine(&bench);
    CHECK_NUMBER(size_of(path), -1);
    bench_close(&bench);
}

/* The data of the very first volume is there, its row is not. */
static void
a_cut_in_the_first_create_keeps_nobody_from_starting(void)
{
    struct bench bench;
    struct data first = {.handle = "00000000010000000000000"};
    bench_open(&bench);
    engine_close(bench.engine);
    must(backend_create(bench.backend, &first, &(struct data_settings){0}));
    open_engine(&bench);
    bench_close(&bench);
}

/* The store remembers a time that the clock, with an empty battery, is years behind of. */
static void
a_clock_that_is_behind_loses_no_volume(void)
{
    struct bench bench;
    char path[4096], older[BACKEND_HANDLE_SIZE];
    bench_open(&bench);
    must(settled_write(bench.engine, (uint64_t)4102444800000)); /* 2100-01-01 */
    bench.boot_id = "second";
    reopen(&bench);
    volume_record *volume = create(&bench, "a");
    struct data data = volume_data(volume);
    path_of(&bench, volume, path);
    snprintf(older, sizeof older, "%s", volume->handle);
    engine_close(bench.engine);
    must(backend_remove(bench.backend, &data));
    bench.boot_id = "third";
    open_engine(&bench);
    CHECK(size_of(path) >= 0);
    CHECK(strcmp(create(&bench, "b")->handle, older) > 0);
    bench_close(&bench);
}

int
main(void)
{
    a_size_that_was_undone_is_there_again_before_anybody_asks();
    a_size_of_an_old_volume_is_there_again_soon();
    a_volume_that_was_held_is_put_right_later();
    what_could_not_be_put_right_is_tried_again_in_the_same_boot();
    growth_that_was_undone_is_forgotten();
    asking_again_for_a_size_makes_it_so();
    a_note_that_was_undone_is_written_again();
    the_note_of_an_expanded_volume_tells_its_size();
    a_lost_volume_is_not_replaced_by_an_empty_one();
    a_store_that_does_not_tell_what_is_durable_replaces_nothing();
    a_cut_in_the_first_create_keeps_nobody_from_starting();
    a_clock_that_is_behind_loses_no_volume();
    return check_report("test_volumes_power");
}
