/* SPDX-License-Identifier: Apache-2.0 */
/* Records of exported snapshots: see export_record.h. */
#include "exports/export_record.h"

#include <string.h>

#include "message/message_bytes.h"

static export_record *
unpack(const void *bytes, size_t size, struct arena *arena)
{
    export_record *record = (export_record *)message_bytes_unpack(
        &skycap__exports__export_record__descriptor, bytes, size, arena);
    bool is_good = record && record->manifest.len == REPOSITORY_ID_BYTES &&
                   record->size_bytes >= 0 &&
                   (record->kind == EXPORT_KIND(TREE) || record->kind == EXPORT_KIND(IMAGE));
    return is_good ? record : NULL;
}

static struct error *
take_bytes(const char *id, const struct buffer *bytes, struct arena *arena, export_record **out)
{
    *out = unpack(bytes->bytes, bytes->size, arena);
    return *out
               ? NULL
               : error_new(CODE_DATA_LOSS, "the record of snapshot %s is not one of an export", id);
}

struct error *
export_record_read(struct repository *repository, const char *id, struct arena *arena,
                   export_record **out)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    struct error *error = repository_snapshot_get(repository, id, &bytes);
    return error ? error : take_bytes(id, &bytes, arena, out);
}

struct error *
export_record_read_listed(struct repository *repository, const char *id, struct arena *arena,
                          export_record **out)
{
    struct buffer bytes AUTO(buffer_clear) = {0};
    struct error *error = repository_snapshot_get_listed(repository, id, &bytes);
    return error ? error : take_bytes(id, &bytes, arena, out);
}

struct repository_id
export_record_manifest(const export_record *record)
{
    struct repository_id id;
    memcpy(id.bytes, record->manifest.data, sizeof id.bytes);
    return id;
}
