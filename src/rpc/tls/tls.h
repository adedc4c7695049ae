/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutual TLS (1.3, or 1.2 for older peers) as a filter between bytes, without socket or
 * loop.
 *
 * A context holds our certificate, its key and the CA, and takes new files without a restart. A
 * session is one connection: ciphertext goes in with feed, plaintext comes out of read, plaintext
 * goes in with write, ciphertext comes out of take. The loop of a connection is
 *
 *     feed what the socket gave;  read until it gives nothing;  take;  send what was taken
 *
 * and a client begins with a read that gives nothing, which makes its first message.
 *
 * Both sides present a certificate and verify the peer's against the CA file and nothing else: the
 * system's store is not looked at, and each certificate in the file is trusted as it stands, a root
 * or not. Names are compared by our own code because certificates that carry their name as common
 * name only, without a subject alternative name, are in use. ALPN is "h2", or none with peers that
 * do not know it. Nothing is resumed: each connection is verified anew, so that a new CA is in
 * force for all that begins after it.
 *
 * Threads: a context, its sessions and all functions on them belong to one thread, the loop's.
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

/* Paths of files in PEM form. */
struct tls_options {
    const char *ca_file;          /* one or more certificates */
    const char *certificate_file; /* ours first, then those between it and the CA, if any */
    const char *key_file;         /* not encrypted; may be the certificate's file */
};

/* The error names the file and what to do. */
MUST_CHECK struct error *tls_context_open(const struct tls_options *options,
                                          struct tls_context **out);

/* Sessions may outlive it. NULL is fine. */
void tls_context_close(struct tls_context *context);

/*
 * Reads the files again if one of them is another file now, or was changed, since they were last
 * tried. The new ones are in force for sessions made from then on, all of them or none: on an error
 * the last good ones stay, and the error is told once, not again until a file changes. `*changed`
 * says whether new ones are in force. Costs three stat(2) when nothing changed.
 */
MUST_CHECK struct error *tls_context_reload(struct tls_context *context, bool *changed);

struct tls_session *tls_session_new_server(struct tls_context *context);

/*
 * The handshake fails unless the server's certificate has `expected_name`, see tls_session_peer_is.
 * `sni_host` is what the server is told about which host is wanted; NULL or an IP address: nothing.
 */
struct tls_session *tls_session_new_client(struct tls_context *context, const char *expected_name,
                                           const char *sni_host);

/* NULL is fine. */
void tls_session_free(struct tls_session *session);

/*
 * Errors of a session are CODE_UNAVAILABLE and final: every later feed, read and write fails too.
 * Only take still gives what is pending, so that the peer is sent the alert that tells it why.
 */

/* Ciphertext from the socket; copied. */
MUST_CHECK struct error *tls_session_feed(struct tls_session *session, const void *bytes,
                                          size_t size);

/*
 * Goes on with the handshake, then gives decrypted bytes. Nothing in `*got` means that more must be
 * fed first, or, with `*closed`, that the peer said it will send no more. `room` is not 0.
 */
MUST_CHECK struct error *tls_session_read(struct tls_session *session, void *out, size_t room,
                                          size_t *got, bool *closed);

/* Only after the handshake. Takes all of it. */
MUST_CHECK struct error *tls_session_write(struct tls_session *session, const void *bytes,
                                           size_t size);

/* Moves all ciphertext that is to be sent behind what is in `out`. */
void tls_session_take(struct tls_session *session, struct buffer *out);

/* The handshake is done: the peer is verified and bytes can be written. */
bool tls_session_is_established(const struct tls_session *session);

/* Tells the peer, with the next take, that we write no more. Does nothing before the handshake. */
void tls_session_shutdown(struct tls_session *session);

/*
 * The names in the peer's certificate: the common name (unless there are several) and all subject
 * alternative names that are DNS names or IP addresses, as text, each once. None before the
 * handshake is done. They are the session's.
 */
size_t tls_session_peer_names(const struct tls_session *session, const char *const **names);

/*
 * Is `name` one of them? Letter by letter: no wildcards, capitals count. Only IPv6 addresses may be
 * written in any of their forms.
 */
bool tls_session_peer_is(const struct tls_session *session, const char *name);

#endif
