/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of volumes of the driver `oim`: see oim_internal.h. */
#include <inttypes.h>
#include <string.h>

#include "csi/messages.h"
#include "drivers/oim_internal.h"
#include "message/message_map.h"
#include "node/mount.h"
#include "node/stage.h"
#include "volumes/handle.h"
#include "volumes/spec.h"

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

/* ---- handles ---- */

#define LONGEST_PLAIN 63
#define HASH_MARK "h-"
#define HASH_DIGITS 32

static bool
is_plain(const char *name)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    return size && size <= LONGEST_PLAIN && !name[size] && name[0] != '-' && name[0] != '.' &&
           strncmp(name, HASH_MARK, sizeof HASH_MARK - 1) != 0;
}

bool
oim_volume_is_handle(const char *text)
{
    const char *digits = text + sizeof HASH_MARK - 1;
    if (strncmp(text, HASH_MARK, sizeof HASH_MARK - 1) != 0)
        return is_plain(text);
    return strlen(digits) == HASH_DIGITS && strspn(digits, "0123456789abcdef") == HASH_DIGITS;
}

/* FNV-1a of 128 bits. On a collision check_same in oim_create.c compares the names. */
const char *
oim_volume_handle(const char *name, struct arena *arena)
{
    const unsigned __int128 prime = ((unsigned __int128)1 << 88) + 0x13b;
    unsigned __int128 hash =
        (unsigned __int128)UINT64_C(0x6c62272e07bb0142) << 64 | UINT64_C(0x62b821756295c58d);
    if (is_plain(name))
        return arena_string(arena, name);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * prime;
    return arena_print(arena, HASH_MARK "%016" PRIx64 "%016" PRIx64, (uint64_t)(hash >> 64),
                       (uint64_t)hash);
}

/* ---- ids ---- */

char *
oim_volume_id(const volume_record *record, struct arena *arena)
{
    return record->home[0] ? arena_print(arena, "%s@%s", record->handle, record->home)
                           : arena_string(arena, record->handle);
}

struct error *
oim_volume_read_id(const struct oim_driver *oim, const char *id, struct arena *arena,
                   const char **handle)
{
    char home[HANDLE_HOME_SIZE], *plain = arena_string(arena, id);
    bool has_home = strchr(id, '@') != NULL;
    plain[strcspn(plain, "@")] = '\0';
    bool is_id = oim_volume_is_handle(plain) && (!has_home || handle_read_key(id, home));
    *handle = is_id ? plain : NULL;
    if (!is_id || !has_home || strcmp(home, oim->own_home) == 0)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "\"%s\" is a volume of another node, which this node does not know: start "
                     "this node with --registry, or ask that node",
                     id);
}

const char *
oim_volume_handle_of_id(const struct oim_driver *oim, const char *id, struct arena *arena)
{
    const char *handle;
    if (oim->options.emulation)
        return oim_volume_handle(id, arena);
    struct error *error AUTO(error_cleanup) = oim_volume_read_id(oim, id, arena, &handle);
    return error ? NULL : handle;
}

/* ---- rows ---- */

struct error *
oim_volume_take(struct oim_driver *oim, const char *handle, struct arena *arena,
                struct oim_volume *out)
{
    struct row row = {0};
    *out = (struct oim_volume){.handle = handle};
    struct error *error =
        name_lock_wait(&oim->home->locks, "volume", handle, STAGE_WAIT_MS, &out->lock);
    if (!error)
        error = rows_get(&oim->engine, &volume_rows, handle, arena, &row);
    out->record = (volume_record *)row.record;
    out->revision = row.revision;
    return error_forgive(error, CODE_NOT_FOUND);
}

void
oim_volume_release(struct oim_volume *volume)
{
    name_lock_release(&volume->lock);
}

struct error *
oim_volume_save(struct oim_driver *oim, struct oim_volume *volume)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct store_change change =
        rows_change(&volume_rows, &volume->record->base, volume->revision, &arena);
    return store_write(oim->engine.store, &change, 1, &volume->revision);
}

volume_record *
oim_volume_new(const char *handle, struct arena *arena)
{
    volume_record *record = arena_alloc(arena, sizeof *record);
    skycap__records__volume_record__init(record);
    record->handle = (char *)handle;
    record->kind = SKYCAP__RECORDS__VOLUME_RECORD__KIND__IMAGE;
    return record;
}

bool
oim_volume_is_foreign(const volume_record *record)
{
    return !record->name[0];
}

struct error *
oim_volume_check_mode(const volume_capability *capability)
{
    switch (capability->access_mode->mode) {
    case MODE(SINGLE_NODE_WRITER):
    case MODE(SINGLE_NODE_READER_ONLY):
    case MODE(SINGLE_NODE_SINGLE_WRITER):
    case MODE(SINGLE_NODE_MULTI_WRITER):
        return NULL;
    default:
        return error_new(
            CODE_INVALID_ARGUMENT,
            "the volume is on one node: only the access modes SINGLE_NODE_* are possible");
    }
}

/* ---- messages ---- */

const char *
oim_volume_find_parameter(void *entries, size_t count, struct arena *arena)
{
    struct text_map map = message_map_read(entries, count, arena);
    for (size_t i = 0; i < map.count; i++)
        if (!spec_is_sidecar_key(map.pairs[i].key))
            return map.pairs[i].key;
    return NULL;
}

Csi__V1__Volume *
oim_volume_message(const struct oim_driver *oim, const volume_record *record, struct arena *arena)
{
    Csi__V1__Volume *volume = arena_alloc(arena, sizeof *volume);
    csi__v1__volume__init(volume);
    volume->volume_id = oim_volume_id(record, arena);
    volume->capacity_bytes = record->size_bytes;
    volume->accessible_topology = arena_alloc(arena, sizeof(void *));
    volume->accessible_topology[0] = messages_topology(oim->engine.node_id, arena);
    volume->n_accessible_topology = 1;
    return volume;
}

/* ---- mappings ---- */

static char *
mapping_key(const char *handle, struct arena *arena)
{
    return arena_print(arena, "mapping/%s", handle);
}

struct error *
oim_volume_get_mapping(struct oim_driver *oim, const char *handle, struct arena *arena,
                       Skycap__Records__OimMappingRecord **out)
{
    struct store_entry entry;
    struct row row = {0};
    struct error *error = store_get(oim->engine.store, mapping_key(handle, arena), arena, &entry);
    if (!error)
        error = rows_unpack(&skycap__records__oim_mapping_record__descriptor, &entry, arena, &row);
    *out = (Skycap__Records__OimMappingRecord *)row.record;
    if (!error && strcmp((*out)->boot_id, oim->boot_id) != 0)
        error = error_new(CODE_NOT_FOUND, "the volume was mapped before the last reboot");
    return error;
}

/* The key of another volume's mapping to the same device; NULL: there is none. */
static struct error *
find_rival(struct oim_driver *oim, const char *own_key,
           const Skycap__Records__OimMappingRecord *mapping, struct arena *arena, const char **out)
{
    struct store_list list;
    struct error *error =
        store_list(oim->engine.store, mapping_key("", arena), NULL, 0, arena, &list);
    *out = NULL;
    for (size_t i = 0; !error && i < list.count; i++) {
        struct row row = {0};
        error = rows_unpack(&skycap__records__oim_mapping_record__descriptor, &list.entries[i],
                            arena, &row);
        const Skycap__Records__OimMappingRecord *other =
            (const Skycap__Records__OimMappingRecord *)row.record;
        if (!error && strcmp(list.entries[i].key, own_key) != 0 &&
            strcmp(other->device, mapping->device) == 0 && strcmp(other->scsi, mapping->scsi) == 0)
            *out = list.entries[i].key;
    }
    return error;
}

/* A restarted target reuses its numbers, so an older mapping to the same device is obsolete. */
struct error *
oim_volume_save_mapping(struct oim_driver *oim, const char *handle,
                        const Skycap__Records__OimMappingRecord *mapping, struct arena *arena)
{
    size_t size = 0;
    const char *key = mapping_key(handle, arena), *rival = NULL;
    struct error *error = mapping ? find_rival(oim, key, mapping, arena, &rival) : NULL;
    if (error)
        return error;
    uint8_t *bytes = mapping ? rows_pack(&mapping->base, arena, &size) : NULL;
    struct store_change changes[] = {{key, bytes, size, STORE_ANY}, {rival, NULL, 0, STORE_ANY}};
    return store_write(oim->engine.store, changes, rival ? 2 : 1, NULL);
}

struct oim_device_query
oim_volume_query(const struct oim_driver *oim, const Skycap__Records__OimMappingRecord *mapping)
{
    return (struct oim_device_query){oim->options.sysfs, mapping->device, mapping->scsi};
}

struct error *
oim_volume_find_device(struct oim_driver *oim, const char *handle, struct arena *arena,
                       const char **out)
{
    struct oim_device device;
    Skycap__Records__OimMappingRecord *mapping;
    struct error *error = oim_volume_get_mapping(oim, handle, arena, &mapping);
    if (error)
        return error;
    struct oim_device_query query = oim_volume_query(oim, mapping);
    error = oim_device_find(&query, &device);
    return error ? error : oim_device_path(&device, oim->directory, handle, arena, out);
}

/* ---- uses ---- */

struct error *
oim_volume_list_uses(struct oim_driver *oim, const char *handle, const char *path,
                     struct arena *arena, struct mount_list *out)
{
    struct mount_list rows;
    struct error *error = mount_rows_list(&oim->engine, handle, arena, &rows);
    *out = (struct mount_list){rows.records, 0};
    for (size_t i = 0; i < rows.count && !error; i++) {
        mount_record *row = rows.records[i];
        bool is_here = path && strcmp(row->path, path) == 0;
        if (is_here || !mount_rows_is_publication(row) || mount_is_point(row->path))
            out->records[out->count++] = row;
        else
            error = mount_rows_delete(&oim->engine, row);
    }
    return error;
}

struct error *
oim_volume_forget_lost(struct oim_driver *oim, const char *handle, const struct use *use,
                       struct arena *arena, struct mount_list *out)
{
    struct mount_list rows;
    struct error *error = mount_rows_list(&oim->engine, handle, arena, &rows);
    *out = (struct mount_list){rows.records, 0};
    for (size_t i = 0; i < rows.count && !error; i++) {
        mount_record *row = rows.records[i];
        bool has_mount = !capability_is_block(row->capability) || mount_rows_is_publication(row);
        if (has_mount && use_conflicts(row, use) && !mount_is_point(row->path))
            error = mount_rows_delete(&oim->engine, row);
        else
            out->records[out->count++] = row;
    }
    return error;
}
