/* SPDX-License-Identifier: Apache-2.0 */
/* What others do to a repository between two looks at it costs no chunk that is in use. */
#define ENDS_PLACE "/dev/shm" /* many small syncs */
#include "repository/locations.h"
#include "repository_ends.h"

static struct repository_prune
prune(struct repository *repository, const struct repository_references *in_use)
{
    struct repository_prune request = {.references = in_use};
    CHECK(went_well(repository_prune(repository, &request)));
    return request;
}

/* ---- making one ---- */

struct maker {
    pthread_t thread;
    pthread_barrier_t *start;
    char key_file[128];
    struct repository_options options;
    enum code code;
};

static void *
make(void *argument)
{
    struct maker *maker = argument;
    pthread_barrier_wait(maker->start);
    struct error *error = repository_create(&maker->options);
    maker->code = error ? error->code : CODE_OK;
    error_free(error);
    return NULL;
}

/* Several at the same time, each with a key of its own: one has made it, and its key opens it. */
static void
test_one_of_several_makes_it(void)
{
    enum { MAKERS = 4, ROUNDS = 100 };
    struct ends ends;
    ends_make(&ends, true);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct maker makers[MAKERS];
        pthread_barrier_t start;
        char url[128];
        unsigned made = 0;
        snprintf(url, sizeof url, "file://%s/%u", ends.directory, round);
        pthread_barrier_init(&start, NULL, MAKERS);
        for (unsigned i = 0; i < MAKERS; i++) {
            struct maker *maker = &makers[i];
            *maker = (struct maker){.start = &start, .options = ends.options};
            snprintf(maker->key_file, sizeof maker->key_file, "%s/key-%u-%u", ends.directory, round,
                     i);
            maker->options.url = url;
            maker->options.key_file = maker->key_file;
            pthread_create(&maker->thread, NULL, make, maker);
        }
        for (unsigned i = 0; i < MAKERS; i++)
            pthread_join(makers[i].thread, NULL);
        for (unsigned i = 0; i < MAKERS; i++) {
            struct repository *repository = NULL;
            if (makers[i].code != CODE_OK) {
                CHECK_NUMBER(makers[i].code, CODE_ALREADY_EXISTS);
                continue;
            }
            made++;
            CHECK(went_well(repository_open(&makers[i].options, &repository)));
            repository_close(repository);
        }
        CHECK_NUMBER(made, 1);
        pthread_barrier_destroy(&start);
    }
    ends_clear(&ends);
}

/* ---- the local index ---- */

#define CHUNKS 20000u

/* An index of one pack with many chunks, and the beginning of another. */
static void
make_index(struct buffer *index, struct repository_id *first)
{
    struct buffer entries AUTO(buffer_clear) = {0};
    struct index_pack pack = {.name = {{1}}, .size = 1u << 20, .count = CHUNKS};
    for (uint32_t i = 0; i < CHUNKS; i++) {
        struct pack_entry entry = {.offset = 48 + 20 * i, .stored = 20, .raw = 4};
        memcpy(entry.id.bytes, &i, sizeof i);
        pack_entry_append(&entries, &entry);
        if (!i)
            *first = entry.id;
    }
    pack.entries = entries.bytes;
    index_append(index, &pack);
    buffer_append(index, "cut off", 7);
}

/* The reading of an index is interrupted, and meanwhile another prune deletes the index. */
static void
test_index_read_in_part_is_forgotten(void)
{
    struct ends ends;
    struct buffer index AUTO(buffer_clear) = {0};
    struct object_name name = {{7}};
    struct repository_id first;
    struct locations *locations = NULL;
    struct location location;
    bool found = true;
    ends_make(&ends, true);
    struct objects *objects = NULL;
    CHECK(went_well(objects_open(&ends.options, false, &objects)));
    struct locations_source source = {.objects = objects};
    CHECK(went_well(locations_open(ends.directory, "other", &locations)));
    make_index(&index, &first);
    struct error *error = locations_add(locations, &name, &index);
    CHECK(error && error->code == CODE_DATA_LOSS);
    error_free(error);
    locations_close(locations);
    CHECK(went_well(locations_open(ends.directory, "other", &locations)));
    CHECK(went_well(locations_sync(locations, &source)));
    CHECK(went_well(locations_find(locations, &first, &location, &found)));
    CHECK(!found);
    locations_close(locations);
    objects_close(objects);
    ends_clear(&ends);
}

/* ---- rebuild ---- */

/* A pack became garbage while a writer used it, and the index that names it is lost. */
static void
test_rebuilt_index_has_garbage_in_use(void)
{
    struct ends ends;
    struct repository_writer *writer = NULL;
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES], command[256];
    uint64_t packs = 0;
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, name)));
    CHECK(went_well(repository_writer_open(ends.repository, &writer)));
    for (uint64_t i = 0; i < 100; i++)
        CHECK(went_well(put_chunk(writer, i, &record)));
    CHECK(went_well(repository_snapshot_remove(ends.repository, name)));
    CHECK_NUMBER(prune(ends.repository, &references).packs_waiting, 1);
    CHECK(went_well(repository_writer_commit(writer, record.bytes, record.size, name)));
    repository_writer_close(writer);
    repository_close(STEAL(ends.repository));
    snprintf(command, sizeof command, "rm -r %s/repository/02/* %s/cache", ends.directory,
             ends.directory);
    CHECK_NUMBER(system(command), 0);
    ends_open(&ends);
    CHECK(went_well(repository_rebuild(ends.repository, REPOSITORY_STRUCTURE, NULL, &packs)));
    CHECK_NUMBER(packs, 1);
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 100)));
    CHECK_NUMBER(prune(ends.repository, &references).packs_rescued, 1);
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 100)));
    ends_clear(&ends);
}

/* ---- prune ---- */

/*
 * Somebody who keeps one export of a volume: the next one, which takes all chunks from the last,
 * is written, then the last is removed. It happens whenever prune reads a snapshot.
 */
struct keeper {
    struct repository *repository;
    char name[REPOSITORY_NAME_BYTES];
    unsigned rounds;
};

/* A snapshot of other chunks that is read before the keeper's: names are random. */
static void
put_before(struct keeper *keeper, uint64_t number)
{
    char name[REPOSITORY_NAME_BYTES];
    CHECK(went_well(put_snapshot(keeper->repository, number, 1, 1, name)));
    while (strcmp(name, keeper->name) > 0) {
        CHECK(went_well(repository_snapshot_remove(keeper->repository, name)));
        CHECK(went_well(put_snapshot(keeper->repository, number, 1, 1, name)));
    }
}

static void
write_next(struct keeper *keeper)
{
    struct repository_writer *writer = NULL;
    struct buffer record AUTO(buffer_clear) = {0};
    char before[REPOSITORY_NAME_BYTES];
    memcpy(before, keeper->name, sizeof before);
    CHECK(went_well(repository_writer_open(keeper->repository, &writer)));
    CHECK(went_well(repository_snapshot_get(keeper->repository, before, &record)));
    CHECK(went_well(repository_writer_commit(writer, record.bytes, record.size, keeper->name)));
    repository_writer_close(writer);
    CHECK(went_well(repository_snapshot_remove(keeper->repository, before)));
    put_before(keeper, 5000 + keeper->rounds);
}

static struct error *
list_and_keep(struct repository *repository, const void *record, size_t size,
              const struct repository_visitor *visitor, void *context)
{
    struct keeper *keeper = context;
    if (keeper->rounds && keeper->rounds--)
        write_next(keeper);
    return list_references(repository, record, size, visitor, NULL);
}

static void
test_prune_beside_one_who_keeps_the_newest(void)
{
    struct ends ends;
    struct keeper keeper = {.rounds = 2};
    const struct repository_references watched = {list_and_keep, &keeper};
    ends_make(&ends, true);
    CHECK(went_well(repository_open(&ends.options, &keeper.repository)));
    CHECK(went_well(put_snapshot(keeper.repository, 0, 1, 100, keeper.name)));
    put_before(&keeper, 4000);
    prune(ends.repository, &watched);
    CHECK_NUMBER(keeper.rounds, 0);
    CHECK(went_well(check_snapshot(ends.repository, keeper.name, 0, 1, 100)));
    repository_close(keeper.repository);
    ends_clear(&ends);
}

int
main(void)
{
    test_one_of_several_makes_it();
    test_index_read_in_part_is_forgotten();
    test_rebuilt_index_has_garbage_in_use();
    test_prune_beside_one_who_keeps_the_newest();
    return check_report("test_repository_races");
}
