/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens on a TCP port of this machine. */
#ifndef RPC_HTTP2_PORT_OWNER_H
#define RPC_HTTP2_PORT_OWNER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Prints "process 812 (nginx) of user 0", or less where the kernel tells less. Returns `out`, which
 * is empty if nobody listens on the port.
 */
const char *port_owner_print(uint16_t port, char *out, size_t size);

#endif
