/* SPDX-License-Identifier: Apache-2.0 */
/* Missing nodes: see missing.h. */
#include "cluster/missing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cluster/member_rows.h"
#include "volumes/ticker.h"

struct missing {
    struct missing_options options;
    struct ticker *ticker;
    atomic_bool is_wanted; /* a look, whatever was seen before */
    /* Of the last look; owned by the thread. */
    char incarnation[INCARNATION_SIZE];
    bool is_complete; /* all members have announced what they know: it does not change any more */
    char *told;       /* the names that were logged last; NULL: none were */
};

/* ---- one look ---- */

static bool
note_known(const struct missing *missing, const struct member_rows *rows)
{
    bool has_changed = false;
    for (size_t i = 0; i < rows->known.count; i++) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        const char *id = strchr(rows->known.names[i], '/') + 1;
        const char *connection =
            arena_copy(&arena, rows->known.names[i], (size_t)(id - rows->known.names[i]) - 1);
        if (name_set_has(&rows->removed, id) || strcmp(id, missing->options.node_id) == 0)
            continue;
        has_changed |= members_note(missing->options.members, id, connection);
    }
    return has_changed;
}

static bool
forget_removed(const struct missing *missing, const struct member_rows *rows)
{
    bool has_changed = false;
    for (size_t i = 0; i < rows->removed.count; i++)
        has_changed |= members_forget(missing->options.members, rows->removed.names[i]);
    return has_changed;
}

static bool
is_complete(const struct member_rows *rows)
{
    for (size_t i = 0; i < rows->known.count; i++) {
        const char *name = rows->known.names[i];
        if (!name_set_has(&rows->announced, name) &&
            !name_set_has(&rows->removed, strchr(name, '/') + 1))
            return false;
    }
    return rows->known.count != 0;
}

static struct error *
look(struct missing *missing)
{
    struct member_rows rows AUTO(member_rows_clear) = {0};
    char incarnation[INCARNATION_SIZE];
    struct error *error = member_rows_read_all(missing->options.rows, incarnation, &rows);
    if (error)
        return error;
    bool has_changed = note_known(missing, &rows);
    has_changed |= forget_removed(missing, &rows);
    missing->is_complete = is_complete(&rows);
    memcpy(missing->incarnation, incarnation, sizeof incarnation);
    missing->options.looked(missing->options.context, &rows.removed, has_changed);
    return NULL;
}

/* ---- telling ---- */

/* Those that have been missing for so long, in the arena; "": there is none. */
static const char *
print_missing(const struct missing *missing, int64_t since_ms, struct arena *arena)
{
    struct member_list members = members_read(missing->options.members, arena);
    int64_t before_ms = clock_unix_ms() - since_ms;
    const char *names = "";
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        if (member->is_missing && member->seen_ms <= before_ms)
            names = arena_print(arena, "%s%s%s", names, names[0] ? ", " : "", member->id);
    }
    return names;
}

/* After a loss of data all are missing, until they have renewed their registrations. */
static void
tell(struct missing *missing)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *names = print_missing(missing, INT64_C(2) * missing->options.pause_ms, &arena);
    if (strcmp(names, missing->told ? missing->told : "") == 0)
        return;
    if (names[0])
        log_warn(missing->options.log,
                 "nodes of the cluster are not registered any more: the registry has lost its "
                 "data, or their entries were removed. Start them; forget those that do not come "
                 "back with skycap node forget",
                 LOG_TEXT("nodes", names));
    else
        log_info(missing->options.log, "all nodes of the cluster are registered again, or were "
                                       "forgotten");
    free(missing->told);
    missing->told = memory_string(names);
}

/* ---- the thread ---- */

static bool
any_is_missing(const struct missing *missing)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    return print_missing(missing, 0, &arena)[0] != '\0';
}

/* While nobody is missing, and nobody else can be, only the incarnation is read. */
static struct error *
look_if_needed(struct missing *missing)
{
    char incarnation[INCARNATION_SIZE];
    if (!missing->is_complete || any_is_missing(missing))
        return look(missing);
    struct error *error = owner_rows_read_incarnation(missing->options.rows, incarnation);
    return error || strcmp(incarnation, missing->incarnation) == 0 ? error : look(missing);
}

static void
run(void *context)
{
    struct missing *missing = context;
    bool is_wanted = atomic_exchange(&missing->is_wanted, false);
    struct error *error AUTO(error_cleanup) = is_wanted ? look(missing) : look_if_needed(missing);
    if (error && is_wanted)
        atomic_store(&missing->is_wanted, true);
    if (error && error->code != CODE_UNAVAILABLE)
        log_warn(missing->options.log, "which nodes are missing cannot be read from the registry",
                 LOG_TEXT("error", error->message));
    tell(missing);
}

struct missing *
missing_start(const struct missing_options *options)
{
    struct missing *missing = memory_zeroed(sizeof *missing);
    missing->options = *options;
    missing->ticker = ticker_start(run, missing, options->pause_ms);
    return missing;
}

void
missing_look(struct missing *missing)
{
    atomic_store(&missing->is_wanted, true);
    ticker_wake(missing->ticker);
}

void
missing_stop(struct missing *missing)
{
    if (!missing)
        return;
    ticker_stop(missing->ticker);
    free(missing->told);
    free(missing);
}
