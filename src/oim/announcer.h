/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The controller's entry in the registry, kept fresh: announced at once, then again and again, with
 * a time to live of three times the pause; while the registry does not answer, with growing pauses
 * from one second on. Only changes are logged.
 *
 * Our own registry is told by skycap.v1.Registry/Announce. A registry that does not know it is told
 * by the older RegisterController, or the path "<id>/address": those entries have no end.
 */
#ifndef OIM_ANNOUNCER_H
#define OIM_ANNOUNCER_H

#include <stdint.h>

#include "base/log.h"
#include "rpc/client/channel.h"

struct announcer;

struct announcer_options {
    const char *registry; /* its address */
    const char *id;
    const char *address; /* of the controller */
    uint32_t delay_ms;
    struct tls_context *tls; /* NULL: plaintext; else the registry must prove that it is one */
    struct runtime *runtime;
    const struct log *log;
};

/* Texts must outlive it. Nothing is sent yet. */
MUST_CHECK struct error *announcer_open(const struct announcer_options *options,
                                        struct announcer **out);

void announcer_begin(struct announcer *announcer);

/* Ends also what is under way, without waiting. May come more than once. */
void announcer_stop(struct announcer *announcer);

/* Stops, and waits for the end; NULL is fine. Before the runtime is closed. */
void announcer_close(struct announcer *announcer);

#endif
