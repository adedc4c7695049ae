/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the service manager how the process is, in the protocol of sd_notify(3): a datagram of
 * NAME=VALUE lines to the unix socket that $NOTIFY_SOCKET names. Without that variable there is no
 * service manager, and nothing is sent.
 */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"

struct notify {
    int fd; /* -1: no service manager */
    struct sockaddr_un address;
    socklen_t address_size;
    uint64_t watchdog_us; /* without a ping for this long, the process is killed; 0: never */
};

#define NOTIFY_NONE ((struct notify){.fd = -1})

/*
 * Reads $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID. INVALID_ARGUMENT: they cannot be used.
 * After an error, too: notify_close.
 */
MUST_CHECK struct error *notify_open(struct notify *out);

/* Sends the lines; waits for up to five seconds if the service manager does not read. */
MUST_CHECK struct error *notify_send(const struct notify *notify, const char *lines);

/* Any thread, the loop's too: postpones the watchdog. Never waits. A ping may be lost. */
void notify_ping(const struct notify *notify);

void notify_close(struct notify *notify);

#endif
