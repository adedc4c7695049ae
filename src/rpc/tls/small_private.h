/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h and tls_identity.h for programs that must be small: with mbedTLS, which takes a tenth of
 * OpenSSL's room. Such a program is linked with the small_*.c of this room; all others are not.
 *
 * It differs in three points: certificates are not reloaded, TLS is 1.2 where mbedTLS is older than
 * 3.6, and the texts of errors are mbedTLS's.
 */
#ifndef RPC_TLS_SMALL_PRIVATE_H
#define RPC_TLS_SMALL_PRIVATE_H

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <stdbool.h>

#include "base/error.h"

/* Random numbers of mbedTLS. */
struct small_random {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context generator;
};

MUST_CHECK struct error *small_random_open(struct small_random *random);
void small_random_close(struct small_random *random);

struct tls_context {
    size_t references; /* the opener and each session */
    char *ca_path;     /* for error texts */
    char *certificate_path;
    struct small_random random;
    mbedtls_x509_crt ca;
    mbedtls_x509_crt certificate;
    mbedtls_pk_context key;
    mbedtls_ssl_config server;
    mbedtls_ssl_config client;
};

void small_context_release(struct tls_context *context);

/* Code UNAVAILABLE with mbedTLS's text for the number. */
MUST_CHECK struct error *small_failure(const char *what, int number);

/* ---- the peer ---- */

struct small_peer {
    const char *ca_path;
    char *expected_name; /* NULL: any */
    char **names;        /* verified only once the handshake is complete */
    size_t name_count;
    struct error *refusal;
};

/* mbedTLS's verify callback; its context is a struct small_peer. */
int small_peer_verify(void *context, mbedtls_x509_crt *certificate, int depth, uint32_t *flags);
bool small_peer_is(const struct small_peer *peer, const char *name);
void small_peer_clear(struct small_peer *peer);

#endif
