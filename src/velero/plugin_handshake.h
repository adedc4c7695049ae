/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a plugin and its host find each other: a unix socket in a directory of its own, and a line
 * that tells the host where. If the host has sent a certificate, each side proves by TLS that it
 * has the key of the certificate that it gave to the other.
 */
#ifndef VELERO_PLUGIN_HANDSHAKE_H
#define VELERO_PLUGIN_HANDSHAKE_H

#include "base/buffer.h"
#include "rpc/server/server.h"

/* Large enough for the path of a unix socket. */
#define HANDSHAKE_PATH_SIZE 108

struct handshake {
    char directory[HANDSHAKE_PATH_SIZE];
    struct tls_context *tls;
    struct buffer line;
};

/* FAILED_PRECONDITION: no directory for the socket. */
MUST_CHECK struct error *handshake_listen(struct handshake *handshake, struct server *server);

/* Writes the line. */
MUST_CHECK struct error *handshake_say(const struct handshake *handshake, int fd);

/* For AUTO, after server_free: removes the socket and its directory. */
void handshake_clear(struct handshake *handshake);

#endif
