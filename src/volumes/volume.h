/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes: create, find, change, delete. See engine.h for the rules; records live in the caller's
 * arena.
 */
#ifndef VOLUMES_VOLUME_H
#define VOLUMES_VOLUME_H

#include "base/text_map.h"
#include "volumes/rows.h"

enum source_kind { SOURCE_NONE, SOURCE_VOLUME, SOURCE_SNAPSHOT, SOURCE_EXPORT };

/* A snapshot in a repository, as its record describes it. */
struct volume_import {
    const char *repository;
    const char *id;
    enum volume_kind kind;
    int64_t size_bytes;
    const char *fs_type;
    int64_t formatted_bytes;
    bool blank;
    uint32_t sector_bytes;
    bool nocow;
};

struct volume_request {
    const char *name;
    int64_t required_bytes; /* 0: not given; negative sizes have been refused */
    int64_t limit_bytes;
    volume_capability **capabilities;
    size_t capability_count;
    struct text_map parameters;
    struct text_map mutable_parameters;
    enum source_kind source_kind;
    const char *source_handle;
    const struct volume_import *import; /* of SOURCE_EXPORT */
    bool ephemeral;
    bool is_chosen;   /* its node was chosen from several: the handle is marked (handle.h) */
    uint64_t wait_ms; /* how long to wait for a long copy */
};

/*
 * The same name with a compatible request gives the same volume; otherwise ALREADY_EXISTS.
 * NOT_FOUND: the source. OUT_OF_RANGE: the size. INVALID_ARGUMENT: a parameter, or a source of the
 * other kind. ABORTED: the copy has not ended within `wait_ms`; a repeated request waits for the
 * same copy.
 */
MUST_CHECK struct error *volume_create(struct engine *engine, const struct volume_request *request,
                                       struct arena *arena, volume_record **out);

/*
 * Gone already is success. FAILED_PRECONDITION while it is attached or mounted, or while a copy of
 * it is being made, here or, by a transfer, on another node. Snapshots stay: they are copies.
 * Cancels the copy that is making it; ABORTED if that takes long to end. UNAVAILABLE: it has moved
 * to another node.
 */
MUST_CHECK struct error *volume_delete(struct engine *engine, const char *handle);

/* ABORTED while it is still being copied. DATA_LOSS: it was lost with the node's store. */
MUST_CHECK struct error *volume_get(struct engine *engine, const char *handle, struct arena *arena,
                                    volume_record **out);
/* The same for those who only look: also one that was lost. */
MUST_CHECK struct error *volume_get_shown(struct engine *engine, const char *handle,
                                          struct arena *arena, volume_record **out);

/*
 * The error for a volume in a state that this version does not know: FAILED_PRECONDITION. Nothing
 * is done to it.
 */
MUST_CHECK struct error *volume_from_newer(const volume_record *volume);

/*
 * The one place where the state of a volume is checked before it is used or changed. ABORTED: it is
 * still being copied, or moving. UNAVAILABLE: it is on another node. NOT_FOUND: it is deleted.
 */
MUST_CHECK struct error *volume_check_ready(const volume_record *volume);
/* Otherwise nobody uses it on this node. */
bool volume_is_ready(const volume_record *volume);
/* It is ready, or was when its users began, which have not stopped since. */
bool volume_may_be_in_use(const volume_record *volume);

/* FAILED_PRECONDITION: it is attached or mounted. The caller holds the volume. */
MUST_CHECK struct error *volume_check_unused(struct engine *engine, const volume_record *volume,
                                             struct arena *arena);

/*
 * Locks the volume's data for copying, reads its row and flushes its mounts. The lock is released
 * by the caller, also after an error.
 */
MUST_CHECK struct error *volume_take_source(struct engine *engine, const char *handle,
                                            struct arena *arena, struct name_lock **lock,
                                            volume_record **out);

/* The same for a volume that is MOVING at this epoch. FAILED_PRECONDITION: it is not. */
MUST_CHECK struct error *volume_take_moving(struct engine *engine, const char *handle,
                                            uint64_t epoch, struct arena *arena,
                                            struct name_lock **lock, volume_record **out);
/* The same for a volume that is SUPERSEDED. */
MUST_CHECK struct error *volume_take_superseded(struct engine *engine, const char *handle,
                                                struct arena *arena, struct name_lock **lock,
                                                volume_record **out);

/* Volumes by age, without those that are being copied, those of other nodes and ephemeral ones. */
struct volume_page {
    volume_record **volumes;
    size_t count;
    const char *next; /* the token of the next page; NULL: this is the last */
};
MUST_CHECK struct error *volume_list(struct engine *engine, const char *after, size_t limit,
                                     struct arena *arena, struct volume_page *out);

/*
 * Grows the volume to at least `required_bytes`. Large enough already is success. `*size_bytes` is
 * the new size.
 */
MUST_CHECK struct error *volume_expand(struct engine *engine, const char *handle,
                                       int64_t required_bytes, int64_t limit_bytes,
                                       int64_t *size_bytes);

/* Changes only the given keys; all or none. */
MUST_CHECK struct error *volume_modify(struct engine *engine, const char *handle,
                                       const struct text_map *mutable_parameters);

/* RESOURCE_EXHAUSTED: more than `limit` volumes would be attached; 0: no limit. */
MUST_CHECK struct error *volume_attach(struct engine *engine, const char *handle,
                                       const char *node_id, bool read_only,
                                       const volume_capability *capability, uint64_t limit);

/* `node_id` empty: detaches from all nodes. */
MUST_CHECK struct error *volume_detach(struct engine *engine, const char *handle,
                                       const char *node_id);

/*
 * A crash after an image has grown, but before its row was written, leaves the image larger than
 * its row. Sets the record to the real size. Called first by whoever holds the volume or copies it.
 */
MUST_CHECK struct error *volume_adopt_size(struct engine *engine, volume_record *volume);

/*
 * Applies the record's size and parameters to the data, writes the note, and makes both durable.
 * The row is written afterwards.
 */
MUST_CHECK struct error *volume_apply(struct engine *engine, const volume_record *volume,
                                      struct arena *arena);

/* How the back end identifies its data. */
struct data volume_data(const volume_record *volume);
/* The path of its data: the directory, or the image file. */
MUST_CHECK struct error *volume_find_data(struct engine *engine, const volume_record *volume,
                                          char *out, size_t size);

/* The parameters in force: mutable ones take precedence. */
struct text_map volume_parameters(const volume_record *volume, struct arena *arena);
struct data_settings volume_settings(const volume_record *volume, struct arena *arena);

#endif
