/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records in the store: how they are keyed, read and written.
 *
 *     volume/HANDLE             a VolumeRecord          volume-name/NAME        its handle
 *     snapshot/HANDLE           a SnapshotRecord        snapshot-name/NAME      its handle
 *     group/HANDLE              a GroupRecord           group-name/NAME         its handle
 *
 * A record whose name is empty has only the first of the two.
 */
#ifndef VOLUMES_ROWS_H
#define VOLUMES_ROWS_H

#include "volumes/engine.h"

/* What the three kinds have in common. */
struct row_kind {
    const char *name; /* "volume" */
    const ProtobufCMessageDescriptor *type;
    size_t handle_offset; /* of the handle and the name, which are strings */
    size_t name_offset;
};

extern const struct row_kind volume_rows;
extern const struct row_kind snapshot_rows;
extern const struct row_kind group_rows;

const char *rows_handle(const struct row_kind *kind, const ProtobufCMessage *record);
const char *rows_name(const struct row_kind *kind, const ProtobufCMessage *record);

struct row {
    ProtobufCMessage *record; /* in the arena */
    uint64_t revision;
};

/* NOT_FOUND names the kind and the handle. */
MUST_CHECK struct error *rows_get(struct engine *engine, const struct row_kind *kind,
                                  const char *handle, struct arena *arena, struct row *out);

/* Finds the record by its name; `out->record` is NULL if there is none. */
MUST_CHECK struct error *rows_find(struct engine *engine, const struct row_kind *kind,
                                   const char *name, struct arena *arena, struct row *out);

/* Writes a new record and its name in one write. */
MUST_CHECK struct error *rows_insert(struct engine *engine, const struct row_kind *kind,
                                     const ProtobufCMessage *record);

/* The changes of such a write, to combine with others. Keys and values live in the arena. */
void rows_add_insert(const struct row_kind *kind, const ProtobufCMessage *record,
                     struct arena *arena, struct store_change out[2]);
void rows_add_delete(const struct row_kind *kind, const ProtobufCMessage *record,
                     struct arena *arena, struct store_change out[2]);
struct store_change rows_change(const struct row_kind *kind, const ProtobufCMessage *record,
                                uint64_t expected, struct arena *arena);

/*
 * Replaces the record if nobody has changed it since `*revision`, and sets that to the revision of
 * this write.
 */
MUST_CHECK struct error *rows_update(struct engine *engine, const struct row_kind *kind,
                                     const ProtobufCMessage *record, uint64_t *revision);

/* Deletes the record and its name. */
MUST_CHECK struct error *rows_delete(struct engine *engine, const struct row_kind *kind,
                                     const ProtobufCMessage *record);

/* Makes the name lead to the record, whatever it leads to now. */
MUST_CHECK struct error *rows_mend_name(struct engine *engine, const struct row_kind *kind,
                                        const ProtobufCMessage *record);

/* store_write for changes of volumes and snapshots, which are counted: engine.changes. */
MUST_CHECK struct error *rows_write(struct engine *engine, const struct store_change *changes,
                                    size_t count, uint64_t *revision);

/* Several records of any kind at once: all or none. */
struct row_change {
    const struct row_kind *kind;
    const ProtobufCMessage *record;
};
MUST_CHECK struct error *rows_insert_all(struct engine *engine, const struct row_change *rows,
                                         size_t count);
MUST_CHECK struct error *rows_delete_all(struct engine *engine, const struct row_change *rows,
                                         size_t count);

/*
 * Records in the order of their handles, which is the order of creation. `after`: NULL, or the last
 * handle seen.
 */
struct row_page {
    struct row *rows;
    size_t count;
    bool has_more;
};
MUST_CHECK struct error *rows_list(struct engine *engine, const struct row_kind *kind,
                                   const char *after, size_t limit, struct arena *arena,
                                   struct row_page *out);

/* Converts the record to the bytes of a note, and back. DATA_LOSS names the key. */
uint8_t *rows_pack(const ProtobufCMessage *record, struct arena *arena, size_t *size);
struct data_note rows_note(const ProtobufCMessage *record, struct arena *arena);
MUST_CHECK struct error *rows_unpack(const ProtobufCMessageDescriptor *type,
                                     const struct store_entry *entry, struct arena *arena,
                                     struct row *out);

/*
 * Removes data whose row is gone. A failure is only logged: nobody sees the data any more, and the
 * next start removes it.
 */
void rows_drop_data(struct engine *engine, const struct data *data);

#endif
