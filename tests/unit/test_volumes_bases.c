/* SPDX-License-Identifier: Apache-2.0 */
/* Common bases of transfers: who sees them, and how long they are kept. */
#include <unistd.h>

#include "base/clock.h"
#include "volumes/bases.h"
#include "volumes/data_lock.h"
#include "volumes_ends.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)

static struct row
read_row(struct bench *bench, const char *handle)
{
    struct row row;
    must(rows_get(bench->engine, &snapshot_rows, handle, &bench->arena, &row));
    return row;
}

static bool
exists(struct bench *bench, const snapshot_record *snapshot)
{
    snapshot_record *found;
    char path[4096];
    struct data data = snapshot_data(snapshot);
    enum code code =
        take_code(snapshot_get_any(bench->engine, snapshot->handle, &bench->arena, &found));
    enum code data_code = take_code(backend_path(bench->backend, &data, path, sizeof path));
    CHECK_NUMBER(code, data_code); /* the row and the data come and go together */
    return code == CODE_OK;
}

/* A base of the volume for the node, as old as that. */
static snapshot_record *
make_base(struct bench *bench, const volume_record *volume, const char *id, const char *node,
          int64_t age_hours, bool is_kept)
{
    snapshot_record *base;
    must(snapshot_create_base(bench->engine, bases_name(volume->handle, id, &bench->arena),
                              volume->handle, node, 0, PATIENCE_MS, &bench->arena, &base));
    struct row row = read_row(bench, base->handle);
    base = (snapshot_record *)row.record;
    base->kept = is_kept;
    base->created_ns = clock_unix_ns() - age_hours * HOUR_NS;
    must(rows_update(bench->engine, &snapshot_rows, row.record, &row.revision));
    return base;
}

static void
users_see_none(void)
{
    struct bench bench;
    struct text_map none = {0};
    struct snapshot_page page;
    snapshot_record *first, *second, *found;
    bench_open(&bench);
    volume_record *volume = create(&bench, "v");
    must(snapshot_create(bench.engine, "first", volume->handle, &none, PATIENCE_MS, &bench.arena,
                         &first));
    usleep(2000); /* handles of the same millisecond have no order */
    snapshot_record *base = make_base(&bench, volume, "a", "node-2", 0, true);
    make_base(&bench, volume, "b", "node-3", 0, true);
    usleep(2000);
    must(snapshot_create(bench.engine, "second", volume->handle, &none, PATIENCE_MS, &bench.arena,
                         &second));
    CHECK_NUMBER(take_code(snapshot_get(bench.engine, base->handle, &bench.arena, &found)),
                 CODE_NOT_FOUND);
    must(snapshot_delete(bench.engine, base->handle)); /* as if it were gone */
    CHECK(exists(&bench, base));
    must(snapshot_list(bench.engine, NULL, NULL, 0, &bench.arena, &page));
    CHECK_NUMBER(page.count, 2);
    must(snapshot_list(bench.engine, NULL, NULL, 1, &bench.arena, &page));
    CHECK_NUMBER(page.count, 1);
    CHECK_TEXT(page.next, first->handle);
    must(snapshot_list(bench.engine, NULL, page.next, 1, &bench.arena, &page));
    CHECK_NUMBER(page.count, 1);
    CHECK_TEXT(page.snapshots[0]->handle, second->handle);
    CHECK(!page.next);
    struct bases_list have;
    must(bases_find(bench.engine, volume->handle, &bench.arena, &have));
    CHECK_NUMBER(have.count, 4);
    CHECK_TEXT(have.handles[0], second->handle);
    CHECK_TEXT(have.handles[3], first->handle);
    bench_close(&bench);
}

static void
the_newest_of_each_volume_and_node_is_kept(void)
{
    struct bench bench;
    bench_open(&bench);
    volume_record *volume = create(&bench, "v"), *other = create(&bench, "w");
    snapshot_record *old = make_base(&bench, volume, "z", "node-2", 2, true);
    snapshot_record *of_other_volume = make_base(&bench, other, "a", "node-2", 2, true);
    snapshot_record *for_other_node = make_base(&bench, volume, "b", "node-3", 2, true);
    snapshot_record *is_open = make_base(&bench, volume, "c", "node-2", 2, false);
    snapshot_record *newest = make_base(&bench, volume, "a", "node-2", 1, true);
    bases_tidy(bench.engine);
    CHECK(!exists(&bench, old));
    CHECK(exists(&bench, of_other_volume));
    CHECK(exists(&bench, for_other_node));
    CHECK(exists(&bench, is_open));
    CHECK(exists(&bench, newest));
    bench_close(&bench);
}

static void
old_ones_go_unless_they_are_in_use(void)
{
    struct bench bench;
    struct name_lock *lock;
    bench_open(&bench);
    volume_record *volume = create(&bench, "v");
    snapshot_record *week = make_base(&bench, volume, "a", "node-2", 6 * 24, true);
    snapshot_record *older = make_base(&bench, volume, "b", "node-3", 8 * 24, true);
    snapshot_record *used = make_base(&bench, volume, "c", "node-4", 8 * 24, true);
    snapshot_record *abandoned = make_base(&bench, volume, "d", "node-2", 25, false);
    must(data_lock_shared(bench.engine, &snapshot_rows, used->handle, &lock));
    bases_tidy(bench.engine);
    CHECK(exists(&bench, week));
    CHECK(!exists(&bench, older));
    CHECK(!exists(&bench, abandoned));
    CHECK(exists(&bench, used));
    name_lock_release(&lock);
    bases_tidy(bench.engine);
    CHECK(!exists(&bench, used));
    bench_close(&bench);
}

/* What a crash leaves of one that was being received. */
static void
an_unfinished_one_goes(void)
{
    struct bench bench;
    bench_open(&bench);
    volume_record *volume = create(&bench, "v");
    snapshot_record *base = make_base(&bench, volume, "a", "node-2", 0, true);
    struct row row = read_row(&bench, base->handle);
    ((snapshot_record *)row.record)->state = SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__COPYING;
    must(rows_update(bench.engine, &snapshot_rows, row.record, &row.revision));
    bases_tidy(bench.engine);
    CHECK(!exists(&bench, base));
    bench_close(&bench);
}

static void
they_go_with_their_volume(void)
{
    struct bench bench;
    bench_open(&bench);
    volume_record *volume = create(&bench, "v");
    snapshot_record *kept = make_base(&bench, volume, "a", "node-2", 0, true);
    snapshot_record *is_open = make_base(&bench, volume, "b", "node-2", 0, false);
    must(volume_delete(bench.engine, volume->handle));
    CHECK(!exists(&bench, kept));
    CHECK(exists(&bench, is_open)); /* somebody fetches it */
    must(bases_end_sent(bench.engine, is_open->handle, true));
    CHECK(!exists(&bench, is_open));
    must(bases_end_sent(bench.engine, is_open->handle, true));
    bench_close(&bench);
}

int
main(void)
{
    users_see_none();
    the_newest_of_each_volume_and_node_is_kept();
    old_ones_go_unless_they_are_in_use();
    an_unfinished_one_goes();
    they_go_with_their_volume();
    return check_report("test_volumes_bases");
}
