/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate for one connection on this machine, which the peer learns in another way. */
#ifndef RPC_TLS_TLS_IDENTITY_H
#define RPC_TLS_TLS_IDENTITY_H

#include "base/buffer.h"
#include "base/error.h"

struct tls_identity {
    struct buffer certificate; /* PEM */
    struct buffer der;         /* the same certificate */
    struct buffer key;         /* PEM */
};

/* Signs itself, for servers and clients, with the name "localhost"; ECDSA on P-256. */
MUST_CHECK struct error *tls_identity_make(struct tls_identity *out);

/* For AUTO. Wipes the key. */
void tls_identity_clear(struct tls_identity *identity);

#endif
