/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of volumes: see move_keys.h. */
#include "volumes/move_keys.h"

#include <string.h>

#include "volumes/data_lock.h"
#include "volumes/handle.h"

/* ---- of rows ---- */

static const char *
print(const volume_record *volume, const char *home, struct arena *arena)
{
    char own[HANDLE_HOME_SIZE];
    return handle_read_home(volume->handle, own)
               ? volume->handle
               : arena_print(arena, "%s@%s", volume->handle, home);
}

const char *
move_keys_print(const struct engine *engine, const volume_record *volume, struct arena *arena)
{
    return print(volume, volume->home[0] ? volume->home : engine->home, arena);
}

/* A volume that had not moved when it was copied was at home when the snapshot was taken. */
const char *
move_keys_of_snapshot(const snapshot_record *snapshot, struct arena *arena)
{
    char home[HANDLE_HOME_SIZE];
    volume_record *volume = snapshot->volume;
    if (!volume->home[0] && !handle_read_home(volume->handle, home) &&
        handle_read_home(snapshot->handle, home))
        volume->home = arena_string(arena, home);
    return print(volume, volume->home, arena);
}

void
move_keys_set_home(const struct engine *engine, volume_record *volume, struct arena *arena)
{
    char home[HANDLE_HOME_SIZE];
    if (!volume->home[0] && !handle_read_home(volume->handle, home))
        volume->home = arena_string(arena, engine->home);
}

/* ---- finding rows ---- */

static struct error *
check(const struct engine *engine, const char *key, const volume_record *volume,
      struct arena *arena)
{
    if (!strchr(key, '@') || strcmp(move_keys_print(engine, volume, arena), key) == 0)
        return NULL;
    return error_new(CODE_NOT_FOUND, "the volume \"%s\" here is another one than \"%s\"",
                     volume->handle, key);
}

const char *
move_keys_handle(const char *key, struct arena *arena)
{
    return arena_print(arena, "%.*s", (int)strcspn(key, "@"), key);
}

struct error *
move_keys_get(struct engine *engine, const char *key, struct arena *arena, struct row *out)
{
    struct error *error = rows_get(engine, &volume_rows, move_keys_handle(key, arena), arena, out);
    return error ? error : check(engine, key, (const volume_record *)out->record, arena);
}

struct error *
move_keys_take(struct engine *engine, const char *key, struct arena *arena, struct held_volume *out)
{
    struct error *error =
        held_take_any(engine, move_keys_handle(key, arena), DATA_LOCK_WAIT_MS, arena, out);
    return error ? error : check(engine, key, out->record, arena);
}

/* ---- finding keys ---- */

struct search {
    const struct engine *engine;
    const struct move_cluster *cluster;
    const char *handle;
    const char *node_id; /* the first that has it; NULL: none yet */
    char home[HANDLE_HOME_SIZE];
};

static struct error *
look_at(struct search *search, const char *node_id)
{
    struct move_answer answer;
    struct error *error =
        search->cluster->ask(search->cluster->context, node_id, search->handle, false, &answer);
    if (error)
        return error_wrap(error,
                          "whether node \"%s\" has a volume \"%s\", too, must be known before this "
                          "volume moves for the first time",
                          node_id, search->handle);
    if (!answer.has_row)
        return NULL;
    if (search->node_id && strcmp(search->home, answer.home) != 0)
        return error_new(CODE_FAILED_PRECONDITION,
                         "nodes \"%s\" and \"%s\" both have a volume \"%s\", from before they "
                         "joined the cluster; it cannot move",
                         search->node_id, node_id, search->handle);
    search->node_id = node_id;
    memcpy(search->home, answer.home, sizeof search->home);
    return NULL;
}

static struct error *
ask_members(struct search *search, struct arena *arena)
{
    const struct ownership *owners = search->cluster->owners;
    const char *const *ids;
    size_t count = 0;
    struct error *error = owners->members(owners->context, arena, &ids, &count);
    for (size_t i = 0; !error && i < count; i++)
        if (strcmp(ids[i], search->engine->node_id) != 0)
            error = look_at(search, ids[i]);
    return error;
}

struct error *
move_keys_find(const struct engine *engine, const struct move_cluster *cluster, const char *handle,
               struct arena *arena, const char **key)
{
    char home[HANDLE_HOME_SIZE];
    struct search search = {.engine = engine, .cluster = cluster, .handle = handle};
    *key = handle;
    if (handle_read_home(handle, home))
        return NULL;
    struct error *error = cluster->owners->find_key(cluster->owners->context, handle, arena, key);
    if (error || (*key)[0])
        return error;
    error = ask_members(&search, arena);
    if (!error && !search.node_id)
        error = error_new(CODE_NOT_FOUND, "there is no volume \"%s\"", handle);
    if (!error)
        *key = arena_print(arena, "%s@%s", handle, search.home);
    return error;
}
