/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns a volume that has left its home. The cluster provides it to the engine; the answers come
 * from the registry. The rules in docs/cluster.md ("How a move works") say what may be concluded
 * from them. Volumes have the names that move_keys.h describes. Functions may block and are safe
 * from any thread.
 */
#ifndef VOLUMES_OWNERSHIP_H
#define VOLUMES_OWNERSHIP_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define OWNER_NODE_SIZE 257   /* of a node's id, with the NUL */
#define OWNER_CHANGES_SIZE 64 /* of the text that read_changes gives */

/* Epoch 0: it has never left its home. */
struct owner {
    char node_id[OWNER_NODE_SIZE]; /* "" at epoch 0: its home; "" later: nobody, it is deleted */
    uint64_t epoch;
    uint64_t recovered_epoch; /* the last one that a recovery began (rule 13); 0: none */
};

/* A row of this node that its registry must know after a loss of data (rule 9). */
enum claim_state { CLAIM_LIVE, CLAIM_MOVING, CLAIM_INCOMING, CLAIM_GONE, CLAIM_LEFT };
struct claim {
    const char *handle; /* the key */
    enum claim_state state;
    uint64_t epoch; /* of MOVING and INCOMING: the one that is asked for */
    uint64_t recovered_epoch;
    const char *node_id; /* of LEFT: who was the owner at this epoch */
};

/*
 * Provided by the engine: calls `take` for each of its claims, with the volume's lock held. An
 * error of `take` ends the walk and is returned.
 */
struct claim_source {
    struct error *(*walk)(void *context,
                          struct error *(*take)(void *taker, const struct claim *claim),
                          void *taker);
    void *context;
};

struct ownership {
    /*
     * Reads the row in the registry. UNAVAILABLE: the registry does not answer, or is new and not
     * all members have announced their rows (rule 10); the message names those.
     */
    struct error *(*read)(void *context, const char *key, struct owner *out);
    /*
     * The key that has a row, of a handle without a home; "": none has. In the arena.
     * FAILED_PRECONDITION: several have.
     */
    struct error *(*find_key)(void *context, const char *handle, struct arena *arena,
                              const char **key);
    /*
     * A text that changes whenever a volume may have got another owner or epoch without the
     * agreement of its owner (rule 13). It is to be read before the owners are compared.
     */
    struct error *(*read_changes)(void *context, char out[OWNER_CHANGES_SIZE]);
    /*
     * Asks for the swap of `from` for `to`. Without an error the registry has answered; whether the
     * swap was made, only a read tells. The recovered_epoch of `from` does not count; the row keeps
     * the later one. A `to` with recovered_epoch == epoch is of a recovery: all nodes hear of it.
     */
    struct error *(*swap)(void *context, const char *key, const struct owner *from,
                          const struct owner *to);
    /* Removes the row of a volume that is GONE (rule 12). */
    struct error *(*forget)(void *context, const char *key);
    /* Stores durably that this node exists (rule 11), before a move to or from it. */
    struct error *(*add_member)(void *context, const char *node_id);
    /* The ids of all members that are not removed, this node's too. In the arena. */
    struct error *(*members)(void *context, struct arena *arena, const char *const **ids,
                             size_t *count);
    void *context;
};

#endif
