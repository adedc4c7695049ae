/* SPDX-License-Identifier: Apache-2.0 */
/* Data on other nodes, as the source of copies. The cluster provides it to the engine. */
#ifndef VOLUMES_REMOTE_DATA_H
#define VOLUMES_REMOTE_DATA_H

#include "backends/backend.h"
#include "base/arena.h"
#include "stream/stream.h"
#include "volumes/volume.h"

#define REMOTE_DATA_HAVE 64 /* more snapshots of one volume are not looked at */

/* Which source is asked for. */
struct remote_open {
    enum source_kind kind;
    const char *handle;
    const char *node_id;     /* that has it; "": the one in its handle */
    const char *transfer_id; /* unique, and the same when the call is repeated */
    uint64_t epoch;          /* of a volume that is MOVING here; 0: it is not */
    bool is_spread;          /* RESOURCE_EXHAUSTED: others fetch it; see stream_slots.h */
    /* Snapshots of the same volume on this node, newest first; at most REMOTE_DATA_HAVE. */
    const char *const *have;
    size_t have_count;
};

/* A source that stays as it is until it is closed. Texts are in the caller's arena. */
struct remote_source {
    const char *snapshot; /* the handle of what is fetched */
    /*
     * One of `have`: the difference from it can be fetched. "": none is common, or the source
     * cannot tell the difference.
     */
    const char *base;
    const char *node_id;          /* the node that has it */
    const char *volume;           /* the handle of the volume that it was taken of */
    volume_record *volume_record; /* that volume; NULL: its node does not have it any more */
    int64_t created_ns;
    uint64_t epoch;   /* of the volume then */
    bool can_be_base; /* its node can send later snapshots as differences from it */
    enum volume_kind kind;
    int64_t size_bytes;
    const char *fs_type;
    int64_t formatted_bytes;
    bool blank;
    uint32_t sector_bytes;
    bool nocow;
};

struct remote_fetch {
    const char *node_id; /* that has it; "": the one in its handle */
    const char *snapshot;
    const char *base; /* only the difference from it; "": everything */
    bool is_spread;
    uint64_t bytes_per_second; /* 0: no limit */
    struct stream_position from;
    struct stream_sink sink;
    void (*expect)(void *context, uint64_t bytes); /* how much there is, about; 0: unknown */
    bool (*cancelled)(void *context);
    void *context; /* of both */
};

/* What the other node has to do with a snapshot that was taken for a transfer to it. */
struct remote_use {
    bool is_used;
    bool is_kept; /* as the base of later transfers */
};

struct remote_data {
    /*
     * NOT_FOUND: there is no such source. UNAVAILABLE: its node does not answer.
     */
    struct error *(*open)(void *context, const struct remote_open *request, struct arena *arena,
                          struct remote_source *out);
    /*
     * Errors of the sink end it and are returned. CANCELLED: `cancelled` has said so.
     * FAILED_PRECONDITION: the difference from the base cannot be told (any more).
     */
    struct error *(*fetch)(void *context, const struct remote_fetch *fetch,
                           struct stream_position *end);
    /* The copy has ended. Does its best. */
    void (*close)(void *context, const char *node_id, const char *snapshot);
    /* Instead of close: this node has kept the snapshot as the base of later transfers. */
    void (*keep)(void *context, const char *node_id, const char *snapshot);
    /* UNAVAILABLE: the node does not answer. */
    struct error *(*find_use)(void *context, const char *node_id, const char *snapshot,
                              const char *transfer_id, struct remote_use *out);
    void *context;
};

#endif
