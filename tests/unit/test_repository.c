/* SPDX-License-Identifier: Apache-2.0 */
/* A repository in a directory: what was put comes back; keys; several writers; the local index. */
#include "repository/repository.h"

#include <pthread.h>

#include "repository_ends.h"

static void
test_round_trip(bool encrypts)
{
    struct ends ends;
    char name[REPOSITORY_NAME_BYTES], again[REPOSITORY_NAME_BYTES];
    ends_make(&ends, encrypts);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 1000, name)));
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 1000)));
    CHECK(went_well(put_snapshot(ends.repository, 500, 1, 1000, again)));
    ends_open(&ends);
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 1000)));
    CHECK(went_well(check_snapshot(ends.repository, again, 500, 1, 1000)));
    ends_clear(&ends);
}

static void
test_chunks_are_stored_once(void)
{
    struct ends ends;
    struct repository_writer *writer = NULL;
    struct repository_counters counters;
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES];
    ends_make(&ends, true);
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, name)));
    CHECK(went_well(repository_writer_open(ends.repository, &writer)));
    for (uint64_t i = 0; i < 110; i++)
        CHECK(went_well(put_chunk(writer, i, &record)));
    for (uint64_t i = 0; i < 110; i++)
        CHECK(went_well(put_chunk(writer, i, &record)));
    repository_writer_count(writer, &counters);
    CHECK_NUMBER(counters.chunks, 220);
    CHECK_NUMBER(counters.chunks_reused, 210);
    repository_writer_close(writer);
    ends_clear(&ends);
}

static void
test_wrong_key(void)
{
    struct ends ends;
    struct repository *other = NULL;
    char path[128];
    ends_make(&ends, true);
    snprintf(path, sizeof path, "%s/other", ends.directory);
    struct repository_options options = ends.options;
    options.key_file = path;
    /* Makes a key file for another repository. */
    char url[128];
    snprintf(url, sizeof url, "file://%s/second", ends.directory);
    options.url = url;
    CHECK(went_well(repository_create(&options)));
    options.url = ends.url;
    struct error *error = repository_open(&options, &other);
    CHECK(error && error->code == CODE_FAILED_PRECONDITION);
    CHECK(error && strstr(error->message, "this key does not open the repository"));
    error_free(error);
    options.key_file = NULL;
    error = repository_open(&options, &other);
    CHECK(error && error->code == CODE_FAILED_PRECONDITION);
    error_free(error);
    error = repository_create(&ends.options);
    CHECK(error && error->code == CODE_ALREADY_EXISTS);
    error_free(error);
    struct stat status;
    CHECK(stat(ends.key_file, &status) == 0 && (status.st_mode & 0777) == 0600);
    /* Kubernetes shows the files of a Secret as links. */
    snprintf(path, sizeof path, "%s/link", ends.directory);
    CHECK(symlink("key", path) == 0);
    options.key_file = path;
    CHECK(went_well(repository_open(&options, &other)));
    repository_close(other);
    ends_clear(&ends);
}

/* ---- threads ---- */

struct worker {
    pthread_t thread;
    struct repository *repository;
    uint64_t first;
    char names[5][REPOSITORY_NAME_BYTES];
};

static void *
write_snapshots(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < 5; i++)
        CHECK(went_well(
            put_snapshot(worker->repository, worker->first + 20 * i, 1, 60, worker->names[i])));
    return NULL;
}

static void *
prune_often(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < 8; i++) {
        char name[REPOSITORY_NAME_BYTES];
        struct repository_prune request = {.references = &references, .least_live_percent = 90};
        CHECK(went_well(put_snapshot(worker->repository, 20 * i, 3, 30, name)));
        CHECK(went_well(repository_snapshot_remove(worker->repository, name)));
        CHECK(went_well(repository_prune(worker->repository, &request)));
    }
    return NULL;
}

/* Two handles, as of two processes; on one of them two writers and a prune at once. */
static void
test_writers_beside_a_prune(void)
{
    struct ends ends;
    struct repository *other = NULL;
    ends_make(&ends, true);
    CHECK(went_well(repository_open(&ends.options, &other)));
    struct worker workers[4] = {{.repository = ends.repository, .first = 0},
                                {.repository = ends.repository, .first = 30},
                                {.repository = other, .first = 60},
                                {.repository = ends.repository}};
    for (size_t i = 0; i < COUNT_OF(workers); i++)
        CHECK(!pthread_create(&workers[i].thread, NULL, i == 3 ? prune_often : write_snapshots,
                              &workers[i]));
    for (size_t i = 0; i < COUNT_OF(workers); i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < 15; i++) {
        const struct worker *worker = &workers[i / 5];
        CHECK(went_well(check_snapshot(i % 2 ? other : ends.repository, worker->names[i % 5],
                                       worker->first + 20 * (i % 5), 1, 60)));
    }
    struct repository_verify verify = {.level = REPOSITORY_DATA, .references = &references};
    CHECK(went_well(repository_verify(other, &verify)));
    CHECK_NUMBER(verify.findings, 0);
    CHECK_NUMBER(verify.snapshots, 15);
    repository_close(other);
    ends_clear(&ends);
}

int
main(void)
{
    test_round_trip(true);
    test_round_trip(false);
    test_chunks_are_stored_once();
    test_wrong_key();
    test_writers_beside_a_prune();
    return check_report("test_repository");
}
