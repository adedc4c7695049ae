/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap.v1.Repositories: verify, prune and rebuild. They run as long as the client waits for them:
 * all can be repeated at any time.
 */
#include "base/clock.h"
#include "csi/repositories_internal.h"
#include "exports/export_record.h"

#define REPORT_MS 500u

/* A call that does long work. */
struct work {
    struct call *call;
    struct repository_use use;
    struct patience patience;
    atomic_bool is_cancelled;
    uint64_t reported_ms;
    struct error *error; /* the client cannot be reached */
};

static void
send(struct work *work, const Skycap__V1__RepositoryWork *message)
{
    if (!work->error)
        work->error = call_send(work->call, &message->base);
    if (work->error)
        atomic_store(&work->is_cancelled, true);
}

static void
report(uint64_t done, uint64_t total, void *context)
{
    struct work *work = context;
    uint64_t now = clock_now_ms();
    if (call_is_cancelled(work->call))
        atomic_store(&work->is_cancelled, true);
    if (now - work->reported_ms < REPORT_MS)
        return;
    Skycap__V1__RepositoryWork message = SKYCAP__V1__REPOSITORY_WORK__INIT;
    message.done = done;
    message.total = total;
    work->reported_ms = now;
    send(work, &message);
}

static void
take_finding(const struct repository_finding *finding, void *context)
{
    struct work *work = context;
    Skycap__V1__RepositoryWork message = SKYCAP__V1__REPOSITORY_WORK__INIT;
    struct buffer text AUTO(buffer_clear) = {0};
    buffer_print(&text, "%s: %s%s%s", finding->object, finding->text,
                 finding->snapshot ? "; affects snapshot " : "",
                 finding->snapshot ? finding->snapshot : "");
    message.finding = (char *)buffer_text(&text);
    send(work, &message);
}

static struct error *
begin(struct work *work, const char *repository)
{
    struct engine *engine = controller_engine(work->call);
    const char *name;
    work->patience = repositories_patience(work->call);
    patience_begin(&work->patience);
    struct error *error = repository_pool_choose(engine, repository, call_arena(work->call), &name);
    return error ? error : repository_pool_open(engine, name, &work->use);
}

/* The error of the work is more interesting than that of the connection. */
static struct error *
end(struct work *work, struct error *error)
{
    repository_pool_release(&work->use);
    patience_end(&work->patience);
    struct error *failed = STEAL(work->error);
    if (!error)
        return failed;
    error_free(failed);
    return error;
}

struct error *
repositories_verify(struct call *call, const Skycap__V1__VerifyRepositoryRequest *request)
{
    struct work work = {.call = call, .reported_ms = clock_now_ms()};
    struct error *error = begin(&work, request->repository);
    if (error)
        return end(&work, error);
    struct repository_verify verify = {
        .level = request->data ? REPOSITORY_DATA : REPOSITORY_STRUCTURE,
        .references = &export_references,
        .found = take_finding,
        .context = &work,
        .progress = {report, &work, &work.is_cancelled},
    };
    error = repository_verify(work.use.repository, &verify);
    if (!error) {
        Skycap__V1__RepositoryWork message = SKYCAP__V1__REPOSITORY_WORK__INIT;
        message.is_result = true;
        message.snapshots = verify.snapshots;
        message.packs = verify.packs;
        message.chunks = verify.chunks;
        message.bytes = verify.bytes;
        message.findings = verify.findings;
        send(&work, &message);
    }
    return end(&work, error);
}

struct error *
repositories_prune(struct call *call, const Skycap__V1__PruneRepositoryRequest *request)
{
    struct work work = {.call = call, .reported_ms = clock_now_ms()};
    struct error *error = begin(&work, request->repository);
    if (error)
        return end(&work, error);
    struct repository_prune prune = {
        .references = &export_references,
        .progress = {report, &work, &work.is_cancelled},
    };
    error = repository_prune(work.use.repository, &prune);
    if (!error) {
        Skycap__V1__RepositoryWork message = SKYCAP__V1__REPOSITORY_WORK__INIT;
        message.is_result = true;
        message.packs_deleted = prune.packs_deleted;
        message.bytes_deleted = prune.bytes_deleted;
        message.packs_waiting = prune.packs_waiting;
        message.packs_rewritten = prune.packs_rewritten;
        send(&work, &message);
    }
    return end(&work, error);
}

struct error *
repositories_rebuild(struct call *call, const Skycap__V1__RebuildRepositoryRequest *request)
{
    struct work work = {.call = call, .reported_ms = clock_now_ms()};
    const struct repository_progress progress = {report, &work, &work.is_cancelled};
    uint64_t packs = 0;
    struct error *error = begin(&work, request->repository);
    if (!error)
        error = repository_rebuild(work.use.repository, &progress, &packs);
    if (!error) {
        Skycap__V1__RepositoryWork message = SKYCAP__V1__REPOSITORY_WORK__INIT;
        message.is_result = true;
        message.packs = packs;
        send(&work, &message);
    }
    return end(&work, error);
}
