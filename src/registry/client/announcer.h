/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the controller registered: announces its address at once and then every `delay_ms`, with a
 * time to live of three times that. While the registry does not answer, it retries after one
 * second, then after longer and longer pauses. Only changes are logged.
 *
 * It calls skycap.v1.Registry/Announce. If the registry does not know that, it uses the older
 * RegisterController, or sets the path "<id>/address"; such entries never expire.
 */
#ifndef REGISTRY_CLIENT_ANNOUNCER_H
#define REGISTRY_CLIENT_ANNOUNCER_H

#include <stdint.h>

#include "base/log.h"
#include "rpc/client/channel.h"

struct announcer;

struct announcer_options {
    const char *registry; /* its address */
    const char *id;
    const char *address; /* of the controller */
    uint32_t delay_ms;
    struct tls_context *tls; /* NULL: plaintext; otherwise the server must be component.registry */
    struct runtime *runtime;
    const struct log *log;
};

/* The texts must outlive it. Sends nothing yet. */
MUST_CHECK struct error *announcer_open(const struct announcer_options *options,
                                        struct announcer **out);

void announcer_begin(struct announcer *announcer);

/* Also cancels the current call. Does not block; may be called repeatedly. */
void announcer_stop(struct announcer *announcer);

/* Stops, and waits for the thread. Before the runtime is closed; NULL is fine. */
void announcer_close(struct announcer *announcer);

#endif
