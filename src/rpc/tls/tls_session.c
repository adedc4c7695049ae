/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TLS session, from bytes to bytes.
 *
 * OpenSSL reads and writes two buffers through a BIO of our own. Its memory BIO would do the same,
 * but never frees memory and would need another copy of the output.
 */
#include <assert.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/loop/timers.h"
#include "rpc/tls/tls.h"
#include "rpc/tls/tls_private.h"
#include "rpc/tls/tls_shared.h"

/* An idle session keeps its buffers if they are no larger than this. */
#define KEPT_CAPACITY ((size_t)16 * 1024)

/* The most that a record adds to its plaintext, and the most plaintext in a record. */
#define RECORD_OVERHEAD ((size_t)64)
#define RECORD_PLAINTEXT ((size_t)16 * 1024)

/*
 * Rate limit of KeyUpdate messages: a burst, and one per second. Each costs the peer 27 bytes, and
 * us more time than reading a megabyte.
 */
#define KEY_UPDATE_BURST 32u
#define KEY_UPDATE_NS UINT64_C(1000000000)

struct tls_session {
    struct tls_context *context;
    struct tls_peer peer;
    SSL *ssl;
    BIO_METHOD *bio_method;
    struct tls_input input;
    struct buffer output;            /* ciphertext for take */
    struct buffer pending_plaintext; /* plaintext that OpenSSL would not accept yet */
    unsigned key_updates;            /* KeyUpdates of the peer above the sustained rate */
    uint64_t key_updates_counted_at;
    bool established;
    bool failed;
};

static void
empty_buffer(struct buffer *buffer)
{
    buffer->size = 0;
    if (buffer->capacity > KEPT_CAPACITY)
        buffer_clear(buffer);
}

static int
bio_read(BIO *bio, char *out, int room)
{
    struct tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (session->peer.refusal)
        return -1;
    size_t size = tls_input_read(&session->input, out, (size_t)room);
    if (!size) {
        BIO_set_retry_read(bio);
        return -1;
    }
    return (int)size;
}

static int
bio_write(BIO *bio, const char *bytes, int size)
{
    struct tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    buffer_append(&session->output, bytes, (size_t)size);
    return size;
}

static long
bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static void
connect_buffers(struct tls_session *session)
{
    session->bio_method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "session buffers");
    if (!session->bio_method)
        memory_exhausted();
    BIO_meth_set_read(session->bio_method, bio_read);
    BIO_meth_set_write(session->bio_method, bio_write);
    BIO_meth_set_ctrl(session->bio_method, bio_control);
    BIO *bio = BIO_new(session->bio_method);
    if (!bio)
        memory_exhausted();
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio);
}

static void
count_key_update(struct tls_session *session)
{
    uint64_t now = timers_now();
    uint64_t earned = (now - session->key_updates_counted_at) / KEY_UPDATE_NS;
    if (earned) {
        session->key_updates_counted_at = now;
        session->key_updates -=
            earned < session->key_updates ? (unsigned)earned : session->key_updates;
    }
    if (++session->key_updates > KEY_UPDATE_BURST && !session->peer.refusal)
        session->peer.refusal =
            error_new(CODE_UNAVAILABLE, "TLS: the peer sends too many key updates");
}

/* OpenSSL processes consecutive KeyUpdates without returning; bio_read stops it. */
static void
on_message(int is_ours, int version, int kind, const void *bytes, size_t size, SSL *ssl,
           void *session)
{
    (void)version, (void)ssl;
    if (!is_ours && kind == SSL3_RT_HANDSHAKE && size &&
        *(const uint8_t *)bytes == SSL3_MT_KEY_UPDATE)
        count_key_update(session);
}

static struct tls_session *
new_session(struct tls_context *context)
{
    struct tls_session *session = memory_zeroed(sizeof *session);
    session->context = context;
    context->references++;
    session->peer.ca_file = context->ca.path;
    session->ssl = SSL_new(context->ssl_context);
    if (!session->ssl)
        memory_exhausted();
    SSL_set_app_data(session->ssl, &session->peer);
    SSL_set_msg_callback(session->ssl, on_message);
    SSL_set_msg_callback_arg(session->ssl, session);
    connect_buffers(session);
    return session;
}

struct tls_session *
tls_session_new_server(struct tls_context *context)
{
    struct tls_session *session = new_session(context);
    SSL_set_accept_state(session->ssl);
    return session;
}

/* Removes a trailing dot: RFC 6066 forbids it, and Go's servers refuse it. */
static void
set_sni(SSL *ssl, const char *host)
{
    char name[TLSEXT_MAXLEN_host_name + 1];
    size_t size = strlen(host);
    if (size && host[size - 1] == '.')
        size--;
    if (!size || size >= sizeof name || tls_is_address(host))
        return;
    memcpy(name, host, size);
    name[size] = '\0';
    if (!SSL_set_tlsext_host_name(ssl, name))
        memory_exhausted();
}

struct tls_session *
tls_session_new_client(struct tls_context *context, const char *expected_name, const char *sni_host)
{
    struct tls_session *session = new_session(context);
    SSL_set_connect_state(session->ssl);
    session->peer.expected_name = memory_string(expected_name);
    if (sni_host)
        set_sni(session->ssl, sni_host);
    return session;
}

void
tls_session_free(struct tls_session *session)
{
    if (!session)
        return;
    SSL_free(session->ssl);
    BIO_meth_free(session->bio_method);
    tls_peer_clear(&session->peer);
    tls_input_clear(&session->input);
    buffer_clear(&session->output);
    buffer_clear(&session->pending_plaintext);
    tls_context_release(session->context);
    free(session);
}

/* Advice for failures that happen in practice; NULL for others. */
static const char *
explain(int reason)
{
    switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return "the peer must present one that is signed by our CA";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_WRONG_SSL_VERSION:
        return "the peer needs TLS 1.2 or later";
    case SSL_R_HTTP_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
        return "does the peer speak TLS?";
    case SSL_R_NO_APPLICATION_PROTOCOL:
        return "the peer offers protocols by ALPN, but not \"h2\"";
    case SSL_R_BAD_EXTENSION:
        return "did the peer choose a protocol other than \"h2\" by ALPN?";
    case SSL_R_NO_SHARED_CIPHER:
        return "the peer offers none that HTTP/2 allows";
    default:
        return NULL;
    }
}

static bool
is_about_our_certificate(int alert)
{
    switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
        return true;
    default:
        return false;
    }
}

static struct error *
error_of_alert(const struct tls_session *session, int alert)
{
    const char *name = SSL_alert_desc_string_long(alert);
    if (is_about_our_certificate(alert))
        return error_new(CODE_UNAVAILABLE,
                         "TLS: the peer does not accept our certificate in \"%s\": alert %d, %s",
                         session->context->certificate.path, alert, name);
    return error_new(CODE_UNAVAILABLE, "TLS: the peer ended the connection: alert %d, %s", alert,
                     name);
}

/* From OpenSSL's error queue. */
static struct error *
error_of_queue(const struct tls_session *session)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET)
        return error_of_alert(session, reason - SSL_AD_REASON_OFFSET);
    const char *text = ERR_reason_error_string(code);
    const char *hint = ERR_GET_LIB(code) == ERR_LIB_SSL ? explain(reason) : NULL;
    return error_new(CODE_UNAVAILABLE, hint ? "TLS: %s (%s)" : "TLS: %s",
                     text ? text : "unknown failure", hint);
}

static struct error *
fail(struct tls_session *session)
{
    session->failed = true;
    tls_input_clear(&session->input);
    buffer_clear(&session->pending_plaintext);
    struct error *error =
        session->peer.refusal ? STEAL(session->peer.refusal) : error_of_queue(session);
    ERR_clear_error();
    return error;
}

static struct error *
error_of_failed_session(void)
{
    return error_new(CODE_UNAVAILABLE, "the TLS session has already failed");
}

struct error *
tls_session_feed(struct tls_session *session, const void *bytes, size_t size)
{
    if (session->failed)
        return error_of_failed_session();
    tls_input_feed(&session->input, bytes, size);
    return NULL;
}

/* Leaves `*done` false if OpenSSL waits for the rest of a handshake message that the peer split. */
static struct error *
encrypt(struct tls_session *session, const void *bytes, size_t size, bool *done)
{
    size_t written;
    buffer_reserve(&session->output, size + (size / RECORD_PLAINTEXT + 1) * RECORD_OVERHEAD);
    ERR_clear_error();
    *done = SSL_write_ex(session->ssl, bytes, size, &written);
    if (*done || SSL_get_error(session->ssl, 0) == SSL_ERROR_WANT_READ)
        return NULL;
    return fail(session);
}

static struct error *
write_pending(struct tls_session *session)
{
    if (!session->pending_plaintext.size)
        return NULL;
    bool done;
    struct error *error =
        encrypt(session, session->pending_plaintext.bytes, session->pending_plaintext.size, &done);
    if (!error && done)
        buffer_clear(&session->pending_plaintext);
    return error;
}

struct error *
tls_session_read(struct tls_session *session, void *out, size_t room, size_t *got, bool *closed)
{
    assert(room);
    *got = 0;
    *closed = false;
    if (session->failed)
        return error_of_failed_session();
    ERR_clear_error();
    int done = SSL_read_ex(session->ssl, out, room, got);
    int reason = SSL_get_error(session->ssl, done);
    if (!done && reason != SSL_ERROR_WANT_READ && reason != SSL_ERROR_ZERO_RETURN)
        return fail(session);
    *closed = reason == SSL_ERROR_ZERO_RETURN;
    session->established = session->established || SSL_is_init_finished(session->ssl);
    if (session->input.consumed == session->input.bytes.size) {
        session->input.consumed = 0;
        empty_buffer(&session->input.bytes);
    }
    return write_pending(session);
}

struct error *
tls_session_write(struct tls_session *session, const void *bytes, size_t size)
{
    assert(session->established);
    if (session->failed)
        return error_of_failed_session();
    if (!size)
        return NULL;
    bool done = false;
    if (!session->pending_plaintext.size) {
        struct error *error = encrypt(session, bytes, size, &done);
        if (error)
            return error;
    }
    if (!done)
        buffer_append(&session->pending_plaintext, bytes, size);
    return NULL;
}

void
tls_session_take(struct tls_session *session, struct buffer *out)
{
    if (!out->size) {
        struct buffer spare = *out;
        *out = session->output;
        session->output = spare;
    } else {
        buffer_append(out, session->output.bytes, session->output.size);
    }
    empty_buffer(&session->output);
}

bool
tls_session_is_established(const struct tls_session *session)
{
    return session->established;
}

void
tls_session_shutdown(struct tls_session *session)
{
    if (!session->established || session->failed)
        return;
    SSL_shutdown(session->ssl);
    ERR_clear_error();
}

size_t
tls_session_peer_names(const struct tls_session *session, const char *const **names)
{
    *names = (const char *const *)session->peer.names.items;
    return session->established ? session->peer.names.count : 0;
}

bool
tls_session_peer_is(const struct tls_session *session, const char *name)
{
    return session->established && tls_peer_is(&session->peer, name);
}
