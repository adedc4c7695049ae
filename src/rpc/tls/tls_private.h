/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by tls_context.c, tls_session.c and tls_peer.c; no other file includes it. It names
 * OpenSSL's types by their struct tags, so that it compiles without OpenSSL's headers.
 */
#ifndef RPC_TLS_TLS_PRIVATE_H
#define RPC_TLS_TLS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "pki/certificate_names.h"

struct ssl_ctx_st;
struct x509_store_ctx_st;

/* Differs if the file was replaced, written to or made readable. */
struct tls_file_state {
    int errnum; /* errno of stat(2); if set, the rest is 0 */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
    struct timespec changed;
};

struct tls_file {
    char *path;
    struct tls_file_state tried; /* when it was last read */
};

struct tls_context {
    size_t references; /* reference count: the opener and each session */
    struct tls_file ca;
    struct tls_file certificate;
    struct tls_file key;
    struct ssl_ctx_st *ssl_context; /* for new sessions; older ones hold their own */
    time_t valid_from;              /* of a certificate that was not valid yet, or 0 */
};

void tls_context_release(struct tls_context *context);

/* What a session knows about its peer; the SSL's application data. */
struct tls_peer {
    const char *ca_file;            /* for error texts */
    char *expected_name;            /* NULL: any name */
    struct certificate_names names; /* verified only once the handshake is complete */
    struct error *refusal;          /* why the peer was refused, by tls_peer_verify or later */
};

/* OpenSSL's verify callback: checks the peer's certificate chain and name. */
int tls_peer_verify(struct x509_store_ctx_st *store, void *unused);

bool tls_peer_is(const struct tls_peer *peer, const char *name);
void tls_peer_clear(struct tls_peer *peer);

#endif
