/* SPDX-License-Identifier: Apache-2.0 */
/* The line with which a plugin tells its host where it listens. */
#ifndef VELERO_HOST_HANDSHAKE_H
#define VELERO_HOST_HANDSHAKE_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "rpc/http2/address.h"

#define HOST_HANDSHAKE_MAX_BYTES (64u << 10) /* longer lines are refused, as by Velero */
#define HOST_HANDSHAKE_MAX_CERTIFICATE_BYTES (16u << 10) /* in DER */

struct host_handshake {
    char target[ADDRESS_TEXT_SIZE]; /* for channel_open; local: a socket, or the loopback */
    struct buffer certificate;      /* of the plugin, in DER; empty: it speaks plaintext */
};

/*
 * Reads CORE|APP|NETWORK|ADDRESS|PROTOCOL|CERTIFICATE|MULTIPLEX, without the line feed. The last
 * two may be missing. INVALID_ARGUMENT: it is not a handshake; FAILED_PRECONDITION: it is one, but
 * this host cannot talk to the plugin. On error there is nothing to clear.
 */
MUST_CHECK struct error *host_handshake_parse(const char *line, size_t size,
                                              struct host_handshake *out);

void host_handshake_clear(struct host_handshake *handshake);

#endif
