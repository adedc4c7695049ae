/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates of mutual TLS: loading, checking and reloading.
 *
 * Loading builds a new SSL_CTX from all three files, or fails and keeps the old one; replacing it
 * is one pointer assignment. Sessions hold a reference to the SSL_CTX they began with. The state of
 * a file is recorded before it is read: if it changes in between, or the three files do not belong
 * together, the next reload sees a different state and reads them again.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "pki/pem.h"
#include "rpc/tls/tls.h"
#include "rpc/tls/tls_private.h"

static void
free_ssl_context(SSL_CTX **ssl_context)
{
    SSL_CTX_free(*ssl_context);
}

static struct tls_file_state
read_file_state(const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return (struct tls_file_state){.errnum = errno};
    return (struct tls_file_state){
        .device = status.st_dev,
        .inode = status.st_ino,
        .size = status.st_size,
        .modified = status.st_mtim,
        .changed = status.st_ctim,
    };
}

static bool
is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Records the file's state. Returns true if it differs from the last one recorded. */
static bool
record_state(struct tls_file *file)
{
    struct tls_file_state before = file->tried;
    struct tls_file_state now = read_file_state(file->path);
    file->tried = now;
    return now.errnum != before.errnum || now.device != before.device ||
           now.inode != before.inode || now.size != before.size ||
           !is_same_time(now.modified, before.modified) ||
           !is_same_time(now.changed, before.changed);
}

static bool
is_expired(const X509 *certificate)
{
    return time(NULL) > pem_read_time(X509_get0_notAfter(certificate));
}

/* Sets `*valid_from` to the time at which a certificate that is not valid yet becomes valid. */
static struct error *
check_validity(const X509 *certificate, const char *path, time_t *valid_from)
{
    char text[32];
    if (is_expired(certificate))
        return error_new(CODE_FAILED_PRECONDITION,
                         "the certificate in \"%s\" expired at %s; replace it", path,
                         pem_print_time(pem_read_time(X509_get0_notAfter(certificate)), text));
    time_t begin = pem_read_time(X509_get0_notBefore(certificate));
    if (time(NULL) >= begin)
        return NULL;
    *valid_from = begin;
    return error_new(CODE_FAILED_PRECONDITION,
                     "the certificate in \"%s\" is not valid before %s; wait, or correct the clock",
                     path, pem_print_time(begin, text));
}

static struct error *
load_authorities(SSL_CTX *ssl_context, const char *path)
{
    STACK_OF(X509) * certificates AUTO(pem_free_certificates) = NULL;
    struct error *error = pem_load_certificates(path, &certificates);
    if (error)
        return error;

    bool any_good = false;
    for (int i = 0; i < sk_X509_num(certificates); i++) {
        X509 *certificate = sk_X509_value(certificates, i);
        any_good = any_good || !is_expired(certificate);
        if (!X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl_context), certificate))
            return error_new(CODE_INVALID_ARGUMENT, "OpenSSL refuses a certificate in \"%s\": %s",
                             path, pem_take_reason());
    }
    if (!any_good)
        return error_new(
            CODE_FAILED_PRECONDITION,
            "every certificate in \"%s\" has expired; replace them with the CA's new one", path);
    return NULL;
}

static struct error *
load_identity(SSL_CTX *ssl_context, struct tls_context *context)
{
    STACK_OF(X509) * chain AUTO(pem_free_certificates) = NULL;
    struct error *error = pem_load_certificates(context->certificate.path, &chain);
    if (error)
        return error;
    EVP_PKEY *key AUTO(pem_free_key) = NULL;
    if ((error = pem_load_key(context->key.path, &key)))
        return error_wrap(error, "cannot load the private key");

    X509 *own = sk_X509_value(chain, 0);
    if (!X509_check_private_key(own, key)) {
        ERR_clear_error();
        return error_new(CODE_FAILED_PRECONDITION,
                         "the private key in \"%s\" does not match the certificate in \"%s\"; use "
                         "a pair that was issued together",
                         context->key.path, context->certificate.path);
    }
    if ((error = check_validity(own, context->certificate.path, &context->valid_from)))
        return error;

    sk_X509_shift(chain);
    int taken = SSL_CTX_use_cert_and_key(ssl_context, own, key, chain, 1);
    X509_free(own);
    if (!taken)
        return error_new(CODE_INVALID_ARGUMENT, "OpenSSL refuses the certificate in \"%s\": %s",
                         context->certificate.path, pem_take_reason());
    return NULL;
}

static const unsigned char alpn_protocols[] = {2, 'h', '2'};

/* Called only if the client uses ALPN: "h2" must be among its protocols. */
static int
select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                const unsigned char *offered, unsigned offered_size, void *unused)
{
    (void)ssl, (void)unused;
    unsigned char *selected;
    if (SSL_select_next_proto(&selected, out_size, alpn_protocols, sizeof alpn_protocols, offered,
                              offered_size) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = selected;
    return SSL_TLSEXT_ERR_OK;
}

/* No tickets and no cache: a resumed session is not verified again and would survive a new CA. */
static void
configure(SSL_CTX *ssl_context)
{
    SSL_CTX_set_min_proto_version(ssl_context, TLS1_2_VERSION);
    /* The cipher suites that HTTP/2 allows with TLS 1.2 (RFC 9113, 9.2.2). */
    SSL_CTX_set_cipher_list(ssl_context, "ECDHE+AESGCM:ECDHE+CHACHA20");
    SSL_CTX_set_options(ssl_context,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ssl_context, 0);
    SSL_CTX_set_session_cache_mode(ssl_context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ssl_context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ssl_context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(ssl_context, tls_peer_verify, NULL);
    /*
     * A CA file may contain an intermediate CA without its issuer; other gRPC peers trust it too.
     */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ssl_context), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_alpn_protos(ssl_context, alpn_protocols, sizeof alpn_protocols);
    SSL_CTX_set_alpn_select_cb(ssl_context, select_protocol, NULL);
}

/* Loads the files and puts them in use. */
static struct error *
load(struct tls_context *context)
{
    ERR_clear_error();
    context->valid_from = 0;
    SSL_CTX *ssl_context AUTO(free_ssl_context) = SSL_CTX_new(TLS_method());
    if (!ssl_context)
        return error_new(CODE_INTERNAL, "cannot initialize OpenSSL: %s", pem_take_reason());
    configure(ssl_context);
    struct error *error = load_authorities(ssl_context, context->ca.path);
    if (error)
        return error_wrap(error, "cannot load the CA");
    error = load_identity(ssl_context, context);
    if (error)
        return error_wrap(error, "cannot load our certificate");

    SSL_CTX_free(context->ssl_context);
    context->ssl_context = STEAL(ssl_context);
    return NULL;
}

static bool
record_states(struct tls_context *context)
{
    bool ca = record_state(&context->ca);
    bool certificate = record_state(&context->certificate);
    bool key = record_state(&context->key);
    return ca || certificate || key;
}

struct error *
tls_context_open(const struct tls_options *options, struct tls_context **out)
{
    struct tls_context *context = memory_zeroed(sizeof *context);
    context->references = 1;
    context->ca.path = memory_string(options->ca_file);
    context->certificate.path = memory_string(options->certificate_file);
    context->key.path = memory_string(options->key_file);
    record_states(context);

    struct error *error = load(context);
    if (error)
        tls_context_release(context);
    else
        *out = context;
    return error;
}

struct error *
tls_context_reload(struct tls_context *context, bool *changed)
{
    *changed = false;
    bool due = context->valid_from && time(NULL) >= context->valid_from;
    if (!record_states(context) && !due)
        return NULL;
    struct error *error = load(context);
    *changed = !error;
    return error_wrap(error, "the old certificates stay in use");
}

void
tls_context_release(struct tls_context *context)
{
    if (--context->references)
        return;
    SSL_CTX_free(context->ssl_context);
    free(context->ca.path);
    free(context->certificate.path);
    free(context->key.path);
    free(context);
}

int64_t
tls_context_valid_until(const struct tls_context *context)
{
    const X509 *certificate = SSL_CTX_get0_certificate(context->ssl_context);
    return certificate ? (int64_t)pem_read_time(X509_get0_notAfter(certificate)) : 0;
}

void
tls_context_close(struct tls_context *context)
{
    if (context)
        tls_context_release(context);
}
