/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of writers that stay: because the repository could not be reached when the writer ended,
 * or because it has not been refreshed for a day. Prune takes them for dead, and nothing else.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define ENDS_PLACE "/dev/shm"
#include "base/clock.h"
#include "repository/bytes.h"
#include "repository/objects.h"
#include "repository/repository_internal.h"
#include "repository/writers.h"
#include "repository_ends.h"

#define REFRESHED_AT 32u /* in a writer's object */
#define HOUR_MS (UINT64_C(3600) * 1000)

/* ---- a repository that cannot be reached ---- */

struct outage {
    struct objects *objects;
    const struct objects_ops *sound;
    struct objects_ops failing;
};

static struct error *
fail_put(struct objects *objects, const char *key, const uint8_t *bytes, size_t size,
         enum objects_put how)
{
    (void)objects, (void)key, (void)bytes, (void)size, (void)how;
    return error_new(CODE_UNAVAILABLE, "it cannot be reached");
}

static struct error *
fail_key(struct objects *objects, const char *key)
{
    (void)objects, (void)key;
    return error_new(CODE_UNAVAILABLE, "it cannot be reached");
}

static void
outage_begin(struct outage *outage)
{
    outage->sound = outage->objects->ops;
    outage->failing = *outage->sound;
    outage->failing.put = fail_put;
    outage->failing.delete = fail_key;
    outage->objects->ops = &outage->failing;
}

static void
outage_end(struct outage *outage)
{
    outage->objects->ops = outage->sound;
}

/* Only the first report. */
static void
begin_in_prune(uint64_t done, uint64_t total, void *context)
{
    struct outage *outage = context;
    (void)done, (void)total;
    if (outage->objects->ops != &outage->failing)
        outage_begin(outage);
}

/* ---- helpers ---- */

static struct error *
count_object(const struct object_name *name, uint64_t size, void *context)
{
    (void)name, (void)size;
    ++*(unsigned *)context;
    return NULL;
}

static unsigned
count(struct repository *repository, enum object_kind kind)
{
    unsigned count = 0;
    CHECK(went_well(objects_list(repository->objects, kind, count_object, &count)));
    return count;
}

static struct repository_prune
prune(struct repository *repository)
{
    struct repository_prune request = {.references = &references};
    CHECK(went_well(repository_prune(repository, &request)));
    return request;
}

static void
make(struct ends *ends)
{
    ends_make(ends, true);
    CHECK(went_well(repository_roster_open(ends->directory, "node-1", &ends->options.roster)));
    ends_open(ends);
}

static void
clear(struct ends *ends)
{
    ends_clear(ends);
    repository_roster_close(ends->options.roster);
}

static void
close_repository(struct ends *ends)
{
    repository_close(ends->repository);
    ends->repository = NULL;
}

/* ---- outages ---- */

/* Leaves the object of a writer that could not reach the repository, and a pack for prune. */
static void
leave_writer(struct ends *ends)
{
    struct repository_writer *writer = NULL;
    char name[REPOSITORY_NAME_BYTES];
    struct outage outage = {.objects = ends->repository->objects};
    CHECK(went_well(put_snapshot(ends->repository, 0, 1, 100, name)));
    CHECK(went_well(repository_snapshot_remove(ends->repository, name)));
    CHECK(went_well(repository_writer_open(ends->repository, &writer)));
    outage_begin(&outage);
    repository_writer_close(writer);
    outage_end(&outage);
}

/* The process goes on, and prune frees what the writer may have used. */
static void
test_writer_that_ended_in_an_outage(void)
{
    struct ends ends;
    make(&ends);
    leave_writer(&ends);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 1);
    struct repository_prune result = prune(ends.repository);
    CHECK_NUMBER(result.packs_waiting, 0);
    CHECK_NUMBER(result.packs_deleted, 1);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 0);
    clear(&ends);
}

/* The machine was started again: the next process knows the writer by the file of the roster. */
static void
test_writer_of_an_earlier_process(void)
{
    struct ends ends;
    make(&ends);
    leave_writer(&ends);
    close_repository(&ends);
    struct repository_roster *earlier = ends.options.roster;
    CHECK(went_well(repository_roster_open(ends.directory, "node-1", &ends.options.roster)));
    ends_open(&ends);
    CHECK_NUMBER(prune(ends.repository).packs_waiting, 1); /* both processes run */
    close_repository(&ends);
    repository_roster_close(ends.options.roster);
    repository_roster_close(earlier);
    CHECK(went_well(repository_roster_open(ends.directory, "node-2", &ends.options.roster)));
    ends_open(&ends);
    CHECK_NUMBER(prune(ends.repository).packs_waiting, 1); /* the directory of node-1 was copied */
    close_repository(&ends);
    repository_roster_close(ends.options.roster);
    CHECK(went_well(repository_roster_open(ends.directory, "node-1", &ends.options.roster)));
    ends_open(&ends);
    CHECK_NUMBER(prune(ends.repository).packs_deleted, 1);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 0);
    clear(&ends);
}

static void
test_prune_that_ended_in_an_outage(void)
{
    struct ends ends;
    char name[REPOSITORY_NAME_BYTES];
    make(&ends);
    struct outage outage = {.objects = ends.repository->objects};
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, name)));
    CHECK(went_well(repository_snapshot_remove(ends.repository, name)));
    CHECK(went_well(put_snapshot(ends.repository, 1000, 1, 100, name)));
    struct repository_prune request = {.references = &references,
                                       .progress = {.report = begin_in_prune, .context = &outage}};
    struct error *error = repository_prune(ends.repository, &request);
    CHECK(error && error->code == CODE_UNAVAILABLE);
    error_free(error);
    outage_end(&outage);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 1);
    CHECK_NUMBER(prune(ends.repository).packs_deleted, 1);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 0);
    CHECK(went_well(check_snapshot(ends.repository, name, 1000, 1, 100)));
    clear(&ends);
}

/* ---- who is alive ---- */

/* Writers of the same process are alive while they are open, whoever has opened them. */
static void
test_open_writers_are_alive(void)
{
    struct ends ends;
    struct repository *others[2] = {NULL};
    struct repository_writer *writers[2] = {NULL};
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES];
    make(&ends);
    struct repository_options options = ends.options;
    CHECK(went_well(repository_open(&options, &others[0])));
    options.roster = NULL;
    CHECK(went_well(repository_open(&options, &others[1])));
    CHECK(went_well(put_snapshot(ends.repository, 0, 1, 100, name)));
    for (unsigned i = 0; i < 2; i++)
        CHECK(went_well(repository_writer_open(others[i], &writers[i])));
    for (uint64_t i = 0; i < 100; i++)
        CHECK(went_well(put_chunk(writers[0], i, &record)));
    CHECK(went_well(repository_snapshot_remove(ends.repository, name)));
    CHECK_NUMBER(prune(ends.repository).packs_waiting, 1);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 2);
    CHECK(went_well(repository_writer_commit(writers[0], record.bytes, record.size, name)));
    repository_writer_close(writers[0]);
    CHECK_NUMBER(prune(ends.repository).packs_waiting, 1);
    repository_writer_close(writers[1]);
    CHECK_NUMBER(prune(ends.repository).packs_rescued, 1);
    CHECK(went_well(check_snapshot(ends.repository, name, 0, 1, 100)));
    repository_close(others[0]);
    repository_close(others[1]);
    clear(&ends);
}

/* ---- time ---- */

static struct error *
note_name(const struct object_name *name, uint64_t size, void *context)
{
    (void)size;
    *(struct object_name *)context = *name;
    return NULL;
}

/* The only writer's object, as if it had been refreshed so many hours ago. */
static void
set_age(struct repository *repository, uint64_t hours)
{
    struct object_name name;
    struct buffer body AUTO(buffer_clear) = {0}, object AUTO(buffer_clear) = {0};
    CHECK(went_well(objects_list(repository->objects, OBJECT_WRITER, note_name, &name)));
    CHECK(went_well(repository_load(repository, OBJECT_WRITER, &name, &body)));
    bytes_set64(body.bytes + REFRESHED_AT, (uint64_t)clock_unix_ms() - hours * HOUR_MS);
    CHECK(went_well(
        repository_seal(repository->sealing, OBJECT_WRITER, body.bytes, body.size, &object)));
    CHECK(went_well(objects_put(repository->objects, OBJECT_WRITER, &name, object.bytes,
                                object.size, OBJECTS_REPLACE)));
}

/* A process that is there does not keep an object alive for ever. */
static void
test_an_object_lives_a_day(void)
{
    struct ends ends;
    struct repository_writer *writer = NULL;
    struct buffer record AUTO(buffer_clear) = {0};
    char name[REPOSITORY_NAME_BYTES];
    make(&ends);
    CHECK(went_well(repository_writer_open(ends.repository, &writer)));
    CHECK(went_well(put_chunk(writer, 1, &record)));
    set_age(ends.repository, 23);
    prune(ends.repository);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 1);
    set_age(ends.repository, 25);
    prune(ends.repository);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 0);
    struct error *error = repository_writer_commit(writer, record.bytes, record.size, name);
    CHECK(error && error->code == CODE_ABORTED);
    error_free(error);
    repository_writer_close(writer);
    clear(&ends);
}

/* ---- a process that is stopped ---- */

#define LARGE (4u << 20) /* bytes of a chunk; two fill a pack */

static struct error *
put_large(struct repository_writer *writer, uint64_t number)
{
    struct repository_id id;
    uint8_t *bytes AUTO(memory_cleanup) = memory_new(LARGE);
    fill_chunk(number, bytes, LARGE);
    return repository_writer_put(writer, bytes, LARGE, &id);
}

/* Has stored packs that no index names, and is stopped. Its end: the code of the error. */
static void
run_stopped(const struct ends *ends)
{
    struct repository *repository = NULL;
    struct repository_writer *writer = NULL;
    struct repository_counters counters = {0};
    struct repository_options options = ends->options;
    options.roster = NULL;
    struct error *error = repository_open(&options, &repository);
    if (!error)
        error = repository_writer_open(repository, &writer);
    for (uint64_t i = 0; i < 5 && !error; i++)
        error = put_large(writer, 2 * i + 1);
    while (!error && counters.packs < 2)
        repository_writer_count(writer, &counters);
    if (!error)
        error = objects_sync(repository->objects);
    if (error)
        _exit(100);
    raise(SIGSTOP);
    error = repository_writer_flush(writer);
    int code = error ? (int)error->code : 0;
    error_free(error);
    repository_writer_close(writer);
    repository_close(repository);
    _exit(code);
}

/* Prune has deleted its packs meanwhile. No index may name them. */
static void
test_a_writer_that_was_taken_for_dead_puts_no_index(void)
{
    struct ends ends;
    int status = 0;
    make(&ends);
    pid_t pid = fork();
    if (!pid)
        run_stopped(&ends);
    CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    CHECK(count(ends.repository, OBJECT_PACK) >= 2);
    set_age(ends.repository, 25);
    CHECK(prune(ends.repository).packs_deleted >= 2);
    CHECK_NUMBER(count(ends.repository, OBJECT_PACK), 0);
    CHECK(kill(pid, SIGCONT) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK_NUMBER(WEXITSTATUS(status), CODE_ABORTED);
    CHECK_NUMBER(count(ends.repository, OBJECT_INDEX), 0);
    CHECK_NUMBER(count(ends.repository, OBJECT_WRITER), 0);
    clear(&ends);
}

/* ---- a prune that is taken for dead ---- */

struct stopped_prune {
    struct ends *ends;
    struct repository_prune *request;
    bool is_dead;
};

/* When the first pack is deleted, somebody else removes its object. */
static void
bury(uint64_t done, uint64_t total, void *context)
{
    struct stopped_prune *prune = context;
    struct repository *repository = prune->ends->repository;
    struct object_name name;
    (void)done, (void)total;
    if (prune->is_dead || !prune->request->packs_deleted)
        return;
    prune->is_dead = true;
    CHECK(went_well(objects_list(repository->objects, OBJECT_WRITER, note_name, &name)));
    CHECK(went_well(objects_delete(repository->objects, OBJECT_WRITER, &name)));
}

static void
test_a_prune_that_was_taken_for_dead_deletes_nothing(void)
{
    struct ends ends;
    char names[3][REPOSITORY_NAME_BYTES];
    make(&ends);
    for (uint64_t i = 0; i < COUNT_OF(names); i++) {
        CHECK(went_well(put_snapshot(ends.repository, i * 100, 1, 50, names[i])));
        CHECK(went_well(repository_snapshot_remove(ends.repository, names[i])));
    }
    struct repository_prune request = {.references = &references};
    struct stopped_prune stopped = {&ends, &request, false};
    request.progress = (struct repository_progress){.report = bury, .context = &stopped};
    struct error *error = repository_prune(ends.repository, &request);
    CHECK(error && error->code == CODE_ABORTED);
    error_free(error);
    CHECK_NUMBER(request.packs_deleted, 1);
    CHECK_NUMBER(count(ends.repository, OBJECT_PACK), 2);
    CHECK_NUMBER(prune(ends.repository).packs_deleted, 2);
    clear(&ends);
}

int
main(void)
{
    test_writer_that_ended_in_an_outage();
    test_writer_of_an_earlier_process();
    test_prune_that_ended_in_an_outage();
    test_open_writers_are_alive();
    test_an_object_lives_a_day();
    test_a_writer_that_was_taken_for_dead_puts_no_index();
    test_a_prune_that_was_taken_for_dead_deletes_nothing();
    return check_report("test_repository_writers");
}
