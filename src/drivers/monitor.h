/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Monitors a driver's server. One thread asks what the driver can do, sets its facts, and then
 * probes at intervals whether it is ready, more often while it is not. The answers count for the
 * breakers too: this is how calls pass again. Only changes are logged.
 */
#ifndef DRIVERS_MONITOR_H
#define DRIVERS_MONITOR_H

#include "drivers/driver.h"
#include "drivers/endpoint.h"

struct monitor;

/* All of it must outlive the monitor. */
struct monitor_options {
    const char *connection;
    struct driver *driver;           /* the monitor alone sets its facts; see check_ready */
    struct endpoint *controller;     /* for all services but Node */
    struct endpoint *node;           /* may be the same */
    const struct metadata *metadata; /* sent with each call */
    uint32_t interval_ms;            /* between probes while the driver is ready */
    uint32_t timeout_ms;             /* of each call */
    struct tls_context *tls;         /* reloaded when its files change; NULL: none */
    const struct log *log;
    /*
     * Probes a server that is no CSI driver, with monitor_ask. NULL: it is one. The driver has set
     * its facts itself; the monitor sets only whether it is ready.
     */
    struct error *(*check_ready)(struct monitor *monitor, struct endpoint *endpoint);
};

MUST_CHECK struct error *monitor_open(const struct monitor_options *options, struct monitor **out);

/* Cancels the call in progress. Not from the loop thread. NULL is fine. */
void monitor_close(struct monitor *monitor);

/* For check_ready: one call. Sets the pointer `reply`, valid until check_ready returns. */
MUST_CHECK struct error *monitor_ask(struct monitor *monitor, struct endpoint *endpoint,
                                     const struct method *method, const ProtobufCMessage *request,
                                     void *reply);

/* Probes now. Any thread. */
void monitor_wake(struct monitor *monitor);

/* The driver's program, our child, has started (NULL), or why it does not run. Any thread. */
void monitor_note_program(struct monitor *monitor, const char *trouble);

#endif
