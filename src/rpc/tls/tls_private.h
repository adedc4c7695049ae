/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tls_context.c, tls_session.c and tls_peer.c share; nobody else includes it. OpenSSL's types
 * stand here by their struct tags, so that this header compiles without its headers.
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

/* Differs when the file was replaced, written to or made readable. */
struct tls_file_state {
    int errnum; /* of stat(2); the rest is 0 then */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified;
    struct timespec changed;
};

struct tls_file {
    char *path;
    struct tls_file_state tried; /* as it was when it was last read */
};

struct tls_context {
    size_t users; /* who opened it, until it is closed, and each session */
    struct tls_file ca;
    struct tls_file certificate;
    struct tls_file key;
    struct ssl_ctx_st *ssl_context; /* for new sessions; older sessions hold their own */
    time_t valid_from;              /* of a certificate that was tried too early, or 0 */
};

void tls_context_release(struct tls_context *context);

/* What a session knows about its peer. It is the SSL's application data. */
struct tls_peer {
    const char *ca_file;            /* for texts */
    char *expected_name;            /* NULL: any name */
    struct certificate_names names; /* proven only when the handshake is done */
    struct error *refusal;          /* why tls_peer_verify said no, or the session ends it later */
};

/* OpenSSL's question in the handshake: is this chain of certificates good for us? */
int tls_peer_verify(struct x509_store_ctx_st *store, void *unused);

bool tls_peer_is(const struct tls_peer *peer, const char *name);
void tls_peer_clear(struct tls_peer *peer);

#endif
