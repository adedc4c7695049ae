/* SPDX-License-Identifier: Apache-2.0 */
/* Data on other nodes, as the source of copies. The cluster provides it to the engine. */
#ifndef VOLUMES_REMOTE_DATA_H
#define VOLUMES_REMOTE_DATA_H

#include "backends/backend.h"
#include "base/arena.h"
#include "stream/stream.h"
#include "volumes/volume.h"

/* A source that stays as it is until it is closed. Texts are in the caller's arena. */
struct remote_source {
    const char *snapshot; /* the handle of what is fetched */
    enum volume_kind kind;
    int64_t size_bytes;
    const char *fs_type;
    int64_t formatted_bytes;
    bool blank;
    uint32_t sector_bytes;
    bool nocow;
};

struct remote_fetch {
    const char *snapshot;
    struct stream_position from;
    struct stream_sink sink;
    void (*expect)(void *context, uint64_t bytes); /* how much there is, about; 0: unknown */
    bool (*cancelled)(void *context);
    void *context; /* of both */
};

struct remote_data {
    /*
     * NOT_FOUND: there is no such source. UNAVAILABLE: its node does not answer. `transfer_id` is
     * unique, and the same when the call is repeated.
     */
    struct error *(*open)(void *context, enum source_kind kind, const char *handle,
                          const char *transfer_id, struct arena *arena, struct remote_source *out);
    /* Errors of the sink end it and are returned. CANCELLED: `cancelled` has said so. */
    struct error *(*fetch)(void *context, const struct remote_fetch *fetch,
                           struct stream_position *end);
    /* The copy has ended. Does its best. */
    void (*close)(void *context, const char *snapshot);
    void *context;
};

#endif
