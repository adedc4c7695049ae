/* SPDX-License-Identifier: Apache-2.0 */
/* How often records of snapshots are fetched from a repository that is far away. */
#include <glob.h>
#include <string.h>

#include "exports/export_page.h"
#include "exports_ends.h"
#include "message/message_bytes.h"
#include "repository/objects.h"
#include "store/cache_db.h"

#define RECORDS 60u

/* ---- objects of another node, which count who asks ---- */

struct counted {
    struct objects objects; /* first */
    struct objects *inner;
};

static unsigned asked; /* for records: gets and sizes */

static struct objects *
inner_of(struct objects *objects)
{
    return ((struct counted *)objects)->inner;
}

static void
note(const char *key)
{
    asked += !strncmp(key, "03/", 3);
}

static struct error *
put(struct objects *objects, const char *key, const uint8_t *bytes, size_t size,
    enum objects_put how)
{
    return inner_of(objects)->ops->put(inner_of(objects), key, bytes, size, how);
}

static struct error *
sync_all(struct objects *objects)
{
    return inner_of(objects)->ops->sync(inner_of(objects));
}

static struct error *
get(struct objects *objects, const char *key, uint64_t offset, uint8_t *bytes, size_t size)
{
    note(key);
    return inner_of(objects)->ops->get(inner_of(objects), key, offset, bytes, size);
}

static struct error *
look_at_size(struct objects *objects, const char *key, uint64_t *size, uint64_t *age_ms)
{
    note(key);
    return inner_of(objects)->ops->size(inner_of(objects), key, size, age_ms);
}

static struct error *
list(struct objects *objects, enum object_kind kind, objects_each *each, void *context)
{
    return inner_of(objects)->ops->list(inner_of(objects), kind, each, context);
}

static struct error *delete (struct objects *objects, const char *key)
{
    return inner_of(objects)->ops->delete (inner_of(objects), key);
}

static void
close_counted(struct objects *objects)
{
    objects_close(inner_of(objects));
    free(objects);
}

static const struct objects_ops counted_ops = {
    .put = put,
    .sync = sync_all,
    .get = get,
    .size = look_at_size,
    .list = list,
    .delete = delete,
    .close = close_counted,
    .uploads = 1,
};

static struct error *
open_counted(void *context, const struct repository_node *what, struct objects **out)
{
    const struct ends *ends = context;
    struct counted *counted = memory_zeroed(sizeof *counted);
    char path[96];
    (void)what;
    counted->objects.ops = &counted_ops;
    snprintf(path, sizeof path, "%s/repository", ends->directory);
    *out = &counted->objects;
    return objects_directory_open(path, false, &counted->inner);
}

/* ---- records ---- */

/* Of ten volumes, in turn. */
static void
add_record(struct ends *ends, unsigned number)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct repository_writer *writer AUTO(repository_writer_cleanup) = NULL;
    export_record record = SKYCAP__EXPORTS__EXPORT_RECORD__INIT;
    struct repository_id manifest = {{0}};
    char name[REPOSITORY_NAME_BYTES];
    size_t size;
    record.kind = EXPORT_KIND(TREE);
    record.name = arena_print(&arena, "snapshot-%u", number);
    record.volume_handle = arena_print(&arena, "volume-%u", number % 10);
    record.taken_ns = number;
    record.manifest = (ProtobufCBinaryData){sizeof manifest.bytes, manifest.bytes};
    const uint8_t *bytes = message_bytes_pack(&record.base, &arena, &size);
    CHECK(went_well(repository_writer_open(ends->repository, &writer)));
    CHECK(went_well(repository_writer_commit(writer, bytes, size, name)));
}

struct counting {
    const char *volume; /* NULL: any */
    size_t count;
};

static struct error *
count_one(const struct export_item *item, void *context)
{
    struct counting *counting = context;
    counting->count += !counting->volume || !strcmp(item->record->volume_handle, counting->volume);
    return NULL;
}

static size_t
count_listed(struct ends *ends, const char *volume)
{
    struct counting counting = {volume, 0};
    CHECK(went_well(export_page_walk(ends->repository, count_one, &counting)));
    return counting.count;
}

/* The beginning of an id finds the same. */
static void
find(struct ends *ends, const char *text, unsigned wanted)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct export_item item, again;
    CHECK(went_well(export_record_find(ends->repository, text, &arena, &item)));
    CHECK_NUMBER(item.record->taken_ns, wanted);
    const char *id = arena_print(&arena, "%.20s", item.id);
    CHECK(went_well(export_record_find(ends->repository, id, &arena, &again)));
    CHECK_TEXT(again.id, item.id);
}

static void
read_page(struct ends *ends)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct export_query query = {.token = "", .limit = 7};
    struct export_list records;
    const char *next;
    CHECK(went_well(export_page_read(ends->repository, &query, &arena, &records, &next)));
    CHECK_NUMBER(records.count, 7);
    CHECK_NUMBER(records.items[6].record->taken_ns, 6);
    CHECK(next[0] != 0);
}

static void
the_newest_come_first_if_asked_for(struct ends *ends)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct export_query query = {.newest_first = true, .token = "", .limit = 7};
    struct export_list records;
    struct export_item newest;
    unsigned seen = 0;
    CHECK(went_well(export_record_find_newest(ends->repository, &arena, &newest)));
    CHECK_NUMBER(newest.record->taken_ns, RECORDS - 1);
    const char *next = "";
    do {
        query.token = next;
        CHECK(went_well(export_page_read(ends->repository, &query, &arena, &records, &next)));
        for (size_t i = 0; i < records.count; i++)
            CHECK_NUMBER(records.items[i].record->taken_ns, RECORDS - ++seen);
    } while (next[0] && seen < RECORDS);
    CHECK_NUMBER(seen, RECORDS);
}

static void
records_are_fetched_once(struct ends *ends)
{
    asked = 0;
    CHECK_NUMBER(count_listed(ends, NULL), RECORDS);
    CHECK(asked >= RECORDS);
    asked = 0;
    CHECK_NUMBER(count_listed(ends, NULL), RECORDS);
    CHECK_NUMBER(count_listed(ends, "volume-3"), RECORDS / 10);
    find(ends, "snapshot-17", 17);
    read_page(ends);
    CHECK_NUMBER(asked, 0);
    ends_open(ends); /* as after a restart */
    asked = 0;
    CHECK_NUMBER(count_listed(ends, "volume-4"), RECORDS / 10);
    CHECK_NUMBER(asked, 0);
}

static void
one_more_costs_one_more(struct ends *ends)
{
    unsigned each;
    add_record(ends, RECORDS);
    asked = 0;
    CHECK_NUMBER(count_listed(ends, NULL), RECORDS + 1);
    each = asked;
    CHECK(each >= 1 && each <= 2);
    add_record(ends, RECORDS + 1);
    add_record(ends, RECORDS + 2);
    asked = 0;
    CHECK_NUMBER(count_listed(ends, NULL), RECORDS + 3);
    CHECK_NUMBER(asked, 2 * each);
}

/* The cache says nothing about what a repository has. */
static void
what_was_removed_is_not_listed(struct ends *ends)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct export_item item;
    export_record *record;
    CHECK(went_well(export_record_find(ends->repository, "snapshot-5", &arena, &item)));
    CHECK(went_well(repository_snapshot_remove(ends->repository, item.id)));
    CHECK_NUMBER(count_listed(ends, NULL), RECORDS + 2);
    struct error *error AUTO(error_cleanup) =
        export_record_read(ends->repository, item.id, &arena, &record);
    CHECK(error && error->code == CODE_NOT_FOUND);
}

/* The path of the cache, as its user finds it. */
static const char *
find_cache(const struct ends *ends, struct arena *arena)
{
    glob_t found;
    CHECK_NUMBER(glob(arena_print(arena, "%s/*.records", ends->cache), 0, NULL, &found), 0);
    CHECK_NUMBER(found.gl_pathc, 1);
    const char *path = arena_print(arena, "%s", found.gl_pathv[0]);
    globfree(&found);
    return path;
}

static void
flip_a_bit(const char *path, const char *id)
{
    struct cache_db *db AUTO(cache_db_cleanup) = NULL;
    struct buffer value AUTO(buffer_clear) = {0};
    struct object_name name;
    bool is_found;
    CHECK(object_name_parse(id, &name));
    CHECK(went_well(cache_db_open(path, 256, &db)));
    CHECK(went_well(cache_db_read(db, name.bytes, sizeof name.bytes, &value, &is_found)));
    CHECK(is_found);
    value.bytes[value.size - 1] ^= 1;
    CHECK(went_well(cache_db_put(db, name.bytes, sizeof name.bytes, value.bytes, value.size)));
}

/* An incremental export leaves out what the record of its base says that it has. */
static void
damage_in_the_cache_is_noticed(struct ends *ends)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct export_item item, again;
    CHECK(went_well(export_record_find(ends->repository, "snapshot-17", &arena, &item)));
    const char *path = find_cache(ends, &arena);
    repository_close(STEAL(ends->repository));
    flip_a_bit(path, item.id);
    ends_open(ends);
    asked = 0;
    CHECK(went_well(export_record_find(ends->repository, item.id, &arena, &again)));
    CHECK(asked > 0);
    CHECK(protobuf_c_message_get_packed_size(&again.record->base) ==
          protobuf_c_message_get_packed_size(&item.record->base));
    CHECK(!memcmp(again.record->manifest.data, item.record->manifest.data, 32));
    asked = 0;
    CHECK_NUMBER(count_listed(ends, "volume-7"), RECORDS / 10);
    CHECK_NUMBER(asked, 0); /* the cache has the right one again */
}

static void
a_cache_that_fails_is_done_without(struct ends *ends)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *path = find_cache(ends, &arena);
    repository_close(STEAL(ends->repository));
    CHECK_NUMBER(unlink(path), 0);
    CHECK_NUMBER(mkdir(path, 0700), 0);
    ends_open(ends);
    CHECK_NUMBER(count_listed(ends, "volume-4"), RECORDS / 10);
}

int
main(void)
{
    struct ends ends;
    struct repository_nodes nodes = {open_counted, &ends};
    ends_make(&ends, true);
    ends.options.url = "node://far/away";
    ends.options.nodes = &nodes;
    ends_open(&ends);
    for (unsigned i = 0; i < RECORDS; i++)
        add_record(&ends, i);
    records_are_fetched_once(&ends);
    the_newest_come_first_if_asked_for(&ends);
    one_more_costs_one_more(&ends);
    what_was_removed_is_not_listed(&ends);
    damage_in_the_cache_is_noticed(&ends);
    a_cache_that_fails_is_done_without(&ends);
    ends_clear(&ends);
    return check_report("exports_records");
}
