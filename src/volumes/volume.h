/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes: create, find, change, delete. See engine.h for the rules; records live in the caller's
 * arena.
 */
#ifndef VOLUMES_VOLUME_H
#define VOLUMES_VOLUME_H

#include "base/text_map.h"
#include "volumes/rows.h"

enum source_kind { SOURCE_NONE, SOURCE_VOLUME, SOURCE_SNAPSHOT };

struct volume_request {
    const char *name;
    int64_t required_bytes; /* 0: not said; negative ones have been refused */
    int64_t limit_bytes;
    volume_capability **capabilities;
    size_t capability_count;
    struct text_map parameters;
    struct text_map mutable_parameters;
    enum source_kind source_kind;
    const char *source_handle;
    bool ephemeral;
    uint64_t wait_ms; /* at most so long for a copy that takes its time */
};

/*
 * The same name again, compatible in all it asks for, gives the same volume; otherwise
 * ALREADY_EXISTS. NOT_FOUND: the source. OUT_OF_RANGE: the size. INVALID_ARGUMENT: a parameter, or
 * a source of the other kind. ABORTED: it is still being copied when the time to wait is over; the
 * same request again waits for the same copy.
 */
MUST_CHECK struct error *volume_create(struct engine *engine, const struct volume_request *request,
                                       struct arena *arena, volume_record **out);

/*
 * Gone already is success. FAILED_PRECONDITION while it is attached or mounted, or something is
 * being copied from it. Snapshots stay: they are copies. A copy under way is cancelled; ABORTED if
 * it takes long to wind down.
 */
MUST_CHECK struct error *volume_delete(struct engine *engine, const char *handle);

/* ABORTED while it is still being copied. */
MUST_CHECK struct error *volume_get(struct engine *engine, const char *handle, struct arena *arena,
                                    volume_record **out);

/* ABORTED: it is still being copied. */
MUST_CHECK struct error *volume_check_ready(const volume_record *volume);

/*
 * Locks the volume's data for copying, reads its row and flushes its mounts. The lock is released
 * by the caller, also after an error.
 */
MUST_CHECK struct error *volume_take_source(struct engine *engine, const char *handle,
                                            struct arena *arena, struct name_lock **lock,
                                            volume_record **out);

/* Volumes by age, without those that are being copied and ephemeral ones. */
struct volume_page {
    volume_record **volumes;
    size_t count;
    const char *next; /* where to go on; NULL: that was all */
};
MUST_CHECK struct error *volume_list(struct engine *engine, const char *after, size_t limit,
                                     struct arena *arena, struct volume_page *out);

/* To at least so much. Large enough already is success; *size_bytes is what it has now. */
MUST_CHECK struct error *volume_expand(struct engine *engine, const char *handle,
                                       int64_t required_bytes, int64_t limit_bytes,
                                       int64_t *size_bytes);

/* Only the keys that are given; all or none. */
MUST_CHECK struct error *volume_modify(struct engine *engine, const char *handle,
                                       const struct text_map *mutable_parameters);

/*
 * RESOURCE_EXHAUSTED: it would be more than `limit` volumes that are attached; 0: any number may
 * be.
 */
MUST_CHECK struct error *volume_attach(struct engine *engine, const char *handle,
                                       const char *node_id, bool read_only,
                                       const volume_capability *capability, uint64_t limit);

/* `node_id` empty: from all. */
MUST_CHECK struct error *volume_detach(struct engine *engine, const char *handle,
                                       const char *node_id);

/*
 * A crash between growing an image and its row leaves it larger than the row says. The record gets
 * the size that there is; who holds the volume, or copies from it, does that first.
 */
MUST_CHECK struct error *volume_adopt_size(struct engine *engine, volume_record *volume);

/*
 * Puts the size and the parameters in force that the record tells, writes its note, and makes both
 * durable. The row comes after it.
 */
MUST_CHECK struct error *volume_apply(struct engine *engine, const volume_record *volume,
                                      struct arena *arena);

/* What the back end calls it, and how it is to keep it. */
struct data volume_data(const volume_record *volume);
/* Where its data is: the directory, or the image's file. */
MUST_CHECK struct error *volume_find_data(struct engine *engine, const volume_record *volume,
                                          char *out, size_t size);

/* Its parameters as they are in force: mutable ones win. */
struct text_map volume_parameters(const volume_record *volume, struct arena *arena);
struct data_settings volume_settings(const volume_record *volume, struct arena *arena);

#endif
