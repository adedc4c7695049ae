/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may fetch a snapshot that is spread over many nodes. A node serves few of them at a time; the
 * others wait, or ask a node that has a copy by then. So no node sends a snapshot often.
 *
 * A fetching node keeps its slot from before its stream until it has announced that it has the
 * snapshot too: otherwise the next one would be served here in between. A slot without a stream
 * ends by itself after STREAM_SLOTS_IDLE_MS. Any thread.
 */
#ifndef VOLUMES_STREAM_SLOTS_H
#define VOLUMES_STREAM_SLOTS_H

#include <pthread.h>

#include "base/error.h"

#define STREAM_SLOTS_MOST 2 /* of one snapshot */
#define STREAM_SLOTS_IDLE_MS 30000u

struct stream_slot;

struct stream_slots {
    pthread_mutex_t lock;
    struct stream_slot *first;
};

void stream_slots_init(struct stream_slots *slots);
void stream_slots_clear(struct stream_slots *slots);

/* Takes a slot, or renews the node's own. RESOURCE_EXHAUSTED: others have them. */
MUST_CHECK struct error *stream_slots_take(struct stream_slots *slots, const char *snapshot,
                                           const char *node_id, uint64_t now_ms);

/* The same, and a stream begins. */
MUST_CHECK struct error *stream_slots_begin(struct stream_slots *slots, const char *snapshot,
                                            const char *node_id, uint64_t now_ms);
/* The stream has ended; the slot stays. */
void stream_slots_end(struct stream_slots *slots, const char *snapshot, const char *node_id,
                      uint64_t now_ms);

/* No effect if the node has none, or has streams. */
void stream_slots_release(struct stream_slots *slots, const char *snapshot, const char *node_id);

#endif
