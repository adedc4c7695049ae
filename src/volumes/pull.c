/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from other nodes: see pull.h. */
#include "volumes/pull.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "stream/stream_receiver.h"
#include "volumes/remote_data.h"

#define COMMIT_BYTES (UINT64_C(64) << 20)
#define COMMIT_MS 5000
#define FIRST_PAUSE_MS 250u
#define LONGEST_PAUSE_MS 10000u
#define PAUSE_STEP_MS 50u

struct pull {
    struct engine *engine;
    const char *snapshot;
    const struct data *to;
    const struct progress *progress;
    const char *row;
    struct stream_receiver *receiver;
    struct stream_position saved;
    uint64_t expected_bytes;
    uint64_t commit_ms;   /* when the last one was */
    bool has_failed_here; /* the last error is not one of the other node */
};

const char *
pull_row(const struct data *to, struct arena *arena)
{
    return arena_print(arena, "transfer/%s", to->handle);
}

/* ---- the position ---- */

/* As it is in the store. */
struct stored_position {
    uint64_t offset; /* little endian */
    uint8_t sum[STREAM_SUM_BYTES];
};

static struct error *
save(void *context, const struct stream_position *position)
{
    struct pull *pull = context;
    struct stored_position stored = {.offset = htole64(position->offset)};
    memcpy(stored.sum, position->sum, sizeof stored.sum);
    struct store_change change = {pull->row, (const uint8_t *)&stored, sizeof stored, STORE_ANY};
    struct error *error = store_write(pull->engine->store, &change, 1, NULL);
    if (!error)
        pull->saved = *position;
    pull->commit_ms = clock_now_ms();
    return error;
}

static struct error *
read_position(struct pull *pull, struct arena *arena)
{
    struct store_entry entry;
    struct stored_position stored;
    bool found;
    struct error *error = store_find(pull->engine->store, pull->row, arena, &entry, &found);
    if (error || !found || entry.value_size != sizeof stored)
        return error;
    memcpy(&stored, entry.value, sizeof stored);
    pull->saved.offset = le64toh(stored.offset);
    memcpy(pull->saved.sum, stored.sum, sizeof stored.sum);
    return NULL;
}

/* ---- the target ---- */

/* Until the first commit nothing is known of what is there, so it is made anew. */
static struct error *
make_target(struct pull *pull, const struct data_settings *settings)
{
    struct backend *backend = pull->engine->backend;
    struct error *error = pull->saved.offset ? save(pull, &(struct stream_position){0}) : NULL;
    if (!error)
        error = backend_remove(backend, pull->to);
    return error ? error : backend_create(backend, pull->to, settings);
}

/* The tree, or the directory of the image. */
static struct error *
open_target(const struct pull *pull, int *out)
{
    char path[PATH_MAX];
    struct error *error = backend_path(pull->engine->backend, pull->to, path, sizeof path);
    if (error)
        return error;
    if (pull->to->kind == KIND_IMAGE)
        *strrchr(path, '/') = '\0';
    *out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out < 0 ? error_from_errno(errno, "open %s", path) : NULL;
}

static struct error *
open_receiver(struct pull *pull, const struct data_settings *settings)
{
    int root AUTO(files_close) = -1;
    struct error *error = open_target(pull, &root);
    if (error)
        return error;
    struct stream_receiver_options options = {
        .root = root,
        .from = pull->saved,
        .max_file_bytes = pull->to->kind == KIND_IMAGE ? settings->size_bytes : 0,
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
}

static bool
is_cancelled(void *context)
{
    const struct progress *progress = ((struct pull *)context)->progress;
    return progress->cancelled(progress->context);
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
    struct error *error = stream_receiver_feed(pull->receiver, bytes, size);
    uint64_t offset = stream_receiver_position(pull->receiver).offset;
    if (!error && is_time_to_commit(pull, offset))
        error = stream_receiver_commit(pull->receiver);
    pull->has_failed_here = error != NULL;
    report(pull, offset);
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
fetch(struct pull *pull, const struct data_settings *settings)
{
    const struct remote_data *remote = atomic_load(&pull->engine->remote);
    struct stream_position end;
    if (!remote)
        return error_new(CODE_UNAVAILABLE, "this node has not joined its cluster yet");
    struct error *error = open_receiver(pull, settings);
    pull->has_failed_here = error != NULL;
    if (error)
        return error;
    struct remote_fetch what = {pull->snapshot, pull->saved,  {take, pull},
                                expect,         is_cancelled, pull};
    error = remote->fetch(remote->context, &what, &end);
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

static void
rest(struct pull *pull, uint32_t pause_ms)
{
    for (uint32_t slept = 0; slept < pause_ms && !is_cancelled(pull); slept += PAUSE_STEP_MS)
        usleep(PAUSE_STEP_MS * 1000);
}

/* ABORTED: the stream has changed, so it begins anew. */
static struct error *
fetch_all(struct pull *pull, const struct data_settings *settings)
{
    for (uint32_t pause_ms = FIRST_PAUSE_MS;;) {
        uint64_t before = pull->saved.offset;
        struct error *error = fetch(pull, settings);
        if (!error || !is_worth_waiting(pull, error))
            return error;
        if (is_cancelled(pull)) {
            error_free(error);
            return error_new(CODE_CANCELLED, "the transfer was cancelled");
        }
        log_info(pull->engine->log, "a transfer was interrupted; it goes on",
                 LOG_TEXT("snapshot", pull->snapshot), LOG_TEXT("error", error->message));
        bool is_anew = error->code == CODE_ABORTED;
        error_free(error);
        error = is_anew ? make_target(pull, settings) : NULL;
        if (error)
            return error;
        pause_ms = pull->saved.offset > before ? FIRST_PAUSE_MS : 2 * pause_ms;
        rest(pull, pause_ms < LONGEST_PAUSE_MS ? pause_ms : LONGEST_PAUSE_MS);
    }
}

struct error *
pull_data(struct engine *engine, const char *snapshot, const struct data *to,
          const struct data_settings *settings, const struct progress *progress)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct pull pull = {
        .engine = engine,
        .snapshot = snapshot,
        .to = to,
        .progress = progress,
        .row = pull_row(to, &arena),
        .commit_ms = clock_now_ms(),
    };
    struct error *error = read_position(&pull, &arena);
    if (!error && !pull.saved.offset)
        error = make_target(&pull, settings);
    if (!error)
        error = fetch_all(&pull, settings);
    /* The stream gives an image the size of its source; it may have been asked for a larger one. */
    if (!error && to->kind == KIND_IMAGE)
        error = backend_change(engine->backend, to, settings);
    return error;
}
