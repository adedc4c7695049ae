/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutual TLS between host and plugin (AutoMTLS of go-plugin): each has a certificate of its own for
 * this run, and trusts exactly the other's. The host's goes to the plugin in the environment, the
 * plugin's comes with its handshake.
 */
#ifndef VELERO_HOST_IDENTITY_H
#define VELERO_HOST_IDENTITY_H

#include "base/buffer.h"
#include "base/error.h"
#include "rpc/tls/tls.h"

struct host_identity {
    struct buffer pem;      /* what plugins have to trust */
    char *certificate_file; /* the client's certificate and key */
    char *key_file;
};

/* Makes the certificates in the directory, which only its owner may read. */
MUST_CHECK struct error *host_identity_make(const char *directory, struct host_identity *out);
void host_identity_clear(struct host_identity *identity);

/* A context that trusts this certificate of a plugin, in DER. `directory` is for a file of it. */
MUST_CHECK struct error *host_identity_trust(const struct host_identity *identity,
                                             const struct buffer *certificate,
                                             const char *directory, struct tls_context **out);

#endif
