/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutual TLS (1.3, or 1.2 for older peers) as a filter on bytes, independent of sockets and the
 * loop.
 *
 * A context holds our certificate, its key and the CA, and can reload the files. A session is one
 * connection: feed takes ciphertext, read returns plaintext, write takes plaintext, take returns
 * ciphertext. A connection repeats
 *
 *     feed what the socket received;  read until nothing is left;  take;  send what was taken
 *
 * and a client starts with a read, which returns nothing but produces its first message.
 *
 * Both sides present a certificate and verify the peer's against the CA file only. The system's
 * store is not used, and every certificate in the file is a trust anchor, self-signed or not. Our
 * own code compares names, because some certificates in use have their name as common name only,
 * without a subject alternative name. ALPN is "h2", or none if the peer does not support it.
 * Sessions are never resumed: each connection is verified in full, so that a new CA applies to all
 * new connections.
 *
 * Threads: contexts and sessions belong to one thread, the loop's.
 */
#ifndef RPC_TLS_TLS_H
#define RPC_TLS_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/buffer.h"
#include "base/error.h"

struct tls_context;
struct tls_session;

/* Paths of PEM files. */
struct tls_options {
    const char *ca_file;          /* one or more certificates */
    const char *certificate_file; /* our own first, then intermediates, if any */
    const char *key_file;         /* unencrypted; may be the same file as the certificate */
};

/* The error names the file and says what to do. */
MUST_CHECK struct error *tls_context_open(const struct tls_options *options,
                                          struct tls_context **out);

/* Sessions may outlive the context. NULL is ignored. */
void tls_context_close(struct tls_context *context);

/*
 * Reloads the files if one of them has been replaced or changed since the last attempt. New
 * sessions use the new certificates, either all of them or none: on error the last valid ones stay
 * in use. The error is returned once, not again until a file changes. `*changed` says whether new
 * ones are in use. Costs three stat(2) if nothing changed.
 */
MUST_CHECK struct error *tls_context_reload(struct tls_context *context, bool *changed);

/* Until when our certificate that is in use is valid, in Unix time; 0: not known. */
int64_t tls_context_valid_until(const struct tls_context *context);

struct tls_session *tls_session_new_server(struct tls_context *context);

/*
 * The handshake fails unless the server's certificate has `expected_name`; see tls_session_peer_is.
 * `sni_host` is sent as SNI, unless it is NULL or an IP address.
 */
struct tls_session *tls_session_new_client(struct tls_context *context, const char *expected_name,
                                           const char *sni_host);

/* NULL is ignored. */
void tls_session_free(struct tls_session *session);

/*
 * Errors of a session are CODE_UNAVAILABLE and final: every later feed, read and write fails. Only
 * take still works, so that the peer gets the alert that explains the failure.
 */

/* Takes ciphertext from the socket; copies it. */
MUST_CHECK struct error *tls_session_feed(struct tls_session *session, const void *bytes,
                                          size_t size);

/*
 * Continues the handshake, then returns decrypted bytes. `*got` 0 means that more must be fed first
 * or, with `*closed`, that the peer has sent close_notify. `room` must not be 0.
 */
MUST_CHECK struct error *tls_session_read(struct tls_session *session, void *out, size_t room,
                                          size_t *got, bool *closed);

/* Call only after the handshake. Consumes all bytes. */
MUST_CHECK struct error *tls_session_write(struct tls_session *session, const void *bytes,
                                           size_t size);

/* Appends all pending ciphertext to `out`. */
void tls_session_take(struct tls_session *session, struct buffer *out);

/* Is the handshake complete? Then the peer is verified and bytes can be written. */
bool tls_session_is_established(const struct tls_session *session);

/* Queues close_notify for the next take. No effect before the handshake. */
void tls_session_shutdown(struct tls_session *session);

/*
 * The names in the peer's certificate: the common name (unless there are several) and all subject
 * alternative names that are DNS names or IP addresses, as text, without duplicates. None before
 * the handshake is complete. The session owns them.
 */
size_t tls_session_peer_names(const struct tls_session *session, const char *const **names);

/*
 * Is `name` one of the peer's names? The comparison is exact: no wildcards, case-sensitive. Only
 * IPv6 addresses may be given in any of their forms.
 */
bool tls_session_peer_is(const struct tls_session *session, const char *name);

#endif
