/* SPDX-License-Identifier: Apache-2.0 */
/* One address of a driver's server: a channel to it, and a breaker for the calls. Any thread. */
#ifndef DRIVERS_ENDPOINT_H
#define DRIVERS_ENDPOINT_H

#include "drivers/breaker.h"
#include "rpc/client/channel.h"

struct endpoint {
    struct channel *channel; /* NULL: it is not open */
    struct breaker breaker;
};

struct endpoint_options {
    const char *address;
    struct tls_context *tls; /* for TCP; NULL: plaintext */
    const char *tls_name;    /* that the server must prove; NULL: the host of the address */
    uint32_t connect_timeout_ms;
};

/* Comes before everything else, also before endpoint_close. */
void endpoint_init(struct endpoint *endpoint);
MUST_CHECK struct error *endpoint_open(struct endpoint *endpoint, struct runtime *runtime,
                                       const struct endpoint_options *options);
void endpoint_close(struct endpoint *endpoint);

/* As breaker_check and breaker_note, at this moment. */
MUST_CHECK struct error *endpoint_check(struct endpoint *endpoint);
bool endpoint_note(struct endpoint *endpoint, const struct error *error);

#endif
