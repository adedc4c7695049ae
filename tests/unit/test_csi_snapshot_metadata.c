/* SPDX-License-Identifier: Apache-2.0 */
/* csi.v1.SnapshotMetadata over directories: streams, their rules, and what is refused. That the extents are the right ones, tests/conformance shows. */
#include "csi_extents.h"
#include "volumes/snapshot.h"

#define BLOCK 4096
#define IMAGE_BYTES (INT64_C(64) << 20)

struct bench {
    struct csi_ends csi;
    char directory[64];
    char *volume;
};

static void
bench_open(struct bench *bench)
{
    *bench = (struct bench){.directory = "/tmp/skycap-metadata-XXXXXX"};
    CHECK(mkdtemp(bench->directory) != NULL);
    csi_ends_open(&bench->csi, "dir", bench->directory);
    bench->volume = csi_create_volume(&bench->csi, "a", "raw", IMAGE_BYTES);
}

static void
bench_close(struct bench *bench)
{
    csi_ends_close(&bench->csi);
    csi_remove_directory(bench->directory);
}

/* Blocks of the volume: `count` of them, every `step`-th one. */
static void
write_blocks(struct bench *bench, const char *volume_id, size_t count, size_t step)
{
    char bytes[BLOCK];
    memset(bytes, 'x', sizeof bytes);
    int image = open(csi_path(&bench->csi, volume_id, KIND_IMAGE), O_WRONLY | O_CLOEXEC);
    CHECK(image >= 0);
    for (size_t i = 0; i < count; i++)
        CHECK(pwrite(image, bytes, sizeof bytes, (off_t)(i * step * BLOCK)) == BLOCK);
    close(image);
}

static const char *
take_snapshot(struct bench *bench, const char *name)
{
    return csi_create_snapshot(&bench->csi, name, bench->volume)->snapshot_id;
}

static enum code
code_of(struct bench *bench, const char *base_id, const char *id, int64_t offset, int32_t max)
{
    struct extent_list list AUTO(extent_list_clear) = {0};
    enum code code = take_code(extent_list_read(&list, &bench->csi, base_id, id, offset, max));
    CHECK(code == CODE_OK || list.count == 0);
    return code;
}

/* ---- facts ---- */

static void
allocated_extents_are_told_in_order(void)
{
    struct bench bench;
    struct extent_list list AUTO(extent_list_clear) = {0};
    bench_open(&bench);
    write_blocks(&bench, bench.volume, 600, 4);
    const char *snapshot = take_snapshot(&bench, "s");
    write_blocks(&bench, bench.volume, 100, 1);
    succeed(extent_list_read(&list, &bench.csi, NULL, snapshot, 0, 0));
    CHECK_NUMBER(list.capacity_bytes, IMAGE_BYTES);
    CHECK_NUMBER(list.count, 600);
    CHECK_NUMBER(list.messages, 3);
    for (size_t i = 0; i < list.count; i++) {
        CHECK_NUMBER(list.extents[i].offset, i * 4 * BLOCK);
        CHECK_NUMBER(list.extents[i].size, BLOCK);
    }
    bench_close(&bench);
}

static void
a_message_has_as_many_as_are_wanted(void)
{
    struct bench bench;
    struct extent_list list AUTO(extent_list_clear) = {0};
    bench_open(&bench);
    write_blocks(&bench, bench.volume, 21, 2);
    const char *snapshot = take_snapshot(&bench, "s");
    succeed(extent_list_read(&list, &bench.csi, NULL, snapshot, 0, 7));
    CHECK_NUMBER(list.count, 21);
    CHECK_NUMBER(list.messages, 3);
    extent_list_clear(&list);
    succeed(extent_list_read(&list, &bench.csi, NULL, snapshot, 0, INT32_MAX));
    CHECK_NUMBER(list.count, 21);
    bench_close(&bench);
}

static void
a_stream_goes_on_where_it_broke(void)
{
    struct bench bench;
    struct extent_list list AUTO(extent_list_clear) = {0};
    bench_open(&bench);
    write_blocks(&bench, bench.volume, 10, 2);
    const char *snapshot = take_snapshot(&bench, "s");
    /* Behind the fourth, in the midst of the fifth. */
    succeed(extent_list_read(&list, &bench.csi, NULL, snapshot, 8 * BLOCK + 100, 0));
    CHECK_NUMBER(list.count, 6);
    CHECK_NUMBER(list.extents[0].offset + list.extents[0].size, 9 * BLOCK);
    CHECK_NUMBER(list.extents[1].offset, 10 * BLOCK);
    extent_list_clear(&list);
    /* Nothing is left there; the capacity is told all the same. */
    succeed(extent_list_read(&list, &bench.csi, NULL, snapshot, IMAGE_BYTES, 0));
    CHECK_NUMBER(list.count, 0);
    CHECK_NUMBER(list.messages, 1);
    CHECK_NUMBER(list.capacity_bytes, IMAGE_BYTES);
    bench_close(&bench);
}

static void
what_is_wrong_with_a_request_is_told(void)
{
    struct bench bench;
    bench_open(&bench);
    const char *s = take_snapshot(&bench, "s");
    const char *tree = csi_create_volume(&bench.csi, "tree", "", 0);
    const char *of_tree = csi_create_snapshot(&bench.csi, "of tree", tree)->snapshot_id;
    const char *nobody = "s:local/0123456789";
    CHECK_NUMBER(code_of(&bench, NULL, "", 0, 0), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of(&bench, NULL, "strange", 0, 0), CODE_NOT_FOUND);
    CHECK_NUMBER(code_of(&bench, NULL, nobody, 0, 0), CODE_NOT_FOUND);
    CHECK_NUMBER(code_of(&bench, NULL, of_tree, 0, 0), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of(&bench, NULL, s, 0, -1), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of(&bench, NULL, s, -1, 0), CODE_OUT_OF_RANGE);
    CHECK_NUMBER(code_of(&bench, NULL, s, IMAGE_BYTES + 1, 0), CODE_OUT_OF_RANGE);
    CHECK_NUMBER(code_of(&bench, "", s, 0, 0), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of(&bench, s, "", 0, 0), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of(&bench, nobody, s, 0, 0), CODE_NOT_FOUND);
    CHECK_NUMBER(code_of(&bench, s, nobody, 0, 0), CODE_NOT_FOUND);
    CHECK_NUMBER(code_of(&bench, of_tree, of_tree, 0, 0), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of(&bench, s, s, -1, 0), CODE_OUT_OF_RANGE);
    bench_close(&bench);
}

static void
two_snapshots_must_be_of_one_volume_and_in_order(void)
{
    struct bench bench;
    bench_open(&bench);
    const char *first = take_snapshot(&bench, "first");
    sleep_ms(2);
    const char *second = take_snapshot(&bench, "second");
    char *other = csi_create_volume(&bench.csi, "b", "raw", IMAGE_BYTES);
    const char *foreign = csi_create_snapshot(&bench.csi, "foreign", other)->snapshot_id;
    CHECK_NUMBER(code_of(&bench, first, foreign, 0, 0), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of(&bench, second, first, 0, 0), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(code_of(&bench, first, second, 0, 0),
                 bench.csi.backend->finds_changes ? CODE_OK : CODE_FAILED_PRECONDITION);
    bench_close(&bench);
}

/* The back end's own walk; then somebody deletes the snapshot. */
static const struct backend_ops *real_ops;
static struct engine *deleting_engine;

static struct error *
walk_and_delete(struct backend *backend, const struct data *data, const struct data *base,
                uint64_t offset, const struct extent_sink *sink)
{
    struct error *error = real_ops->extents(backend, data, base, offset, sink);
    return error ? error : snapshot_delete(deleting_engine, data->handle);
}

/* A stream that ends well is taken for the whole truth. */
static void
a_stream_of_a_snapshot_that_is_deleted_meanwhile_fails(void)
{
    struct bench bench;
    struct extent_list list AUTO(extent_list_clear) = {0};
    bench_open(&bench);
    write_blocks(&bench, bench.volume, 10, 2);
    const char *snapshot = take_snapshot(&bench, "s");
    real_ops = bench.csi.backend->ops;
    struct backend_ops ops = *real_ops;
    ops.extents = walk_and_delete;
    engine_close(bench.csi.engine); /* its own thread looks at them too */
    bench.csi.backend->ops = &ops;
    csi_ends_open_engine(&bench.csi);
    deleting_engine = bench.csi.engine;
    CHECK_CODE(extent_list_read(&list, &bench.csi, NULL, snapshot, 0, 3), CODE_NOT_FOUND);
    bench_close(&bench);
}

int
main(void)
{
    allocated_extents_are_told_in_order();
    a_message_has_as_many_as_are_wanted();
    a_stream_goes_on_where_it_broke();
    what_is_wrong_with_a_request_is_told();
    two_snapshots_must_be_of_one_volume_and_in_order();
    a_stream_of_a_snapshot_that_is_deleted_meanwhile_fails();
    return check_report("test_csi_snapshot_metadata");
}
