/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine does by itself: see upkeep.h. */
#include "volumes/upkeep.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "volumes/doctor.h"
#include "volumes/handle.h"
#include "volumes/snapshot.h"
#include "volumes/still.h"
#include "volumes/volume.h"

#define SETTLED_KEY "engine/settled"
#define BOOT_KEY "engine/boot"
#define TEND_SECONDS 2
#define SETTLE_SECONDS 30

/* A clock that was set back makes younger things look older; so much is allowed for. */
#define MARGIN_MS 60000

/* Rows that are read at a time. */
#define PAGE 256

struct upkeep {
    struct engine *engine;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ending;
    bool ends;
    bool has_failed; /* the back end, last time it was tended; that is told once */
};

/* ---- settling ---- */

/* NULL if there is none. */
static struct error *
read_text(struct engine *engine, const char *key, struct arena *arena, const char **text)
{
    struct store_entry entry;
    *text = NULL;
    struct error *error = store_get(engine->store, key, arena, &entry);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return NULL;
    }
    if (!error)
        *text = arena_copy(arena, entry.value, entry.value_size);
    return error;
}

static struct error *
write_settled(struct engine *engine, uint64_t time_ms)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRIu64, time_ms);
    struct store_change changes[] = {
        {SETTLED_KEY, (const uint8_t *)text, (size_t)size, STORE_ANY},
        {BOOT_KEY, (const uint8_t *)engine->boot_id, strlen(engine->boot_id), STORE_ANY},
    };
    return store_write(engine->store, changes, COUNT_OF(changes), NULL);
}

static void
settle(struct engine *engine)
{
    if (!atomic_exchange(&engine->has_unsettled, false))
        return;
    uint64_t now = handle_now_ms();
    struct error *error AUTO(error_cleanup) = backend_sync(engine->backend);
    if (!error)
        error = write_settled(engine, now > MARGIN_MS ? now - MARGIN_MS : 0);
    if (!error)
        return;
    atomic_store(&engine->has_unsettled, true);
    log_warn(engine->log, "what was made lately is not durable yet",
             LOG_TEXT("error", error->message));
}

/* ---- after a power failure ---- */

static struct error *
make_again(struct engine *engine, const volume_record *volume, struct arena *arena)
{
    struct data data = volume_data(volume);
    struct data_settings settings = volume_settings(volume, arena);
    size_t size;
    uint8_t *note = rows_pack(&volume->base, arena, &size);
    log_warn(engine->log, "making a volume again that a power failure has undone",
             LOG_TEXT("handle", volume->handle));
    struct error *error = backend_create(engine->backend, &data, &settings);
    return error ? error : backend_write_note(engine->backend, &data, note, size);
}

static bool
was_made_empty(const volume_record *volume)
{
    return volume->state == SKYCAP__RECORDS__VOLUME_RECORD__STATE__READY && !volume->source &&
           !volume->formatted_bytes;
}

static struct error *
restore_volume(struct engine *engine, const ProtobufCMessage *record, struct arena *arena)
{
    const volume_record *volume = (const volume_record *)record;
    if (was_made_empty(volume))
        return make_again(engine, volume, arena);
    log_error(engine->log, "the data of a volume is missing", LOG_TEXT("handle", volume->handle),
              LOG_TEXT("name", volume->name));
    return NULL;
}

/* What was in memory is gone with the machine's last uptime, and its row goes too. */
static struct error *
forget_volume(struct engine *engine, const ProtobufCMessage *record, struct arena *arena)
{
    (void)arena;
    return rows_delete(engine, &volume_rows, record);
}

static struct error *
forget_snapshot(struct engine *engine, const ProtobufCMessage *record, struct arena *arena)
{
    const char *group_handle = ((const snapshot_record *)record)->group_handle;
    struct row_change rows[2] = {{&snapshot_rows, record}};
    struct row group;
    if (!group_handle[0])
        return rows_delete_all(engine, rows, 1);
    /* Its group goes with the first of them. */
    struct error *error AUTO(error_cleanup) =
        rows_get(engine, &group_rows, group_handle, arena, &group);
    if (error && error->code != CODE_NOT_FOUND)
        return STEAL(error);
    if (!error)
        rows[1] = (struct row_change){&group_rows, group.record};
    return rows_delete_all(engine, rows, error ? 1 : 2);
}

/* Its data is yet to come: copy.h. */
static bool
is_being_copied(const struct row_kind *kind, const ProtobufCMessage *record)
{
    return kind == &volume_rows ? ((const volume_record *)record)->state ==
                                      SKYCAP__RECORDS__VOLUME_RECORD__STATE__COPYING
                                : ((const snapshot_record *)record)->state ==
                                      SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__COPYING;
}

/* Only what is kept by a back end that is volatile, or by one that is not. */
static bool
is_missing(struct engine *engine, const struct row_kind *kind, const ProtobufCMessage *record,
           bool is_volatile)
{
    char path[PATH_MAX];
    struct data data = kind == &volume_rows ? volume_data((const volume_record *)record)
                                            : snapshot_data((const snapshot_record *)record);
    if (is_being_copied(kind, record) ||
        backend_of(engine->backend, data.handle)->ops->is_volatile != is_volatile)
        return false;
    struct error *error AUTO(error_cleanup) =
        backend_path(engine->backend, &data, path, sizeof path);
    return error && error->code == CODE_NOT_FOUND;
}

typedef struct error *deal_with(struct engine *engine, const ProtobufCMessage *record,
                                struct arena *arena);

/* Rows made since then, whose data is missing. */
static struct error *
look_through(struct engine *engine, const struct row_kind *kind, uint64_t since_ms,
             bool is_volatile, deal_with *deal)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    char after[BACKEND_HANDLE_SIZE];
    struct row_page page = {.has_more = true};
    struct error *error = NULL;
    handle_print_least(since_ms, after);
    while (!error && page.has_more) {
        error = rows_list(engine, kind, after, PAGE, &arena, &page);
        for (size_t i = 0; i < page.count && !error; i++)
            if (is_missing(engine, kind, page.rows[i].record, is_volatile))
                error = deal(engine, page.rows[i].record, &arena);
        if (page.count)
            snprintf(after, sizeof after, "%s",
                     rows_handle(kind, page.rows[page.count - 1].record));
        arena_clear(&arena);
    }
    return error;
}

/* The kernel that was told of everything still runs: whoever wrote it may be gone, nothing that was written is. */
static bool
is_same_boot(const struct engine *engine, const char *last_boot)
{
    return engine->boot_id[0] && last_boot && strcmp(last_boot, engine->boot_id) == 0;
}

static struct error *
restore_since_settled(struct engine *engine)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *settled, *boot = NULL;
    struct error *error = read_text(engine, SETTLED_KEY, &arena, &settled);
    if (!error)
        error = read_text(engine, BOOT_KEY, &arena, &boot);
    if (error)
        return error;
    atomic_store(&engine->has_unsettled, settled != NULL); /* the last process may have left some */
    if (is_same_boot(engine, boot))
        return NULL;
    uint64_t since_ms = settled ? strtoull(settled, NULL, 10) : 0;
    return look_through(engine, &volume_rows, since_ms, false, restore_volume);
}

static struct error *
forget_volatile(struct engine *engine)
{
    struct error *error = look_through(engine, &volume_rows, 0, true, forget_volume);
    return error ? error : look_through(engine, &snapshot_rows, 0, true, forget_snapshot);
}

/* Of several back ends the first is not volatile, but another may be. */
struct error *
upkeep_restore(struct engine *engine)
{
    bool has_volatile = engine->backend->ops->is_volatile;
    for (const struct backend *one = engine->backend->next; one; one = one->next)
        has_volatile |= one->ops->is_volatile;
    struct error *error = engine->backend->ops->is_volatile ? NULL : restore_since_settled(engine);
    return error || !has_volatile ? error : forget_volatile(engine);
}

/* ---- sweeping ---- */

static void
log_finding(void *context, const struct finding *finding)
{
    const struct engine *engine = context;
    if (finding->is_repaired)
        log_info(engine->log, "removed what was left over", LOG_TEXT("kind", finding->kind),
                 LOG_TEXT("subject", finding->subject));
    else
        log_warn(engine->log, "could not remove what was left over",
                 LOG_TEXT("subject", finding->subject), LOG_TEXT("error", finding->message));
}

static void
sweep(struct engine *engine)
{
    struct error *error AUTO(error_cleanup) = doctor_sweep(engine, log_finding, engine);
    if (error)
        log_warn(engine->log, "could not look for what was left over",
                 LOG_TEXT("error", error->message));
}

/* ---- the thread ---- */

static void
tend(struct upkeep *upkeep)
{
    struct error *error AUTO(error_cleanup) = backend_tend(upkeep->engine->backend);
    if (error && !upkeep->has_failed)
        log_warn(upkeep->engine->log, "the back end could not do what it does now and then",
                 LOG_TEXT("error", error->message));
    upkeep->has_failed = error != NULL;
}

/* False when it is time to end. */
static bool
wait_a_while(struct upkeep *upkeep, unsigned seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&upkeep->lock);
    int result = 0;
    while (!upkeep->ends && result == 0)
        result = pthread_cond_timedwait(&upkeep->ending, &upkeep->lock, &until);
    bool ends = upkeep->ends;
    pthread_mutex_unlock(&upkeep->lock);
    return !ends;
}

static void *
run(void *context)
{
    struct upkeep *upkeep = context;
    tend(upkeep);
    sweep(upkeep->engine);
    unsigned pause = backend_needs_tending(upkeep->engine->backend) ? TEND_SECONDS : SETTLE_SECONDS;
    for (unsigned seconds = pause; wait_a_while(upkeep, pause); seconds += pause) {
        tend(upkeep);
        if (seconds % SETTLE_SECONDS == 0) {
            settle(upkeep->engine);
            still_finish_left(upkeep->engine);
        }
    }
    settle(upkeep->engine);
    return NULL;
}

void
upkeep_start(struct engine *engine, struct upkeep **out)
{
    struct upkeep *upkeep = memory_zeroed(sizeof *upkeep);
    pthread_condattr_t clock;
    upkeep->engine = engine;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&upkeep->lock, NULL);
    pthread_cond_init(&upkeep->ending, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&upkeep->thread, NULL, run, upkeep) != 0)
        memory_exhausted();
    *out = upkeep;
}

void
upkeep_stop(struct upkeep *upkeep)
{
    if (!upkeep)
        return;
    pthread_mutex_lock(&upkeep->lock);
    upkeep->ends = true;
    pthread_cond_signal(&upkeep->ending);
    pthread_mutex_unlock(&upkeep->lock);
    pthread_join(upkeep->thread, NULL);
    pthread_cond_destroy(&upkeep->ending);
    pthread_mutex_destroy(&upkeep->lock);
    free(upkeep);
}
