/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading connections: see connections.h.
 *
 * A load makes a new set. Connections that did not change are shared by the old and the new set.
 * The lock protects only the pointer to the current set. The old set is freed when the last call
 * releases it.
 */
#include "connections/config/connections.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cluster/drill_turns.h"
#include "connections/config/candidate.h"
#include "connections/config/connection_metrics.h"
#include "connections/config/elsewhere.h"
#include "connections/config/known_drivers.h"
#include "connections/config/known_facts.h"
#include "csi/ids.h"
#include "volumes/handle.h"

#define LOOK_MS 30000 /* interval of loads without an event from the kernel */
#define NEW_DRIVER_MS 3000
#define STEP_MS 5

struct connections {
    struct connections_options options;
    struct directory *directory; /* NULL: there is one connection */
    pthread_t thread;
    bool has_thread;
    struct fact_changes *members; /* notified when members of the cluster change */
    pthread_t members_thread;
    bool has_members_thread;
    atomic_bool is_stopping;

    pthread_mutex_t load_lock; /* one load at a time */
    struct connection_metrics metrics;
    struct cluster *cluster; /* with load_lock held; NULL: none */
    char home[HANDLE_HOME_SIZE];

    pthread_mutex_t lock; /* of the pointer */
    struct connection_set *current;
};

struct connection_set *
connections_current(struct connections *connections)
{
    pthread_mutex_lock(&connections->lock);
    struct connection_set *set = connection_set_share(connections->current);
    pthread_mutex_unlock(&connections->lock);
    return set;
}

static void
swap(struct connections *connections, struct connection_set *set)
{
    pthread_mutex_lock(&connections->lock);
    struct connection_set *old = connections->current;
    connections->current = set;
    pthread_mutex_unlock(&connections->lock);
    fact_changes_note(connections->options.changes);
    connection_set_release(old);
}

/* ---- one file ---- */

static struct error *
open_driver(struct connections *connections, const struct connection_spec *spec,
            const struct connection *old, struct driver **out)
{
    if (old && spec_same_driver(spec, old->spec)) {
        *out = driver_share(old->driver);
        return NULL;
    }
    const struct connections_options *options = &connections->options;
    struct driver_facts *remembered AUTO(driver_facts_cleanup) =
        known_facts_read(options->store, spec, options->log);
    struct driver_options driver = {
        .connection = spec->name,
        .aliases = &spec->aliases,
        .settings = spec->options,
        .data_directory = options->data_directory,
        .node_id = options->node_id,
        .topology = options->topology,
        .is_in_cluster = options->is_in_cluster,
        .repositories = options->repositories,
        .turns = options->turns,
        .instance = options->instance,
        .max_calls = spec->max_calls,
        .timeout_ms = spec->timeout_ms,
        .remembered = remembered,
        .changes = options->changes,
        .runtime = options->runtime,
        .log = options->log,
    };
    return driver_open(spec->driver, &driver, out);
}

static struct error *
open_candidate(struct connections *connections, struct candidate *candidate,
               struct connection **out)
{
    struct connection *old = candidate_in_force(candidate);
    struct driver *driver;
    if (candidate->error)
        return STEAL(candidate->error);
    if (candidate_is_unchanged(candidate)) {
        *out = connection_share(old);
        return NULL;
    }
    struct error *error = open_driver(connections, candidate->spec, old, &driver);
    if (error)
        return error;
    const struct directory_file *file = candidate->file;
    struct connection *connection =
        connection_new(&candidate->arena, candidate->spec, driver,
                       connection_metrics_counters(&connections->metrics, file->name));
    connection->text = arena_copy(&connection->arena, file->text, file->size);
    connection->text_size = file->size;
    if (connections->home[0] && candidate->spec->driver->has_homes)
        connection->place =
            arena_print(&connection->arena, "%s@%s", candidate->spec->name, connections->home);
    *out = connection;
    return NULL;
}

/* ---- all of them ---- */

static const struct connection_slot *
find_slot(const struct connection_set *set, const char *name)
{
    for (size_t i = 0; set && i < set->count; i++)
        if (strcmp(set->slots[i].name, name) == 0)
            return &set->slots[i];
    return NULL;
}

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void
note_trouble(struct connections *connections, const struct connection_slot *slot,
             const struct connection_slot *before)
{
    const struct log *log = connections->options.log;
    if (before && same_text(before->trouble, slot->trouble))
        return;
    if (slot->trouble) {
        atomic_fetch_add(&connections->metrics.bad_files, 1);
        log_error(log, "the connection's file is wrong", LOG_TEXT("connection", slot->name),
                  LOG_TEXT("error", slot->trouble),
                  LOG_TEXT("in_force", slot->connection ? "the last good one" : "none"));
    }
}

static void
fill_slot(struct connections *connections, struct candidate *candidate, struct connection_set *set)
{
    struct connection_slot *slot = &set->slots[set->count++];
    struct connection *old = candidate_in_force(candidate);
    slot->name = arena_string(&set->arena, candidate->file->name);
    struct error *error AUTO(error_cleanup) =
        open_candidate(connections, candidate, &slot->connection);
    if (error) {
        slot->trouble = arena_string(&set->arena, error->message);
        slot->connection = old ? connection_share(old) : NULL;
    } else if (!old || old->driver != slot->connection->driver) {
        log_info(connections->options.log, "connection loaded", LOG_TEXT("connection", slot->name),
                 LOG_TEXT("driver", slot->connection->spec->driver->name));
    }
    note_trouble(connections, slot, candidate->before);
}

static void
note_removed(struct connections *connections, const struct connection_set *old,
             const struct connection_set *set)
{
    for (size_t i = 0; old && i < old->count; i++)
        if (!find_slot(set, old->slots[i].name))
            log_info(connections->options.log, "connection removed",
                     LOG_TEXT("connection", old->slots[i].name));
}

/* Was its driver opened by this load, and has it not reported its capabilities yet? */
static bool
is_awaited(const struct connection_slot *slot, const struct connection_slot *before)
{
    if (!slot->connection ||
        (before && before->connection && before->connection->driver == slot->connection->driver))
        return false;
    return !connection_is_known(slot->connection);
}

/*
 * Waits a moment for new drivers to report their capabilities. The orchestrator asks for them once,
 * and a connection whose file has changed must not lose them for an instant. A driver that does not
 * answer comes into force all the same.
 */
static void
wait_for_drivers(struct connections *connections, const struct connection_set *set,
                 const struct connection_set *old)
{
    for (unsigned waited_ms = 0; waited_ms < NEW_DRIVER_MS; waited_ms += STEP_MS) {
        size_t awaited = 0;
        for (size_t i = 0; i < set->count; i++)
            awaited += is_awaited(&set->slots[i], find_slot(old, set->slots[i].name));
        if (!awaited || atomic_load(&connections->is_stopping))
            return;
        usleep(STEP_MS * 1000);
    }
}

static struct connection_set *
make_set(struct connections *connections, const struct directory_files *files,
         const struct connection_set *old, struct arena *arena)
{
    struct connection_set *set = connection_set_new(files->count);
    struct candidate *candidates = arena_zeroed(arena, files->count * sizeof *candidates);
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++) {
        const struct directory_file *file = &files->items[i];
        if (i > 0 && strcmp(file->name, files->items[i - 1].name) == 0)
            continue; /* x.yaml and x.yml; both have the same error */
        candidate_init(&candidates[count++], file, find_slot(old, file->name));
    }
    const struct connections_options *options = &connections->options;
    candidates_check(candidates, count, options->node_id, options->store, arena);
    for (size_t i = 0; i < count; i++) {
        fill_slot(connections, &candidates[i], set);
        candidate_clear(&candidates[i]);
    }
    return set;
}

/* The connections of other nodes; and theirs get ours. */
static void
add_elsewhere(struct connections *connections, struct connection_set *set,
              const struct connection_set *old)
{
    struct elsewhere elsewhere = {connections->cluster, &connections->options,
                                  &connections->metrics};
    if (!elsewhere.cluster)
        return;
    elsewhere_join(&elsewhere, set);
    elsewhere_add(&elsewhere, set, old);
    elsewhere_tell(&elsewhere, set);
}

/* Without a directory there is one connection, which has no file. */
static struct error *
read_files(const struct connections *connections, struct arena *arena, struct directory_files *out)
{
    if (connections->directory)
        return directory_read(connections->directory, arena, out);
    struct directory_file only = {
        .file = IDS_LOCAL,
        .name = IDS_LOCAL,
        .text = connections->options.only,
        .size = strlen(connections->options.only),
    };
    *out =
        (struct directory_files){(struct directory_file *)arena_copy(arena, &only, sizeof only), 1};
    return NULL;
}

static void
choose_for_drills(const struct connections *connections, const struct connection_set *set)
{
    const struct connection *chosen = connection_set_engine(set);
    drill_turns_set_connection(connections->options.turns, chosen ? chosen->spec->name : NULL);
}

static struct error *
load(struct connections *connections)
{
    struct arena arena;
    struct directory_files files;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    pthread_mutex_lock(&connections->load_lock);
    struct connection_set *old = connections_current(connections);
    struct error *error = read_files(connections, &arena, &files);
    if (error) {
        log_error(connections->options.log, "the connections' directory cannot be read",
                  LOG_TEXT("error", error->message));
    } else {
        struct connection_set *set = make_set(connections, &files, old, &arena);
        memcpy(set->home, connections->home, sizeof set->home);
        set->is_waiting = connections->options.is_in_cluster;
        add_elsewhere(connections, set, old);
        note_removed(connections, old, set);
        wait_for_drivers(connections, set, old);
        choose_for_drills(connections, set);
        swap(connections, set);
        atomic_fetch_add(&connections->metrics.loads, 1);
    }
    connection_set_release(old);
    pthread_mutex_unlock(&connections->load_lock);
    arena_clear(&arena);
    return error;
}

struct error *
connections_reload(struct connections *connections)
{
    return error_wrap(load(connections), "the connections' directory cannot be read");
}

struct error *
connections_forget(struct connections *connections, const char *name)
{
    struct connection_set *set AUTO(connection_set_cleanup) = connections_current(connections);
    const struct connection_slot *slot = find_slot(set, name);
    if (slot && !slot->trouble)
        return error_new(CODE_FAILED_PRECONDITION,
                         "connection \"%s\" is in force: remove or replace its file first", name);
    struct error *error = known_drivers_forget(connections->options.store, name);
    return error ? error : connections_reload(connections);
}

/* ---- the threads ---- */

static void *
watch(void *argument)
{
    struct connections *connections = argument;
    for (;;) {
        directory_wait(connections->directory, LOOK_MS);
        if (atomic_load(&connections->is_stopping))
            return NULL;
        error_free(load(connections)); /* load has logged it */
    }
}

static void *
watch_members(void *argument)
{
    struct connections *connections = argument;
    uint64_t seen = 0;
    while (fact_changes_wait(connections->members, &seen, 0))
        error_free(load(connections)); /* load has logged it */
    return NULL;
}

static struct error *
start_thread(pthread_t *thread, bool *has_thread, void *(*run)(void *),
             struct connections *connections)
{
    int failed = pthread_create(thread, NULL, run, connections);
    *has_thread = failed == 0;
    return failed ? error_from_errno(failed, "start the thread that watches connections") : NULL;
}

/* A wrong file is no error, but the only connection must be right. */
static struct error *
load_first(struct connections *connections)
{
    error_free(load(connections));
    const struct connection_slot *slot = connections->current->slots;
    if (!connections->directory && slot->trouble)
        return error_new(CODE_FAILED_PRECONDITION, "%s", slot->trouble);
    return NULL;
}

static struct error *
start(struct connections *connections)
{
    const char *directory = connections->options.directory;
    struct error *error = directory ? directory_open(directory, &connections->directory) : NULL;
    if (!error)
        error = load_first(connections);
    if (!error && directory)
        error = start_thread(&connections->thread, &connections->has_thread, watch, connections);
    if (!error && connections->options.is_in_cluster)
        error = start_thread(&connections->members_thread, &connections->has_members_thread,
                             watch_members, connections);
    return error;
}

struct error *
connections_open(const struct connections_options *options, struct connections **out)
{
    struct connections *connections = memory_zeroed(sizeof *connections);
    connections->options = *options;
    if (options->is_in_cluster)
        handle_print_home(options->node_id, connections->home);
    connections->members = fact_changes_new();
    pthread_mutex_init(&connections->load_lock, NULL);
    pthread_mutex_init(&connections->lock, NULL);
    connection_metrics_init(&connections->metrics);
    connections->current = connection_set_new(0);
    struct error *error = start(connections);
    if (error) {
        connections_close(connections);
        return error;
    }
    *out = connections;
    return NULL;
}

void
connections_join(struct connections *connections, struct cluster *cluster)
{
    pthread_mutex_lock(&connections->load_lock);
    connections->cluster = cluster;
    pthread_mutex_unlock(&connections->load_lock);
    error_free(load(connections)); /* load has logged it */
}

void
connections_note_members(struct connections *connections)
{
    fact_changes_note(connections->members);
}

void
connections_close(struct connections *connections)
{
    if (!connections)
        return;
    atomic_store(&connections->is_stopping, true);
    if (connections->has_thread) {
        directory_wake(connections->directory);
        pthread_join(connections->thread, NULL);
    }
    fact_changes_stop(connections->members);
    if (connections->has_members_thread)
        pthread_join(connections->members_thread, NULL);
    fact_changes_release(connections->members);
    if (connections->directory)
        directory_close(connections->directory);
    connection_set_release(connections->current);
    connection_metrics_clear(&connections->metrics);
    pthread_mutex_destroy(&connections->load_lock);
    pthread_mutex_destroy(&connections->lock);
    free(connections);
}

void
connections_print_metrics(struct connections *connections,
                          const struct connection_metrics_request *request, struct buffer *out)
{
    struct connection_set *set AUTO(connection_set_cleanup) = connections_current(connections);
    connection_metrics_print(&connections->metrics, set, request, out);
}
