/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a controller or a node registered: announces its address at once and then every `delay_ms`,
 * with a time to live of three times that. While the registry does not answer, it retries after one
 * second, then after longer and longer pauses. Only changes are logged.
 *
 * It calls skycap.v1.Registry/Announce. If the registry does not know that, a controller uses the
 * older RegisterController, or sets the path "<id>/address"; such entries never expire.
 *
 * To watch other nodes: node_watcher.h.
 */
#ifndef REGISTRY_CLIENT_ANNOUNCER_H
#define REGISTRY_CLIENT_ANNOUNCER_H

#include <stdint.h>

#include "base/log.h"
#include "base/text_map.h"
#include "rpc/client/channel.h"

struct announcer;

struct announcer_options {
    const char *registry; /* its address */
    const char *id;
    bool is_node;        /* otherwise it is a controller */
    const char *address; /* of the controller or node */
    uint32_t delay_ms;
    /*
     * Before each attempt to register, which may take effect before its answer is here; and after
     * it, with its error or NULL. On the announcer's thread. NULL: nobody wants to know.
     */
    void (*begins)(void *context);
    void (*ends)(void *context, const struct error *error);
    void *context;
    struct tls_context *tls; /* NULL: plaintext; otherwise the server must be component.registry */
    struct runtime *runtime;
    const struct log *log;
};

/* The texts must outlive it. Sends nothing yet. */
MUST_CHECK struct error *announcer_open(const struct announcer_options *options,
                                        struct announcer **out);

/*
 * What others should know of it, from now on; none at first. At most 64 attributes of 4 KiB in
 * total: the registry refuses more. If they differ from the last ones, they are announced at once.
 * Copies the map. Any thread; does not block.
 */
void announcer_set_attributes(struct announcer *announcer, const struct text_map *attributes);

void announcer_begin(struct announcer *announcer);

/*
 * Removes the registration of another node. PERMISSION_DENIED: it has not expired. On a thread that
 * may block.
 */
MUST_CHECK struct error *announcer_remove_node(struct announcer *announcer, const char *node_id);

/* Also cancels the current call. Does not block; may be called repeatedly. */
void announcer_stop(struct announcer *announcer);

/* Stops, and waits for the thread. Before the runtime is closed; NULL is fine. */
void announcer_close(struct announcer *announcer);

#endif
