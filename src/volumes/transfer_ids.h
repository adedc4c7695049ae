/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of transfers that this node opens. Opening takes a snapshot at the other node, which may
 * be a full copy and take longer than the call lasts. When the same volume is asked for again, the
 * same id finds that snapshot; a new id would begin a new one each time.
 *
 * In memory: after a restart, new ids are made, and the other node finds out that nobody needs the
 * old snapshots (transfers_left.h).
 */
#ifndef VOLUMES_TRANSFER_IDS_H
#define VOLUMES_TRANSFER_IDS_H

#include <pthread.h>

#include "backends/backend.h"

#define TRANSFER_IDS_MOST 64

struct engine;

struct transfer_ids {
    pthread_mutex_t lock;
    struct transfer_id {
        uint64_t purpose; /* a hash of the volume's name and of its source */
        char id[BACKEND_HANDLE_SIZE];
        uint64_t until_ms;  /* then it is forgotten */
        bool is_open_again; /* the next attempt takes it */
    } items[TRANSFER_IDS_MOST];
};

void transfer_ids_init(struct transfer_ids *ids);
void transfer_ids_clear(struct transfer_ids *ids);

/* For the volume `name`, to be made of the source. Nobody else gets the id before it is ended. */
void transfer_ids_begin(struct engine *engine, const char *name, const char *source,
                        char id[BACKEND_HANDLE_SIZE]);
/* `is_open_again`: the other node may still be taking the snapshot. */
void transfer_ids_end(struct engine *engine, const char *id, bool is_open_again);

/* It has been begun, and the snapshot may be needed. */
bool transfer_ids_has(struct engine *engine, const char *id);

#endif
