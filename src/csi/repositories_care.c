/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.Repositories: verify, prune and rebuild. Each is an operation that lasts as long as the
 * client waits for it: all can be repeated at any time.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/size_text.h"
#include "csi/repositories_internal.h"
#include "exports/export_record.h"

#define REPORT_MS 500u

typedef Skycap__V1__RepositoryWork work_message;

/* The work, on the operation's thread. */
struct care {
    struct engine *engine;
    char *repository;
    bool reads_data; /* of verify */
    struct error *(*run)(struct care *care, struct repository *repository);
    struct repository_task *task;
    uint64_t told_ms;
};

static void
care_free(void *context)
{
    struct care *care = context;
    free(care->repository);
    free(care);
}

static bool
is_cancelled(void *context)
{
    const struct progress *progress = repository_task_progress(((struct care *)context)->task);
    return progress->cancelled(progress->context);
}

static void
report(uint64_t done, uint64_t total, void *context)
{
    struct care *care = context;
    const struct progress *progress = repository_task_progress(care->task);
    uint64_t now = clock_now_ms();
    progress->report(progress->context, done, total);
    if (now - care->told_ms < REPORT_MS)
        return;
    work_message message = SKYCAP__V1__REPOSITORY_WORK__INIT;
    message.done = done;
    message.total = total;
    care->told_ms = now;
    repository_task_tell(care->task, &message.base);
}

/* Rebuild does not know how many packs it will find. */
static void
report_without_total(uint64_t done, uint64_t total, void *context)
{
    (void)total;
    report(done, 0, context);
}

static void
take_finding(const struct repository_finding *finding, void *context)
{
    struct care *care = context;
    work_message message = SKYCAP__V1__REPOSITORY_WORK__INIT;
    struct buffer text AUTO(buffer_clear) = {0};
    buffer_print(&text, "%s: %s%s%s", finding->object, finding->text,
                 finding->snapshot ? "; affects snapshot " : "",
                 finding->snapshot ? finding->snapshot : "");
    message.finding = (char *)buffer_text(&text);
    repository_task_tell(care->task, &message.base);
}

/* ---- the kinds ---- */

/* What is wrong with the repository is no error for the client, but the operation has failed. */
static struct error *
run_verify(struct care *care, struct repository *repository)
{
    struct repository_verify verify = {
        .level = care->reads_data ? REPOSITORY_DATA : REPOSITORY_STRUCTURE,
        .references = &export_references,
        .found = take_finding,
        .context = care,
        .progress = {report, is_cancelled, care},
    };
    struct error *error = repository_verify(repository, &verify);
    if (error)
        return error;
    work_message message = SKYCAP__V1__REPOSITORY_WORK__INIT;
    message.is_result = true;
    message.snapshots = verify.snapshots;
    message.packs = verify.packs;
    message.chunks = verify.chunks;
    message.bytes = verify.bytes;
    message.findings = verify.findings;
    repository_task_tell(care->task, &message.base);
    if (verify.findings)
        return error_new(CODE_DATA_LOSS,
                         "the repository %s is damaged: %" PRIu64
                         " findings; `skycap snapshot verify` lists them",
                         care->repository, verify.findings);
    buffer_print(repository_task_result(care->task),
                 "%" PRIu64 " snapshots, %" PRIu64 " chunks in %" PRIu64 " packs: nothing is wrong",
                 verify.snapshots, verify.chunks, verify.packs);
    return NULL;
}

static struct error *
run_prune(struct care *care, struct repository *repository)
{
    char freed[32];
    struct repository_prune prune = {
        .references = &export_references,
        .progress = {report, is_cancelled, care},
    };
    struct error *error = repository_prune(repository, &prune);
    if (error)
        return error;
    work_message message = SKYCAP__V1__REPOSITORY_WORK__INIT;
    message.is_result = true;
    message.packs_deleted = prune.packs_deleted;
    message.bytes_deleted = prune.bytes_deleted;
    message.packs_waiting = prune.packs_waiting;
    message.packs_rewritten = prune.packs_rewritten;
    repository_task_tell(care->task, &message.base);
    size_text_print((int64_t)prune.bytes_deleted, freed, sizeof freed);
    buffer_print(repository_task_result(care->task),
                 "freed %s in %" PRIu64 " packs; %" PRIu64 " more wait for exports to end", freed,
                 prune.packs_deleted, prune.packs_waiting);
    return NULL;
}

static struct error *
run_rebuild(struct care *care, struct repository *repository)
{
    const struct repository_progress progress = {report_without_total, is_cancelled, care};
    uint64_t packs = 0;
    struct error *error = repository_rebuild(
        repository, care->reads_data ? REPOSITORY_DATA : REPOSITORY_STRUCTURE, &progress, &packs);
    if (error)
        return error;
    work_message message = SKYCAP__V1__REPOSITORY_WORK__INIT;
    message.is_result = true;
    message.packs = packs;
    repository_task_tell(care->task, &message.base);
    buffer_print(repository_task_result(care->task), "%" PRIu64 " packs are in the index again",
                 packs);
    return NULL;
}

/* ---- all of them ---- */

static struct error *
run(void *context, struct repository_task *task)
{
    struct care *care = context;
    struct repository_use use AUTO(repository_pool_release) = {0};
    care->task = task;
    care->told_ms = clock_now_ms();
    struct error *error = repository_pool_open(care->engine, care->repository, &use);
    return error ? error : care->run(care, use.repository);
}

/* Starts the operation and follows it. Without such a repository there is no operation. */
static struct error *
take_care(struct call *call, const char *repository, const struct care *wanted,
          const struct repository_job *form)
{
    struct engine *engine = controller_engine(call);
    struct arena *arena = call_arena(call);
    struct repository_place place;
    struct repository_task *task;
    const char *name;
    struct error *error = repository_pool_choose(engine, repository, arena, &name);
    if (!error)
        error = repository_pool_find(engine, name, arena, &place);
    if (error)
        return error;
    struct care *care = memory_new(sizeof *care);
    *care = *wanted;
    care->engine = engine;
    care->repository = memory_string(name);
    struct repository_job job = *form;
    job.repository = name;
    job.what = "";
    job.description = arena_print(arena, "%s the repository %s", form->description, name);
    job.context = care;
    job.run = run;
    job.free = care_free;
    error = repository_task_start(engine, &job, &task);
    return error ? error : repositories_follow(call, task);
}

struct error *
repositories_verify(struct call *call, const Skycap__V1__VerifyRepositoryRequest *request)
{
    const struct care care = {.run = run_verify, .reads_data = request->data};
    const struct repository_job form = {
        .kind = VERIFY_REPOSITORY,
        .units = "objects",
        .description = request->data ? "verify all data of" : "verify",
    };
    return take_care(call, request->repository, &care, &form);
}

struct error *
repositories_prune(struct call *call, const Skycap__V1__PruneRepositoryRequest *request)
{
    const struct care care = {.run = run_prune};
    const struct repository_job form = {
        .kind = PRUNE_REPOSITORY, .units = "objects", .description = "prune"};
    return take_care(call, request->repository, &care, &form);
}

struct error *
repositories_rebuild(struct call *call, const Skycap__V1__RebuildRepositoryRequest *request)
{
    const struct care care = {.run = run_rebuild, .reads_data = request->data};
    const struct repository_job form = {
        .kind = REBUILD_REPOSITORY, .units = "packs", .description = "make the index anew of"};
    return take_care(call, request->repository, &care, &form);
}
