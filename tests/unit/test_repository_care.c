/* SPDX-License-Identifier: Apache-2.0 */
/* Verify finds every flipped byte; prune deletes what is not in use, and only that; rebuild. */
#include <dirent.h>
#include <fcntl.h>
#include <time.h>

#define ENDS_PLACE "/dev/shm" /* thousands of small syncs */
#include "repository_ends.h"

/* ---- helpers ---- */

struct findings {
    unsigned count;
    unsigned snapshots; /* of them, with an affected snapshot */
    char object[80];
};

static void
note_finding(const struct repository_finding *finding, void *context)
{
    struct findings *findings = context;
    findings->count++;
    findings->snapshots += finding->snapshot != NULL;
    snprintf(findings->object, sizeof findings->object, "%s", finding->object);
}

/* Progress never falls. */
struct heard {
    uint64_t done, total;
};

static void
hear(uint64_t done, uint64_t total, void *context)
{
    struct heard *heard = context;
    CHECK(done >= heard->done && done <= total && total >= heard->total);
    *heard = (struct heard){done, total};
}

static struct findings
verify(struct repository *repository, enum repository_level level)
{
    struct findings findings = {0};
    struct heard heard = {0};
    struct repository_verify request = {.level = level,
                                        .references = &references,
                                        .found = note_finding,
                                        .context = &findings,
                                        .progress = {.report = hear, .context = &heard}};
    CHECK(went_well(repository_verify(repository, &request)));
    CHECK_NUMBER(heard.done, heard.total);
    CHECK_NUMBER(request.findings, findings.count);
    return findings;
}

static struct repository_prune
prune(struct repository *repository)
{
    struct heard heard = {0};
    struct repository_prune request = {.references = &references,
                                       .progress = {.report = hear, .context = &heard}};
    CHECK(went_well(repository_prune(repository, &request)));
    CHECK_NUMBER(heard.done, heard.total);
    CHECK_NUMBER(heard.done, request.snapshots + request.packs_deleted + request.packs_rewritten);
    return request;
}

/* The number of objects of a kind; `path`: of one of them. */
static unsigned
count_objects(const struct ends *ends, const char *kind, char path[384])
{
    char directory[96];
    unsigned count = 0;
    snprintf(directory, sizeof directory, "%s/repository/%s", ends->directory, kind);
    DIR *entries = opendir(directory);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (path)
            snprintf(path, 384, "%s/%s", directory, entry->d_name);
    }
    if (entries)
        closedir(entries);
    return count;
}

static void
flip(const char *path, off_t offset)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    CHECK(pread(fd, &byte, 1, offset) == 1);
    byte ^= 0x10;
    CHECK(pwrite(fd, &byte, 1, offset) == 1);
    close(fd);
}

/* ---- flipped bytes ---- */

static off_t
size_of(const char *path)
{
    struct stat status = {0};
    CHECK(stat(path, &status) == 0);
    return status.st_size;
}

/* With the byte flipped: is it found by verify, or is the repository not even opened? */
static bool
is_found(struct ends *ends, const char *path, off_t offset)
{
    struct repository *repository = NULL;
    flip(path, offset);
    struct error *error = repository_open(&ends->options, &repository);
    bool is = error != NULL;
    if (!error)
        is = verify(repository, REPOSITORY_DATA).count > 0;
    error_free(error);
    repository_close(repository);
    flip(path, offset);
    return is;
}

/* In the only objects of these kinds. */
static void
check_each_byte(struct ends *ends, const char *const *kinds, size_t count)
{
    for (size_t kind = 0; kind < count; kind++) {
        char path[384];
        unsigned missed = 0;
        CHECK_NUMBER(count_objects(ends, kinds[kind], path), 1);
        off_t size = size_of(path);
        off_t step = size > 2000 ? size / 500 : 1;
        for (off_t offset = 0; offset < size; offset += step)
            missed += !is_found(ends, path, offset);
        CHECK_NUMBER(missed, 0);
    }
}

/* A writer keeps garbage from being deleted, so that there is an object of every kind. */
static struct repository_writer *
make_garbage(struct ends *ends)
{
    struct repository_writer *writer = NULL;
    char name[REPOSITORY_NAME_BYTES];
    CHECK(went_well(put_snapshot(ends->repository, 0, 1, 100, name)));
    CHECK(went_well(repository_snapshot_remove(ends->repository, name)));
    CHECK(went_well(repository_writer_open(ends->repository, &writer)));
    CHECK_NUMBER(prune(ends->repository).packs_waiting, 1);
    return writer;
}

static void
test_every_flipped_byte_is_found(bool encrypts)
{
    static const char *const kinds[] = {"00", "01", "02", "03"};
    static const char *const work[] = {"04", "05", "06"};
    struct ends ends;
    char name[REPOSITORY_NAME_BYTES];
    ends_make(&ends, encrypts);
    CHECK(went_well(put_snapshot(ends.repository, 5070, 5070, 2, name)));
    check_each_byte(&ends, kinds, COUNT_OF(kinds));
    struct repository_writer *writer = make_garbage(&ends);
    check_each_byte(&ends, work, COUNT_OF(work));
    repository_writer_close(writer);
    ends_open(&ends);
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_DATA).count, 0);
    ends_clear(&ends);
}

static void
test_read_finds_flipped_bytes(void)
{
    struct ends ends;
    char name[REPOSITORY_NAME_BYTES], path[384];
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 1, 1, 1, name)));
    CHECK_NUMBER(count_objects(&ends, "01", path), 1);
    for (off_t offset = 48; offset < 48 + 7920 + 16; offset += 97) {
        flip(path, offset);
        struct error *error = check_snapshot(ends.repository, name, 1, 1, 1);
        CHECK(error && error->code == CODE_DATA_LOSS && strstr(error->message, "01/"));
        error_free(error);
        flip(path, offset);
    }
    CHECK(went_well(check_snapshot(ends.repository, name, 1, 1, 1)));
    ends_clear(&ends);
}

/* Whoever has no copy of the index finds damage in it instead of data. */
static void
test_read_finds_flipped_bytes_of_an_index(bool encrypts)
{
    struct ends ends;
    char name[REPOSITORY_NAME_BYTES], path[384];
    unsigned missed = 0;
    ends_make(&ends, encrypts);
    CHECK(went_well(put_snapshot(ends.repository, 1, 1, 3, name)));
    CHECK_NUMBER(count_objects(&ends, "02", path), 1);
    ends.options.cache_directory = NULL;
    for (off_t offset = 0, size = size_of(path); offset < size; offset++) {
        flip(path, offset);
        ends_open(&ends);
        struct error *error AUTO(error_cleanup) = check_snapshot(ends.repository, name, 1, 1, 3);
        missed += !error || error->code != CODE_DATA_LOSS;
        flip(path, offset);
    }
    CHECK_NUMBER(missed, 0);
    ends_open(&ends);
    CHECK(went_well(check_snapshot(ends.repository, name, 1, 1, 3)));
    ends_clear(&ends);
}

static void
test_verify_names_affected_snapshots(void)
{
    struct ends ends;
    char first[REPOSITORY_NAME_BYTES], second[REPOSITORY_NAME_BYTES], path[384];
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 50, first)));
    CHECK_NUMBER(count_objects(&ends, "01", path), 1);
    CHECK(went_well(put_snapshot(ends.repository, 100, 1, 50, second)));
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_STRUCTURE).count, 0);
    CHECK(truncate(path, 1000) == 0);
    struct findings findings = verify(ends.repository, REPOSITORY_STRUCTURE);
    CHECK_NUMBER(findings.count, 2);
    CHECK_NUMBER(findings.snapshots, 1);
    CHECK(unlink(path) == 0);
    findings = verify(ends.repository, REPOSITORY_STRUCTURE);
    CHECK_NUMBER(findings.snapshots, 1);
    struct repository_prune request = {.references = &references};
    struct error *error = repository_prune(ends.repository, &request);
    error_free(error);
    CHECK(went_well(check_snapshot(ends.repository, second, 100, 1, 50)));
    ends_clear(&ends);
}

/* What another process does in the middle of a verify. */
struct meddling {
    struct repository *other;
    char (*names)[REPOSITORY_NAME_BYTES];
    size_t count;
    bool is_done;
};

static void
remove_and_prune(uint64_t done, uint64_t total, void *context)
{
    struct meddling *meddling = context;
    struct repository_prune request = {.references = &references};
    (void)done, (void)total;
    if (meddling->is_done)
        return;
    meddling->is_done = true;
    for (size_t i = 0; i < meddling->count; i++)
        CHECK(went_well(repository_snapshot_remove(meddling->other, meddling->names[i])));
    CHECK(went_well(repository_prune(meddling->other, &request)));
    CHECK_NUMBER(request.packs_deleted, meddling->count);
}

static void
test_verify_beside_a_prune_finds_nothing(enum repository_level level)
{
    struct ends ends;
    struct repository *other = NULL;
    struct findings findings = {0};
    char names[5][REPOSITORY_NAME_BYTES];
    ends_make(&ends, true);
    for (uint64_t i = 0; i < COUNT_OF(names); i++)
        CHECK(went_well(put_snapshot(ends.repository, i * 100, 1, 50, names[i])));
    CHECK(went_well(repository_open(&ends.options, &other)));
    struct meddling meddling = {other, names, COUNT_OF(names) - 1, false};
    struct repository_verify request = {
        .level = level,
        .references = &references,
        .found = note_finding,
        .context = &findings,
        .progress = {.report = remove_and_prune, .context = &meddling}};
    CHECK(went_well(repository_verify(ends.repository, &request)));
    CHECK(meddling.is_done);
    CHECK_NUMBER(findings.count, 0);
    CHECK_NUMBER(request.snapshots, 1);
    repository_close(other);
    ends_clear(&ends);
}

/* ---- prune ---- */

static void
test_prune_keeps_what_is_in_use(void)
{
    struct ends ends;
    char names[3][REPOSITORY_NAME_BYTES];
    ends_make(&ends, true);
    for (unsigned i = 0; i < 3; i++)
        CHECK(went_well(put_snapshot(ends.repository, 500 * i, 1, 1000, names[i])));
    struct repository_prune result = prune(ends.repository);
    CHECK_NUMBER(result.packs_deleted, 0);
    CHECK(went_well(repository_snapshot_remove(ends.repository, names[0])));
    unsigned before = count_objects(&ends, "01", NULL);
    result = prune(ends.repository);
    CHECK(result.packs_deleted > 0);
    CHECK_NUMBER(result.packs_waiting, 0);
    CHECK(count_objects(&ends, "01", NULL) < before + result.packs_rewritten);
    CHECK_NUMBER(count_objects(&ends, "05", NULL), 0);
    CHECK_NUMBER(count_objects(&ends, "06", NULL), 0);
    CHECK_NUMBER(count_objects(&ends, "04", NULL), 0);
    CHECK(went_well(check_snapshot(ends.repository, names[1], 500, 1, 1000)));
    CHECK(went_well(check_snapshot(ends.repository, names[2], 1000, 1, 1000)));
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_DATA).count, 0);
    CHECK(went_well(repository_snapshot_remove(ends.repository, names[1])));
    CHECK(went_well(repository_snapshot_remove(ends.repository, names[2])));
    prune(ends.repository);
    CHECK_NUMBER(count_objects(&ends, "01", NULL), 0);
    CHECK_NUMBER(count_objects(&ends, "02", NULL), 0);
    ends_clear(&ends);
}

/* Many small exports leave many small packs, which become few. */
static void
test_prune_merges_small_packs(void)
{
    struct ends ends;
    char names[70][REPOSITORY_NAME_BYTES];
    ends_make(&ends, true);
    for (unsigned i = 0; i < COUNT_OF(names); i++)
        CHECK(went_well(put_snapshot(ends.repository, 10 * i, 1, 3, names[i])));
    CHECK_NUMBER(count_objects(&ends, "01", NULL), COUNT_OF(names));
    CHECK_NUMBER(prune(ends.repository).packs_deleted, COUNT_OF(names));
    CHECK_NUMBER(count_objects(&ends, "01", NULL), 1);
    CHECK_NUMBER(count_objects(&ends, "02", NULL), 1);
    for (unsigned i = 0; i < COUNT_OF(names); i++)
        CHECK(went_well(check_snapshot(ends.repository, names[i], 10 * i, 1, 3)));
    /* It is done once. */
    CHECK_NUMBER(prune(ends.repository).packs_rewritten, 0);
    ends_clear(&ends);
}

/* A writer uses chunks of a snapshot that is removed and pruned before it commits. */
static void
test_prune_waits_for_writers(void)
{
    struct ends ends;
    struct repository *other = NULL;
    struct repository_writer *writer = NULL;
    struct buffer record AUTO(buffer_clear) = {0};
    char first[REPOSITORY_NAME_BYTES], second[REPOSITORY_NAME_BYTES];
    ends_make(&ends, true);
    CHECK(went_well(repository_open(&ends.options, &other)));
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, first)));
    CHECK(went_well(repository_writer_open(ends.repository, &writer)));
    for (uint64_t i = 0; i < 100; i++)
        CHECK(went_well(put_chunk(writer, i, &record)));
    CHECK(went_well(repository_snapshot_remove(other, first)));
    struct repository_prune result = prune(other);
    CHECK_NUMBER(result.packs_deleted, 0);
    CHECK_NUMBER(result.packs_waiting, 1);
    CHECK(went_well(repository_writer_commit(writer, record.bytes, record.size, second)));
    result = prune(other);
    CHECK_NUMBER(result.packs_waiting, 1);
    repository_writer_close(writer);
    result = prune(other);
    CHECK_NUMBER(result.packs_rescued, 1);
    CHECK_NUMBER(result.packs_deleted, 0);
    CHECK(went_well(check_snapshot(other, second, 0, 1, 100)));
    CHECK_NUMBER(count_objects(&ends, "05", NULL), 0);
    repository_close(other);
    ends_clear(&ends);
}

/* A writer that begins after a pack became garbage does not use it. */
static void
test_writer_does_not_use_garbage(void)
{
    struct ends ends;
    struct repository *other = NULL;
    struct repository_writer *old = NULL;
    struct repository_writer *new = NULL;
    struct repository_counters counters;
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES];
    ends_make(&ends, true);
    CHECK(went_well(repository_open(&ends.options, &other)));
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, name)));
    CHECK(went_well(repository_snapshot_remove(ends.repository, name)));
    CHECK(went_well(repository_writer_open(other, &old)));
    CHECK_NUMBER(prune(ends.repository).packs_waiting, 1);
    CHECK(went_well(repository_writer_open(ends.repository, &new)));
    for (uint64_t i = 0; i < 100; i++)
        CHECK(went_well(put_chunk(new, i, &record)));
    repository_writer_count(new, &counters);
    CHECK_NUMBER(counters.chunks_reused, 0);
    repository_writer_close(old);
    /* The old writer has ended; the new one is no reason to wait. */
    CHECK_NUMBER(prune(other).packs_deleted, 1);
    CHECK(went_well(repository_writer_commit(new, record.bytes, record.size, name)));
    repository_writer_close(new);
    prune(other);
    CHECK(went_well(check_snapshot(other, name, 0, 1, 100)));
    CHECK_NUMBER(verify(other, REPOSITORY_DATA).count, 0);
    repository_close(other);
    ends_clear(&ends);
}

/* A writer whose object was removed, because it was taken for dead, cannot commit. */
static void
test_dead_writer_cannot_commit(void)
{
    struct ends ends;
    struct repository_writer *writer = NULL;
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES], path[384];
    ends_make(&ends, true);
    CHECK(went_well(repository_writer_open(ends.repository, &writer)));
    CHECK(went_well(put_chunk(writer, 1, &record)));
    CHECK_NUMBER(count_objects(&ends, "04", path), 1);
    CHECK(unlink(path) == 0);
    struct error *error = repository_writer_commit(writer, record.bytes, record.size, name);
    CHECK(error && error->code == CODE_ABORTED);
    error_free(error);
    CHECK_NUMBER(count_objects(&ends, "03", NULL), 0);
    repository_writer_close(writer);
    ends_clear(&ends);
}

/* ---- damage ---- */

/* Exports say what to do; prune finds anew what is garbage, and deletes it. */
static void
test_prune_drops_damaged_garbage(void)
{
    struct ends ends;
    char name[REPOSITORY_NAME_BYTES], path[384];
    ends_make(&ends, true);
    repository_writer_close(make_garbage(&ends));
    CHECK_NUMBER(count_objects(&ends, "05", path), 1);
    flip(path, 60);
    struct error *error = put_snapshot(ends.repository, 1000, 1, 100, name);
    CHECK(error && error->code == CODE_FAILED_PRECONDITION);
    CHECK(error && strstr(error->message, "`skycap snapshot prune`"));
    CHECK(error && strstr(error->message, "05/"));
    error_free(error);
    CHECK_NUMBER(prune(ends.repository).packs_deleted, 1);
    CHECK_NUMBER(count_objects(&ends, "05", NULL) + count_objects(&ends, "06", NULL), 0);
    CHECK(went_well(put_snapshot(ends.repository, 1000, 1, 100, name)));
    CHECK(went_well(check_snapshot(ends.repository, name, 1000, 1, 100)));
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_DATA).count, 0);
    ends_clear(&ends);
}

/* A writer that was there before the garbage is still waited for, and its chunks are kept. */
static void
test_dropped_garbage_may_be_used(void)
{
    struct ends ends;
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES], path[384];
    ends_make(&ends, true);
    struct repository_writer *writer = make_garbage(&ends);
    for (uint64_t i = 0; i < 100; i++)
        CHECK(went_well(put_chunk(writer, i, &record)));
    CHECK_NUMBER(count_objects(&ends, "05", path), 1);
    flip(path, 60);
    struct repository_prune result = prune(ends.repository);
    CHECK_NUMBER(result.packs_deleted, 0);
    CHECK_NUMBER(result.packs_waiting, 1);
    CHECK(went_well(repository_writer_commit(writer, record.bytes, record.size, name)));
    repository_writer_close(writer);
    CHECK_NUMBER(prune(ends.repository).packs_rescued, 1);
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 100)));
    ends_clear(&ends);
}

static void
set_age(const char *path, time_t hours)
{
    const struct timespec then = {.tv_sec = time(NULL) - hours * 3600};
    const struct timespec times[] = {then, then};
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* Nobody can tell whose it is: it counts for a day. */
static void
test_damaged_writer_counts_for_a_day(void)
{
    struct ends ends;
    char path[384];
    ends_make(&ends, true);
    struct repository_writer *writer = make_garbage(&ends);
    CHECK_NUMBER(count_objects(&ends, "04", path), 1);
    flip(path, 60);
    set_age(path, 23);
    CHECK_NUMBER(prune(ends.repository).packs_waiting, 1);
    CHECK_NUMBER(count_objects(&ends, "04", NULL), 1);
    set_age(path, 25);
    CHECK_NUMBER(prune(ends.repository).packs_deleted, 1);
    CHECK_NUMBER(count_objects(&ends, "04", NULL), 0);
    repository_writer_close(writer);
    ends_clear(&ends);
}

/* ---- cancel ---- */

static bool
always(void *context)
{
    (void)context;
    return true;
}

static void
test_cancel(void)
{
    struct ends ends;
    char name[REPOSITORY_NAME_BYTES];
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, name)));
    struct repository_verify request = {
        .level = REPOSITORY_DATA, .references = &references, .progress = {.is_cancelled = always}};
    struct error *error = repository_verify(ends.repository, &request);
    CHECK(error && error->code == CODE_CANCELLED);
    error_free(error);
    struct repository_prune pruning = {.references = &references,
                                       .progress = {.is_cancelled = always}};
    error = repository_prune(ends.repository, &pruning);
    CHECK(error && error->code == CODE_CANCELLED);
    error_free(error);
    CHECK_NUMBER(count_objects(&ends, "04", NULL), 0);
    CHECK_NUMBER(prune(ends.repository).packs_deleted, 0);
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 100)));
    ends_clear(&ends);
}

/* ---- packs that are lost ---- */

static void
forget_cache(struct ends *ends)
{
    char command[256];
    repository_close(STEAL(ends->repository));
    snprintf(command, sizeof command, "rm -r %s/cache", ends->directory);
    CHECK_NUMBER(system(command), 0);
    ends_open(ends);
}

/* The number of chunks that are stored anew. */
static uint64_t
put_again(struct repository *repository, unsigned count, char name[REPOSITORY_NAME_BYTES])
{
    struct repository_writer *writer = NULL;
    struct repository_counters counters;
    struct buffer record AUTO(buffer_clear) = {0};
    CHECK(went_well(repository_writer_open(repository, &writer)));
    CHECK(repository_writer_has_losses(writer));
    for (uint64_t i = 0; i < count; i++)
        CHECK(went_well(put_chunk(writer, i, &record)));
    repository_writer_count(writer, &counters);
    CHECK(went_well(repository_writer_commit(writer, record.bytes, record.size, name)));
    repository_writer_close(writer);
    return counters.chunks - counters.chunks_reused;
}

/* Whoever reads next finds what was stored anew, in whatever order it reads the index. */
static void
check_lost_pack(const char *how)
{
    struct ends ends;
    char names[3][REPOSITORY_NAME_BYTES], path[384], command[512];
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 50, names[0])));
    CHECK_NUMBER(count_objects(&ends, "01", path), 1);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, names[1])));
    snprintf(command, sizeof command, "%s %s", how, path);
    CHECK_NUMBER(system(command), 0);
    CHECK(verify(ends.repository, REPOSITORY_STRUCTURE).snapshots == 2);
    CHECK_NUMBER(put_again(ends.repository, 100, names[2]), 50);
    for (unsigned i = 0; i < 2; i++) {
        CHECK(went_well(check_snapshot(ends.repository, names[0], 0, 1, 50)));
        CHECK(went_well(check_snapshot(ends.repository, names[1], 0, 1, 100)));
        CHECK(went_well(check_snapshot(ends.repository, names[2], 0, 1, 100)));
        forget_cache(&ends);
    }
    /* Nothing is missing for a snapshot, and prune makes the index right. */
    struct findings findings = verify(ends.repository, REPOSITORY_DATA);
    CHECK(findings.count > 0);
    CHECK_NUMBER(findings.snapshots, 0);
    prune(ends.repository);
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_DATA).count, 0);
    CHECK_NUMBER(count_objects(&ends, "04", NULL) + count_objects(&ends, "05", NULL), 0);
    CHECK(went_well(check_snapshot(ends.repository, names[0], 0, 1, 50)));
    ends_clear(&ends);
}

static void
test_what_is_lost_is_stored_anew(void)
{
    for (unsigned i = 0; i < 4; i++) {
        check_lost_pack("rm");
        check_lost_pack("truncate -s 1000");
    }
}

/* A writer that began before the pack was lost may count on it: the index names it until then. */
static void
test_prune_keeps_lost_packs_in_the_index_for_writers(void)
{
    struct ends ends;
    struct repository_writer *writer = NULL, *next = NULL;
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES], path[384];
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 50, name)));
    CHECK(went_well(repository_writer_open(ends.repository, &writer)));
    for (uint64_t i = 0; i < 50; i++)
        CHECK(went_well(put_chunk(writer, i, &record)));
    CHECK_NUMBER(count_objects(&ends, "01", path), 1);
    CHECK(unlink(path) == 0);
    CHECK(went_well(repository_snapshot_remove(ends.repository, name)));
    prune(ends.repository);
    CHECK(went_well(repository_writer_commit(writer, record.bytes, record.size, name)));
    repository_writer_close(writer);
    CHECK(went_well(repository_writer_open(ends.repository, &next)));
    CHECK(repository_writer_has_losses(next));
    repository_writer_close(next);
    struct repository_prune request = {.references = &references};
    struct error *error = repository_prune(ends.repository, &request);
    CHECK(error && error->code == CODE_DATA_LOSS && strstr(error->message, "01/"));
    error_free(error);
    CHECK(went_well(repository_snapshot_remove(ends.repository, name)));
    prune(ends.repository);
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_DATA).count, 0);
    ends_clear(&ends);
}

/* ---- rebuild ---- */

static void
test_index_is_rebuilt_from_packs(void)
{
    struct ends ends;
    char name[REPOSITORY_NAME_BYTES], command[256], path[384];
    uint64_t packs = 0;
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 1000, name)));
    repository_close(STEAL(ends.repository));
    snprintf(command, sizeof command, "rm -r %s/repository/02/* %s/cache", ends.directory,
             ends.directory);
    CHECK_NUMBER(system(command), 0);
    ends_open(&ends);
    struct error *error = check_snapshot(ends.repository, name, 0, 1, 1000);
    CHECK(error && error->code == CODE_NOT_FOUND);
    error_free(error);
    CHECK(went_well(repository_rebuild(ends.repository, REPOSITORY_STRUCTURE, NULL, &packs)));
    CHECK_NUMBER(packs, count_objects(&ends, "01", NULL));
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 1000)));
    /* A damaged index is replaced. */
    CHECK_NUMBER(count_objects(&ends, "02", path), 1);
    flip(path, 100);
    snprintf(command, sizeof command, "rm -r %s/cache", ends.directory);
    CHECK_NUMBER(system(command), 0);
    ends_open(&ends);
    error = check_snapshot(ends.repository, name, 0, 1, 1000);
    CHECK(error && error->code == CODE_DATA_LOSS);
    error_free(error);
    CHECK(went_well(repository_rebuild(ends.repository, REPOSITORY_STRUCTURE, NULL, &packs)));
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 1000)));
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_DATA).count, 0);
    struct repository_stats stats;
    CHECK(went_well(repository_stats(ends.repository, &stats)));
    CHECK_NUMBER(stats.snapshots, 1);
    CHECK_NUMBER(stats.chunks, 1000);
    CHECK_NUMBER(stats.packs, packs);
    ends_clear(&ends);
}

/* One damaged chunk costs one chunk, and an export that has it puts it back. */
static void
test_rebuild_keeps_the_sound_chunks_of_a_damaged_pack(void)
{
    struct ends ends;
    struct repository_stats stats;
    char names[3][REPOSITORY_NAME_BYTES], path[384], command[256];
    uint64_t packs = 0;
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, names[0])));
    CHECK_NUMBER(count_objects(&ends, "01", path), 1);
    repository_close(STEAL(ends.repository));
    flip(path, 60);
    snprintf(command, sizeof command, "rm -r %s/repository/02/* %s/cache", ends.directory,
             ends.directory);
    CHECK_NUMBER(system(command), 0);
    ends_open(&ends);
    CHECK(went_well(repository_rebuild(ends.repository, REPOSITORY_STRUCTURE, NULL, &packs)));
    CHECK_NUMBER(packs, 1);
    CHECK(went_well(repository_stats(ends.repository, &stats)));
    CHECK_NUMBER(stats.chunks, 99);
    CHECK(verify(ends.repository, REPOSITORY_DATA).snapshots > 0);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, names[1])));
    CHECK(went_well(check_snapshot(ends.repository, names[0], 0, 1, 100)));
    /* Prune copies what is in use out of the damaged pack. */
    CHECK(went_well(put_snapshot(ends.repository, 50, 1, 10, names[2])));
    CHECK(went_well(repository_snapshot_remove(ends.repository, names[0])));
    CHECK(went_well(repository_snapshot_remove(ends.repository, names[1])));
    CHECK_NUMBER(prune(ends.repository).packs_rewritten, 1);
    CHECK(went_well(check_snapshot(ends.repository, names[2], 50, 1, 10)));
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_DATA).count, 0);
    ends_clear(&ends);
}

/* The index names a damaged pack: what is sound of it stays, the rest can be put again. */
static void
check_damaged_pack(off_t at)
{
    struct ends ends;
    struct repository_writer *writer = NULL;
    char names[2][REPOSITORY_NAME_BYTES], path[384];
    uint64_t packs = 0;
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, names[0])));
    CHECK_NUMBER(count_objects(&ends, "01", path), 1);
    flip(path, at < 0 ? size_of(path) + at : at);
    CHECK(verify(ends.repository, REPOSITORY_DATA).count > 0);
    CHECK(went_well(repository_rebuild(ends.repository, REPOSITORY_STRUCTURE, NULL, &packs)));
    CHECK_NUMBER(packs, 0);
    CHECK(went_well(repository_rebuild(ends.repository, REPOSITORY_DATA, NULL, &packs)));
    CHECK_NUMBER(packs, 1);
    forget_cache(&ends);
    /* Again: it is known to be lost, and its chunks are not stored twice. */
    CHECK(went_well(repository_rebuild(ends.repository, REPOSITORY_DATA, NULL, &packs)));
    CHECK_NUMBER(packs, 0);
    CHECK_NUMBER(count_objects(&ends, "01", NULL), 2);
    CHECK_NUMBER(put_again(ends.repository, 100, names[1]), at < 0 ? 0 : 1);
    CHECK(went_well(check_snapshot(ends.repository, names[0], 0, 1, 100)));
    prune(ends.repository);
    CHECK_NUMBER(verify(ends.repository, REPOSITORY_DATA).count, 0);
    CHECK_NUMBER(count_objects(&ends, "01", NULL), at < 0 ? 1 : 2);
    CHECK(access(path, F_OK) != 0);
    CHECK(went_well(repository_writer_open(ends.repository, &writer)));
    CHECK(!repository_writer_has_losses(writer));
    repository_writer_close(writer);
    forget_cache(&ends);
    CHECK(went_well(check_snapshot(ends.repository, names[0], 0, 1, 100)));
    CHECK(went_well(check_snapshot(ends.repository, names[1], 0, 1, 100)));
    ends_clear(&ends);
}

static void
test_rebuild_takes_damaged_packs_out_of_the_index(void)
{
    check_damaged_pack(60);  /* a chunk */
    check_damaged_pack(-30); /* the list: the index has it, too */
}

int
main(void)
{
    test_every_flipped_byte_is_found(true);
    test_every_flipped_byte_is_found(false);
    test_read_finds_flipped_bytes();
    test_read_finds_flipped_bytes_of_an_index(true);
    test_read_finds_flipped_bytes_of_an_index(false);
    test_verify_names_affected_snapshots();
    test_verify_beside_a_prune_finds_nothing(REPOSITORY_STRUCTURE);
    test_verify_beside_a_prune_finds_nothing(REPOSITORY_DATA);
    test_prune_keeps_what_is_in_use();
    test_prune_merges_small_packs();
    test_prune_waits_for_writers();
    test_writer_does_not_use_garbage();
    test_dead_writer_cannot_commit();
    test_prune_drops_damaged_garbage();
    test_dropped_garbage_may_be_used();
    test_damaged_writer_counts_for_a_day();
    test_cancel();
    test_what_is_lost_is_stored_anew();
    test_prune_keeps_lost_packs_in_the_index_for_writers();
    test_index_is_rebuilt_from_packs();
    test_rebuild_keeps_the_sound_chunks_of_a_damaged_pack();
    test_rebuild_takes_damaged_packs_out_of_the_index();
    return check_report("test_repository_care");
}
