/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's background work: see upkeep.h. */
#include "volumes/upkeep.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/bases.h"
#include "volumes/freeze.h"
#include "volumes/handle.h"
#include "volumes/mend.h"
#include "volumes/restore.h"
#include "volumes/transfers_left.h"
#include "volumes/volume_use.h"

#define TEND_SECONDS 2
#define SETTLE_SECONDS 30
#define TIDY_SECONDS 3600

/* A volume has its handle before its data. This is the longest time in between. */
#define MARGIN_MS 60000

struct upkeep {
    struct engine *engine;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ending;
    bool ends;
    bool renews_limits; /* some limits may have to be applied again */
    bool has_failed;    /* the back end's last tend failed; logged once */
    bool mends_again;   /* some volumes could not be repaired because they were held */
};

/* ---- settling ---- */

/* Every volume with an older handle has its data by now. */
static void
settle_now(struct engine *engine)
{
    uint64_t now = handle_now_ms(engine);
    restore_settle(engine, now > MARGIN_MS ? now - MARGIN_MS : 0);
}

/* ---- sweeping ---- */

static void
sweep(struct engine *engine)
{
    struct error *error AUTO(error_cleanup) = engine->use->sweep(engine);
    if (error)
        log_warn(engine->log, "could not look for leftover data",
                 LOG_TEXT("error", error->message));
}

/*
 * When nothing is left to repair, records that in the store, so the next process of this boot need
 * not look.
 */
static void
mend(struct upkeep *upkeep)
{
    struct engine *engine = upkeep->engine;
    struct mend_left left;
    struct error *error AUTO(error_cleanup) = mend_all(engine, "", &left);
    upkeep->mends_again = !error && left.busy;
    if (error)
        log_warn(engine->log, "could not look for what a power failure has undone",
                 LOG_TEXT("error", error->message));
    if (error || left.busy || left.failed)
        return;
    engine->is_first_of_boot = false;
    atomic_store(&engine->has_unsettled, true);
    restore_settle(engine, engine->settled_ms);
}

/* ---- I/O limits ---- */

void
upkeep_renew_limits(struct engine *engine)
{
    struct upkeep *upkeep = engine->upkeep;
    if (!upkeep)
        return;
    pthread_mutex_lock(&upkeep->lock);
    if (!upkeep->renews_limits)
        pthread_cond_signal(&upkeep->ending);
    upkeep->renews_limits = true;
    pthread_mutex_unlock(&upkeep->lock);
}

/* If a volume has limits, the node asks for the next renewal. */
static void
renew_limits(struct upkeep *upkeep)
{
    pthread_mutex_lock(&upkeep->lock);
    bool is_wanted = upkeep->renews_limits;
    upkeep->renews_limits = false;
    pthread_mutex_unlock(&upkeep->lock);
    struct engine *engine = upkeep->engine;
    struct error *error AUTO(error_cleanup) = is_wanted ? engine->use->renew_limits(engine) : NULL;
    if (error)
        upkeep_renew_limits(engine);
}

/* ---- the thread ---- */

static void
tend(struct upkeep *upkeep)
{
    struct error *error AUTO(error_cleanup) = backend_tend(upkeep->engine->backend);
    if (error && !upkeep->has_failed)
        log_warn(upkeep->engine->log, "the back end's background work failed",
                 LOG_TEXT("error", error->message));
    bool works_again = upkeep->has_failed && !error;
    upkeep->has_failed = error != NULL;
    if (works_again) /* deletes may have failed meanwhile */
        sweep(upkeep->engine);
}

/* The lock is held. */
static unsigned
seconds_to_wait(const struct upkeep *upkeep)
{
    bool is_soon = upkeep->renews_limits || upkeep->mends_again ||
                   backend_needs_tending(upkeep->engine->backend);
    return is_soon ? TEND_SECONDS : SETTLE_SECONDS;
}

/* Returns false when the thread has to end. Adds the length of the pause to `*seconds`. */
static bool
wait_a_while(struct upkeep *upkeep, unsigned *seconds)
{
    struct timespec start = clock_after_ms(0);
    unsigned pause = 0;
    int result = 0;
    pthread_mutex_lock(&upkeep->lock);
    while (!upkeep->ends && result == 0) {
        pause = seconds_to_wait(upkeep);
        struct timespec until = {start.tv_sec + pause, start.tv_nsec};
        result = pthread_cond_timedwait(&upkeep->ending, &upkeep->lock, &until);
    }
    *seconds += pause;
    bool ends = upkeep->ends;
    pthread_mutex_unlock(&upkeep->lock);
    return !ends;
}

static void
tidy(struct engine *engine, uint64_t *last_ms)
{
    if (clock_now_ms() - *last_ms < TIDY_SECONDS * UINT64_C(1000))
        return;
    bases_tidy(engine);
    *last_ms = clock_now_ms();
}

static void *
run(void *context)
{
    struct upkeep *upkeep = context;
    tend(upkeep);
    if (upkeep->engine->is_first_of_boot)
        restore_settle(upkeep->engine, upkeep->engine->started_ms);
    sweep(upkeep->engine);
    if (upkeep->engine->is_first_of_boot)
        mend(upkeep);
    bases_tidy(upkeep->engine);
    uint64_t tidied_ms = clock_now_ms();
    for (unsigned seconds = 0; wait_a_while(upkeep, &seconds);) {
        tend(upkeep);
        renew_limits(upkeep);
        if (upkeep->mends_again)
            mend(upkeep);
        if (seconds >= SETTLE_SECONDS) {
            seconds = 0;
            settle_now(upkeep->engine);
            freeze_reap_abandoned(upkeep->engine);
            tidy(upkeep->engine, &tidied_ms);
            transfers_left_reconcile(upkeep->engine);
            ops_log_stalled(upkeep->engine->ops);
        }
    }
    if (upkeep->mends_again) /* no requests hold volumes any more */
        mend(upkeep);
    settle_now(upkeep->engine);
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
    *out = upkeep;
    if (pthread_create(&upkeep->thread, NULL, run, upkeep) != 0)
        memory_exhausted();
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
