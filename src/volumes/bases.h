/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots that two nodes have in common, so that the next transfer between them needs to send
 * only a difference. A base has the same handle on both nodes and is hidden from users
 * (SnapshotRecord.purpose). The source of a transfer takes it (snapshot_create_base), the target
 * makes it from the data that has arrived. Each side keeps the newest base of each volume and node
 * (bases_tidy).
 *
 * Where the back end cannot copy cheaply, or the source cannot tell differences, none is kept.
 *
 * Their names begin with "transfer/", so that they can be listed.
 */
#ifndef VOLUMES_BASES_H
#define VOLUMES_BASES_H

#include "volumes/rows.h"

/* Of a base for exports: its peer is no node but a repository, with this before its name. */
#define BASES_OF_REPOSITORY "repository/"

/* The name of a base; `id` is that of the transfer, or the handle of what has been received. */
const char *bases_name(const char *volume, const char *id, struct arena *arena);

/*
 * The newest snapshots of the volume on this node, of any purpose, newest first; at most
 * REMOTE_DATA_HAVE. In the arena.
 */
struct bases_list {
    const char **handles;
    size_t count;
};
MUST_CHECK struct error *bases_find(struct engine *engine, const char *volume, struct arena *arena,
                                    struct bases_list *out);

/* Whether this node can tell the difference between the data and another snapshot like it. */
bool bases_can_tell_difference(struct engine *engine, const struct data *data);

/* ---- the target ---- */

/*
 * Keeps what has arrived: `from` has the contents and the size of the snapshot that its node has
 * told. False: it is not kept; the log says why if that is a surprise.
 */
bool bases_keep_received(struct engine *engine, const snapshot_record *told,
                         const struct data *from);

/* ---- the source ---- */

/*
 * The transfer of a base that this node has taken has ended. Keeps it if the other node has it and
 * its volume exists; otherwise deletes it. Other snapshots stay as they are.
 */
MUST_CHECK struct error *bases_end_sent(struct engine *engine, const char *handle, bool is_kept);

/* ---- retention: bases_tidy.c ---- */

/*
 * The snapshot may be all that is left of its volume: if it is a base, bases_tidy keeps it for a
 * day from now on, also after a restart.
 */
MUST_CHECK struct error *bases_offer(struct engine *engine, const char *handle);

/*
 * Deletes bases that have a newer one of the same volume and node, or are older than 7 days (those
 * for exports: 35, or without their volume or repository); and all if less than a tenth of the pool
 * is free. Those of transfers that have not ended go after a day. Those that are in use stay until
 * the next time.
 */
void bases_tidy(struct engine *engine);

/* ABORTED, FAILED_PRECONDITION: it is in use; it is deleted later. */
MUST_CHECK struct error *bases_delete(struct engine *engine, const snapshot_record *snapshot);

/* Called before the volume's row is deleted: deletes the bases of it that this node keeps. */
void bases_drop_of(struct engine *engine, const char *volume);

#endif
