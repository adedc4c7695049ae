/* SPDX-License-Identifier: Apache-2.0 */
/* One TLS session, from bytes to bytes, with mbedTLS: see small_private.h. */
#include <assert.h>
#include <mbedtls/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "rpc/tls/small_private.h"
#include "rpc/tls/tls.h"
#include "rpc/tls/tls_shared.h"

struct tls_session {
    struct tls_context *context;
    struct small_peer peer;
    mbedtls_ssl_context ssl;
    struct tls_input input;
    struct buffer output; /* ciphertext for take */
    bool established;
    bool failed;
    bool peer_closed;
    bool shut_down; /* we have sent close_notify */
};

/* ---- bytes ---- */

static int
receive(void *context, unsigned char *out, size_t room)
{
    struct tls_session *session = context;
    size_t size = tls_input_read(&session->input, out, room);
    return size ? (int)size : MBEDTLS_ERR_SSL_WANT_READ;
}

static int
transmit(void *context, const unsigned char *bytes, size_t size)
{
    struct tls_session *session = context;
    buffer_append(&session->output, bytes, size);
    return (int)size;
}

/* ---- life ---- */

static struct tls_session *
new_session(struct tls_context *context, const mbedtls_ssl_config *config)
{
    struct tls_session *session = memory_zeroed(sizeof *session);
    session->context = context;
    context->references++;
    session->peer.ca_path = context->ca_path;
    mbedtls_ssl_init(&session->ssl);
    if (mbedtls_ssl_setup(&session->ssl, config))
        memory_exhausted();
    mbedtls_ssl_set_verify(&session->ssl, small_peer_verify, &session->peer);
    mbedtls_ssl_set_bio(&session->ssl, session, transmit, receive, NULL);
    return session;
}

struct tls_session *
tls_session_new_server(struct tls_context *context)
{
    return new_session(context, &context->server);
}

/* Without a trailing dot, which RFC 6066 forbids. */
static void
set_sni(struct tls_session *session, const char *host)
{
    struct buffer name AUTO(buffer_clear) = {0};
    size_t size = host && !tls_is_address(host) ? strlen(host) : 0;
    if (size && host[size - 1] == '.')
        size--;
    if (size <= MBEDTLS_SSL_MAX_HOST_NAME_LEN)
        buffer_append(&name, host, size);
    if (mbedtls_ssl_set_hostname(&session->ssl, name.size ? buffer_text(&name) : NULL))
        memory_exhausted();
}

struct tls_session *
tls_session_new_client(struct tls_context *context, const char *expected_name, const char *sni_host)
{
    struct tls_session *session = new_session(context, &context->client);
    session->peer.expected_name = memory_string(expected_name);
    set_sni(session, sni_host);
    return session;
}

void
tls_session_free(struct tls_session *session)
{
    if (!session)
        return;
    mbedtls_ssl_free(&session->ssl);
    small_peer_clear(&session->peer);
    tls_input_clear(&session->input);
    buffer_clear(&session->output);
    small_context_release(session->context);
    free(session);
}

/* ---- errors ---- */

static struct error *
explain(const struct tls_session *session, int number)
{
    if (number == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
        return error_new(CODE_UNAVAILABLE,
                         "TLS: the peer ended the connection with an alert: does it accept our "
                         "certificate in \"%s\"?",
                         session->context->certificate_path);
    if (number == MBEDTLS_ERR_SSL_INVALID_RECORD)
        return small_failure("TLS (does the peer speak TLS?)", number);
    return small_failure("TLS", number);
}

static struct error *
fail(struct tls_session *session, int number)
{
    session->failed = true;
    tls_input_clear(&session->input);
    return session->peer.refusal ? STEAL(session->peer.refusal) : explain(session, number);
}

static struct error *
error_of_failed_session(void)
{
    return error_new(CODE_UNAVAILABLE, "the TLS session has already failed");
}

/* ---- the filter ---- */

struct error *
tls_session_feed(struct tls_session *session, const void *bytes, size_t size)
{
    if (session->failed)
        return error_of_failed_session();
    tls_input_feed(&session->input, bytes, size);
    return NULL;
}

static bool
wants_more(int number)
{
#ifdef MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET
    if (number == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
        return true;
#endif
    return number == MBEDTLS_ERR_SSL_WANT_READ || number == MBEDTLS_ERR_SSL_WANT_WRITE;
}

struct error *
tls_session_read(struct tls_session *session, void *out, size_t room, size_t *got, bool *closed)
{
    assert(room);
    *got = 0;
    *closed = false;
    if (session->failed)
        return error_of_failed_session();
    if (!session->established) {
        int result = mbedtls_ssl_handshake(&session->ssl);
        if (result)
            return wants_more(result) ? NULL : fail(session, result);
        session->established = true;
    }
    int result = session->peer_closed ? 0 : mbedtls_ssl_read(&session->ssl, out, room);
    if (result > 0)
        *got = (size_t)result;
    else if (!result || result == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
        *closed = session->peer_closed = true;
    else if (!wants_more(result))
        return fail(session, result);
    return NULL;
}

struct error *
tls_session_write(struct tls_session *session, const void *bytes, size_t size)
{
    assert(session->established);
    if (session->failed)
        return error_of_failed_session();
    if (session->shut_down && size)
        return error_new(CODE_UNAVAILABLE, "TLS: protocol is shutdown");
    for (size_t done = 0; done < size;) {
        int result = mbedtls_ssl_write(&session->ssl, (const uint8_t *)bytes + done, size - done);
        if (result < 0)
            return fail(session, result);
        done += (size_t)result;
    }
    return NULL;
}

void
tls_session_take(struct tls_session *session, struct buffer *out)
{
    buffer_append(out, session->output.bytes, session->output.size);
    buffer_clear(&session->output);
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
    mbedtls_ssl_close_notify(&session->ssl);
    session->shut_down = true;
}

size_t
tls_session_peer_names(const struct tls_session *session, const char *const **names)
{
    *names = (const char *const *)session->peer.names;
    return session->established ? session->peer.name_count : 0;
}

bool
tls_session_peer_is(const struct tls_session *session, const char *name)
{
    return session->established && small_peer_is(&session->peer, name);
}
