/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps an eye on somebody else's CSI driver: one thread asks what it can do, sets the driver's
 * facts, and then asks at intervals whether it is ready; more often while it is not. Its answers
 * count for the breakers too, which so let calls pass again. Changes are logged, nothing else.
 */
#ifndef DRIVERS_KEEPER_H
#define DRIVERS_KEEPER_H

#include "drivers/breaker.h"
#include "drivers/driver.h"
#include "rpc/client/channel.h"

/* One of the driver's sockets. */
struct keeper_end {
    struct channel *channel;
    struct breaker *breaker;
};

struct keeper;

/* All of it must outlive the keeper. */
struct keeper_options {
    const char *connection;
    struct driver *driver;               /* whose facts it sets; nobody else sets them */
    const struct keeper_end *controller; /* for all but the Node service */
    const struct keeper_end *node;       /* maybe the same */
    const struct metadata *metadata;     /* sent with each call */
    uint32_t interval_ms;                /* between questions, while it is ready */
    uint32_t timeout_ms;                 /* of each question */
    struct tls_context *tls;             /* whose files are looked after; NULL: none */
    const struct log *log;
    /*
     * What is asked of a server that is no CSI driver, by keeper_ask; NULL: it is one. The driver
     * has set its facts itself then, and only whether it is ready changes.
     */
    struct error *(*check_ready)(struct keeper *keeper, const struct keeper_end *end);
};

MUST_CHECK struct error *keeper_open(const struct keeper_options *options, struct keeper **out);

/* Does not wait for an answer that does not come. Not from the loop thread. NULL is fine. */
void keeper_close(struct keeper *keeper);

/*
 * For check_ready: one question, with the keeper's own timeout. The reply is valid until
 * check_ready returns.
 */
MUST_CHECK struct error *keeper_ask(struct keeper *keeper, const struct keeper_end *end,
                                    const struct method *method, const ProtobufCMessage *request,
                                    void *reply);

/* Any thread: ask now. */
void keeper_wake(struct keeper *keeper);

/*
 * Any thread: the driver's program, which is ours to run, has started (NULL), or why it does not
 * run.
 */
void keeper_note_program(struct keeper *keeper, const char *trouble);

#endif
