/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets that a service manager has opened and passed on, as systemd does for a .socket
 * unit: $LISTEN_FDS descriptors from 3 on, for the process $LISTEN_PID. Whoever is to listen on an
 * address uses the inherited socket of that address if there is one. Its file stays when the
 * server ends: clients that connect meanwhile wait for the next start.
 */
#ifndef RPC_HTTP2_INHERITED_H
#define RPC_HTTP2_INHERITED_H

#include <sys/socket.h>

#include "base/error.h"

#define INHERITED_MOST 16

/* Programs that this process starts do not get the sockets. Call it before any is started. */
MUST_CHECK struct error *inherited_open(void);

/*
 * The descriptor, non-blocking, of the socket that listens on this address; -1: there is none. It
 * belongs to the caller, and is not found again.
 */
int inherited_take(const struct sockaddr *name, socklen_t size);

/* After all have been taken: an error if one is left, because its clients would wait forever. */
MUST_CHECK struct error *inherited_check(void);

#endif
