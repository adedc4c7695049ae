/* SPDX-License-Identifier: Apache-2.0 */
/* Which snapshots use what is missing or damaged. */
#include <string.h>

#include "repository/bytes.h"
#include "repository/id_set.h"
#include "repository/verify_internal.h"

struct looking {
    struct verify *verify;
    const char *snapshot;
    struct object_name name; /* of the snapshot */
    struct id_set reported;  /* packs that were reported for this snapshot */
    bool has_missing;        /* a chunk that no index has was reported for it */
    bool is_sound;           /* all that the part lists, so far */
    struct buffer record;
};

static struct error *
is_bad(struct verify *verify, const struct location *location, bool *is)
{
    uint8_t key[1 + OBJECT_NAME_BYTES + 4] = {'b'};
    memcpy(key + 1, location->pack.bytes, OBJECT_NAME_BYTES);
    struct error *error = cache_db_get(verify->facts, key, 1 + OBJECT_NAME_BYTES, NULL, 0, is);
    if (error || *is)
        return error;
    key[0] = 'c';
    bytes_set32(key + 1 + OBJECT_NAME_BYTES, location->entry.offset);
    return cache_db_get(verify->facts, key, sizeof key, NULL, 0, is);
}

static struct error *
look_at_chunk(const struct repository_id *id, void *context)
{
    struct looking *looking = context;
    struct verify *verify = looking->verify;
    struct location location;
    bool found = false, bad = false;
    struct error *error = locations_find(verify->locations, id, &location, &found);
    if (!error && !found && !looking->has_missing) {
        /* An export or a prune may have put it into another pack meanwhile. */
        error = verify_sync(verify);
        if (!error)
            error = locations_find(verify->locations, id, &location, &found);
    }
    if (!error && found)
        error = is_bad(verify, &location, &bad);
    looking->is_sound &= found && !bad;
    if (!error && !found && !looking->has_missing) {
        looking->has_missing = true;
        verify_report(verify, OBJECT_SNAPSHOT, &looking->name, looking->snapshot,
                      "it uses a chunk that no index has");
    }
    if (bad && id_set_add(&looking->reported, location.pack.bytes))
        verify_report(verify, OBJECT_PACK, &location.pack, looking->snapshot,
                      "the snapshot uses chunks of it that are missing or damaged");
    return error ? error : repository_check_cancel(&verify->request->progress);
}

/* ---- parts: one that is sound is so for all snapshots ---- */

struct part_key {
    uint8_t bytes[1 + REPOSITORY_ID_BYTES];
};

static struct part_key
key_of(const struct repository_id *part)
{
    struct part_key key = {.bytes = {'s'}};
    memcpy(key.bytes + 1, part->bytes, sizeof part->bytes);
    return key;
}

static struct error *
knows_part(const struct repository_id *part, bool *is, void *context)
{
    struct looking *looking = context;
    struct part_key key = key_of(part);
    looking->is_sound = true;
    return cache_db_get(looking->verify->facts, key.bytes, sizeof key.bytes, NULL, 0, is);
}

static struct error *
note_part(const struct repository_id *part, void *context)
{
    const struct looking *looking = context;
    struct part_key key = key_of(part);
    if (!looking->is_sound)
        return NULL;
    return cache_db_put(looking->verify->facts, key.bytes, sizeof key.bytes, "", 0);
}

/* ---- snapshots ---- */

static struct error *
look_at_snapshot(struct looking *looking, const char *text)
{
    struct verify *verify = looking->verify;
    const struct repository_references *references = verify->request->references;
    const struct repository_visitor visitor = {look_at_chunk, knows_part, note_part, looking};
    if (!object_name_parse(text, &looking->name))
        return NULL;
    looking->snapshot = text;
    looking->has_missing = false;
    id_set_clear(&looking->reported);
    struct error *error = repository_snapshot_get(verify->repository, text, &looking->record);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error); /* It has been removed. */
        return NULL;
    }
    verify->request->snapshots++;
    if (!error)
        error = references->list(verify->repository, looking->record.bytes, looking->record.size,
                                 &visitor, references->context);
    if (!error || (error->code != CODE_DATA_LOSS && error->code != CODE_NOT_FOUND))
        return error;
    uint64_t size;
    struct error *gone AUTO(error_cleanup) =
        objects_size(verify->repository->objects, OBJECT_SNAPSHOT, &looking->name, &size);
    /* If it has been removed meanwhile, prune may have deleted what it refers to. */
    if (!gone || gone->code != CODE_NOT_FOUND)
        verify_report(verify, OBJECT_SNAPSHOT, &looking->name, text, error->message);
    error_free(error);
    return NULL;
}

static struct error *
take_snapshot(const char *text, void *context)
{
    struct looking *looking = context;
    struct error *error = look_at_snapshot(looking, text);
    return error ? error : verify_count(looking->verify);
}

struct error *
verify_uses(struct verify *verify)
{
    struct looking looking = {.verify = verify};
    struct error *error = repository_snapshots_list(verify->repository, take_snapshot, &looking);
    id_set_clear(&looking.reported);
    buffer_clear(&looking.record);
    return error;
}
