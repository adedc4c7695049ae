/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies from other nodes: see pull.h.
 *
 * A row at the beginning of the stream is written before the target changes. So a target without a
 * row has not been touched, and one with a row of this pull has the contents that a receiver can
 * continue with (stream_receiver.h). PULL_NEW makes the target anew until the first commit: the
 * target itself may be incomplete until then.
 */
#include "volumes/pull.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "stream/stream_receiver.h"
#include "stream/stream_zstd.h"
#include "volumes/data_lock.h"
#include "volumes/pull_position.h"
#include "volumes/remote_data.h"
#include "volumes/snapshot.h"

#define COMMIT_BYTES (UINT64_C(64) << 20)
#define COMMIT_MS 5000
#define FIRST_PAUSE_MS 250u
#define LONGEST_PAUSE_MS 10000u

struct pull {
    struct engine *engine;
    const struct pull_request *request;
    const struct progress *progress;
    const char *row;
    const char *base; /* that of the request, or "" because the difference cannot be had */
    struct stream_receiver *receiver;
    struct stream_position saved;
    bool has_row;
    uint64_t expected_bytes;
    uint64_t commit_ms;     /* when the last one was */
    bool has_failed_here;   /* the last error is not one of the other node */
    atomic_ullong heard_ms; /* when something has arrived; 0: it is being taken */
    atomic_bool is_silent;  /* the stream was ended because nothing arrives */
};

const char *
pull_row(const struct data *to, struct arena *arena)
{
    return arena_print(arena, "transfer/%s", to->handle);
}

static struct error *
save(void *context, const struct stream_position *position)
{
    struct pull *pull = context;
    struct error *error =
        pull_position_save(pull->engine, pull->row,
                           &(struct pull_position){pull->request->snapshot, pull->base,
                                                   pull->request->node_id, *position});
    if (!error) {
        pull->saved = *position;
        pull->has_row = true;
    }
    pull->commit_ms = clock_now_ms();
    return error;
}

/* ---- the target ---- */

/* Old and new contents may be there at the same time. */
static struct data_settings
settings_meanwhile(const struct pull *pull)
{
    struct data_settings settings = *pull->request->settings;
    if (pull->request->to->kind == KIND_IMAGE)
        settings.size_bytes = 0; /* as the base */
    else if (settings.size_bytes <= INT64_MAX / 2)
        settings.size_bytes *= 2;
    return settings;
}

/* Makes the target from the base. `*is_made` is false if that is not possible. */
static struct error *
copy_base(struct pull *pull, bool *is_made)
{
    struct engine *engine = pull->engine;
    const struct data *to = pull->request->to;
    struct data from = {.kind = to->kind, .role = ROLE_SNAPSHOT};
    struct data_settings settings = settings_meanwhile(pull);
    struct name_lock *lock AUTO(name_lock_release) = NULL;
    *is_made = false;
    snprintf(from.handle, sizeof from.handle, "%s", pull->base);
    struct error *error AUTO(error_cleanup) =
        data_lock_shared(engine, &snapshot_rows, pull->base, &lock);
    if (error || !backend_copies_cheaply(engine->backend, &from, to))
        return NULL;
    error = backend_copy(engine->backend, &from, to, &settings, NULL);
    *is_made = !error;
    return error && error->code != CODE_NOT_FOUND ? STEAL(error) : NULL;
}

/* Until the first commit nothing is known of what is there, so it is made anew. */
static struct error *
make_target(struct pull *pull)
{
    struct backend *backend = pull->engine->backend;
    const struct data *to = pull->request->to;
    bool is_made = false;
    struct error *error = pull->has_row ? save(pull, &(struct stream_position){0}) : NULL;
    if (!error)
        error = backend_remove(backend, to);
    if (!error && pull->base[0])
        error = copy_base(pull, &is_made);
    if (error || is_made)
        return error;
    pull->base = "";
    return backend_create(backend, to, pull->request->settings);
}

/* The other node does not need to be asked whether this is still possible. */
static struct error *
begin_onto(struct pull *pull)
{
    struct data_settings settings = settings_meanwhile(pull);
    struct error *error = pull->has_row ? NULL : save(pull, &(struct stream_position){0});
    if (!error && pull->request->to->kind == KIND_TREE)
        error = backend_change(pull->engine->backend, pull->request->to, &settings);
    return error;
}

static struct error *
refuse_onto(const struct pull *pull)
{
    return error_new(CODE_FAILED_PRECONDITION,
                     "the contents of %s are not those that the transfer of %s is based on: make "
                     "it anew",
                     pull->request->to->handle, pull->request->snapshot);
}

/* Continues with the base that the row tells, or begins. */
static struct error *
begin(struct pull *pull, struct arena *arena)
{
    const struct pull_request *request = pull->request;
    struct pull_position found;
    struct error *error =
        pull_position_read(pull->engine, pull->row, arena, &found, &pull->has_row);
    if (error)
        return error;
    bool is_same = pull->has_row && strcmp(found.snapshot, request->snapshot) == 0 &&
                   (request->start == PULL_ONTO || strcmp(found.node_id, request->node_id) == 0);
    if (request->start == PULL_ONTO) {
        if (pull->has_row && (!is_same || strcmp(found.base, request->base) != 0))
            return refuse_onto(pull);
        pull->saved = found.position;
        return begin_onto(pull);
    }
    if (!is_same || !found.position.offset)
        return make_target(pull);
    pull->saved = found.position;
    pull->base = found.base;
    return NULL;
}

/* The tree, or the directory of the image. */
static struct error *
open_target(const struct pull *pull, int *out)
{
    char path[PATH_MAX];
    struct error *error = backend_path(pull->engine->backend, pull->request->to, path, sizeof path);
    if (error)
        return error;
    if (pull->request->to->kind == KIND_IMAGE)
        *strrchr(path, '/') = '\0';
    *out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out < 0 ? error_from_errno(errno, "open %s", path) : NULL;
}

static struct error *
open_receiver(struct pull *pull)
{
    int root AUTO(files_close) = -1;
    struct error *error = open_target(pull, &root);
    if (error)
        return error;
    struct stream_receiver_options options = {
        .root = root,
        .from = pull->saved,
        .max_file_bytes =
            pull->request->to->kind == KIND_IMAGE ? pull->request->settings->size_bytes : 0,
        .save = save,
        .context = pull,
    };
    return stream_receiver_open(&options, &pull->receiver);
}

/* ---- the stream ---- */

static void
expect(void *context, uint64_t bytes)
{
    struct pull *pull = context;
    pull->expected_bytes = bytes;
    atomic_store(&pull->heard_ms, clock_now_ms());
}

static bool
is_cancelled(void *context)
{
    const struct progress *progress = ((struct pull *)context)->progress;
    return progress->cancelled(progress->context);
}

/* The other node may wait so long between two chunks because it is to send slowly. */
static uint64_t
longest_silence_ms(const struct pull *pull)
{
    uint64_t rate = pull->request->bytes_per_second;
    return pull->engine->silence_ms + (rate ? STREAM_ZSTD_MOST * UINT64_C(1000) / rate : 0);
}

/* The connection may be well while the disk of the other node hangs. */
static bool
is_to_end(void *context)
{
    struct pull *pull = context;
    uint64_t heard_ms = atomic_load(&pull->heard_ms);
    if (heard_ms && clock_now_ms() > heard_ms + longest_silence_ms(pull))
        atomic_store(&pull->is_silent, true);
    return atomic_load(&pull->is_silent) || is_cancelled(context);
}

static void
report(const struct pull *pull, uint64_t done)
{
    uint64_t total = pull->expected_bytes > done ? pull->expected_bytes : done;
    pull->progress->report(pull->progress->context, done, total);
}

static bool
is_time_to_commit(const struct pull *pull, uint64_t offset)
{
    return offset - pull->saved.offset >= COMMIT_BYTES ||
           clock_now_ms() - pull->commit_ms >= COMMIT_MS;
}

static struct error *
take(void *context, const uint8_t *bytes, size_t size)
{
    struct pull *pull = context;
    atomic_store(&pull->heard_ms, 0);
    struct error *error = stream_receiver_feed(pull->receiver, bytes, size);
    uint64_t offset = stream_receiver_position(pull->receiver).offset;
    if (!error && is_time_to_commit(pull, offset))
        error = stream_receiver_commit(pull->receiver);
    pull->has_failed_here = error != NULL;
    report(pull, offset);
    atomic_store(&pull->heard_ms, clock_now_ms());
    return error;
}

/* Can the rest be fetched later? Whatever is wrong here, or with the source itself, stays wrong. */
static bool
is_worth_waiting(const struct pull *pull, const struct error *error)
{
    switch (error->code) {
    case CODE_NOT_FOUND:
    case CODE_INVALID_ARGUMENT:
    case CODE_FAILED_PRECONDITION:
    case CODE_PERMISSION_DENIED:
    case CODE_UNAUTHENTICATED:
    case CODE_UNIMPLEMENTED:
    case CODE_DATA_LOSS:
        return false;
    default:
        return !pull->has_failed_here;
    }
}

static struct error *
fetch_stream(struct pull *pull, const struct remote_data *remote, const struct remote_fetch *what,
             struct stream_position *end)
{
    atomic_store(&pull->is_silent, false);
    atomic_store(&pull->heard_ms, clock_now_ms());
    struct error *error = remote->fetch(remote->context, what, end);
    if (!error || !atomic_load(&pull->is_silent) || pull->has_failed_here)
        return error;
    error_free(error);
    return error_new(CODE_UNAVAILABLE, "node \"%s\" has sent nothing for %ju seconds",
                     pull->request->node_id, (uintmax_t)(longest_silence_ms(pull) / 1000));
}

static struct error *
fetch(struct pull *pull)
{
    const struct remote_data *remote = atomic_load(&pull->engine->remote);
    struct stream_position end;
    if (!remote)
        return error_new(CODE_UNAVAILABLE, "this node has not joined its cluster yet");
    struct error *error = open_receiver(pull);
    pull->has_failed_here = error != NULL;
    if (error)
        return error;
    struct remote_fetch what = {
        .node_id = pull->request->node_id,
        .snapshot = pull->request->snapshot,
        .base = pull->base,
        .is_spread = pull->request->is_spread,
        .bytes_per_second = pull->request->bytes_per_second,
        .from = pull->saved,
        .sink = {take, pull},
        .expect = expect,
        .cancelled = is_to_end,
        .context = pull,
    };
    error = fetch_stream(pull, remote, &what, &end);
    if (!error) {
        error = stream_receiver_finish(pull->receiver, &end);
        pull->has_failed_here = error != NULL;
    } else if (is_worth_waiting(pull, error)) { /* then nothing that has arrived is sent again */
        error_free(stream_receiver_commit(pull->receiver));
    }
    stream_receiver_close(STEAL(pull->receiver));
    return error;
}

/* ---- all of it ---- */

/* A difference that cannot be had or applied: everything is fetched instead. */
static bool
is_fault_of_base(const struct pull *pull, const struct error *error)
{
    if (!pull->base[0] || pull->request->start != PULL_NEW)
        return false;
    return error->code == CODE_FAILED_PRECONDITION || error->code == CODE_DATA_LOSS ||
           (pull->has_failed_here && error->code != CODE_RESOURCE_EXHAUSTED);
}

/* ABORTED: the stream has changed, so it begins anew. */
static struct error *
begin_anew(struct pull *pull, const struct error *error)
{
    bool is_without_base = is_fault_of_base(pull, error);
    if (is_without_base)
        pull->base = "";
    else if (error->code != CODE_ABORTED)
        return NULL;
    return pull->request->start == PULL_NEW ? make_target(pull) : refuse_onto(pull);
}

static bool
has_lost_patience(const struct pull *pull, uint64_t progress_ms)
{
    uint32_t patience_ms = pull->request->patience_ms;
    return patience_ms && clock_now_ms() - progress_ms > patience_ms;
}

static struct error *
fetch_all(struct pull *pull)
{
    uint64_t progress_ms = clock_now_ms();
    for (uint32_t pause_ms = FIRST_PAUSE_MS;;) {
        uint64_t before = pull->saved.offset;
        struct error *error AUTO(error_cleanup) = fetch(pull);
        if (!error || (!is_worth_waiting(pull, error) && !is_fault_of_base(pull, error)))
            return STEAL(error);
        if (pull->saved.offset > before)
            progress_ms = clock_now_ms();
        if (has_lost_patience(pull, progress_ms)) {
            if (pull->request->is_impatient)
                *pull->request->is_impatient = true;
            return STEAL(error);
        }
        if (is_cancelled(pull))
            return error_new(CODE_CANCELLED, "the transfer was cancelled");
        log_info(pull->engine->log, "a transfer was interrupted; it goes on",
                 LOG_TEXT("snapshot", pull->request->snapshot), LOG_TEXT("error", error->message));
        struct error *failed = begin_anew(pull, error);
        if (failed)
            return failed;
        pause_ms = pull->saved.offset > before ? FIRST_PAUSE_MS : 2 * pause_ms;
        progress_rest(pull->progress, pause_ms < LONGEST_PAUSE_MS ? pause_ms : LONGEST_PAUSE_MS);
    }
}

/*
 * Meanwhile the tree was allowed to be larger. PULL_ONTO brings it to where it was before, with the
 * size that it had there.
 */
static struct error *
check_size(const struct pull *pull)
{
    const struct pull_request *request = pull->request;
    struct data_usage usage;
    if (request->to->kind == KIND_IMAGE || request->start == PULL_ONTO ||
        !request->settings->size_bytes)
        return NULL;
    struct error *error = backend_usage(pull->engine->backend, request->to, &usage);
    if (!error && usage.used_bytes != DATA_USAGE_UNKNOWN &&
        usage.used_bytes > request->settings->size_bytes)
        error = error_new(CODE_RESOURCE_EXHAUSTED,
                          "%llu bytes exceed the quota of %llu: ask for a larger volume",
                          (unsigned long long)usage.used_bytes,
                          (unsigned long long)request->settings->size_bytes);
    return error;
}

/* The stream gives an image the size of its source; it may have been asked for a larger one. */
static struct error *
finish(const struct pull *pull)
{
    const struct pull_request *request = pull->request;
    if (request->arrived)
        request->arrived(request->context);
    if (request->to->kind == KIND_TREE && !pull->base[0] && request->start == PULL_NEW)
        return NULL;
    struct error *error = check_size(pull);
    return error ? error : backend_change(pull->engine->backend, request->to, request->settings);
}

struct error *
pull_data(struct engine *engine, const struct pull_request *request,
          const struct progress *progress)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct pull pull = {
        .engine = engine,
        .request = request,
        .progress = progress,
        .row = pull_row(request->to, &arena),
        .base = request->base,
        .commit_ms = clock_now_ms(),
    };
    struct error *error = begin(&pull, &arena);
    if (!error)
        error = fetch_all(&pull);
    return error ? error : finish(&pull);
}
