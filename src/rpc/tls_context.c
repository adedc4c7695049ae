/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates of mutual TLS: reading them, judging them before a peer does, reading again.
 *
 * A load makes a whole new SSL_CTX from all three files, or fails and leaves the old one; a swap is
 * then one pointer. Sessions hold the SSL_CTX they began with by OpenSSL's own count. The state of
 * a file is noted before it is read: if it changes in between, or the three are not of one
 * generation, the next reload sees another state and reads again.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "rpc/tls.h"
#include "rpc/tls_private.h"

#define FILE_LIMIT ((size_t)1 << 20)

static void
close_file(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void
free_bio(BIO **bio)
{
    BIO_free(*bio);
}

static void
free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

static void
free_certificates(STACK_OF(X509) * *certificates)
{
    sk_X509_pop_free(*certificates, X509_free);
}

static void
free_ssl_context(SSL_CTX **ssl_context)
{
    SSL_CTX_free(*ssl_context);
}

/* Nothing of a key stays in freed memory. */
static void
wipe_buffer(struct buffer *buffer)
{
    if (buffer->bytes)
        OPENSSL_cleanse(buffer->bytes, buffer->size);
    buffer_clear(buffer);
}

/* What OpenSSL says about its last failure; empties its queue. */
static const char *
take_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return reason ? reason : "no reason given";
}

static struct tls_file_state
look_at_file(const char *path)
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

/* Notes the file's state; says whether it differs from the one noted before. */
static bool
note_state(struct tls_file *file)
{
    struct tls_file_state before = file->tried;
    struct tls_file_state now = look_at_file(file->path);
    file->tried = now;
    return now.errnum != before.errnum || now.device != before.device ||
           now.inode != before.inode || now.size != before.size ||
           !is_same_time(now.modified, before.modified) ||
           !is_same_time(now.changed, before.changed);
}

/* Into one block that is never moved, so that wiping it wipes all. */
static struct error *
read_file(const char *path, struct buffer *out)
{
    int fd AUTO(close_file) = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return error_from_errno(errno, "cannot read \"%s\"", path);
    if (!S_ISREG(status.st_mode))
        return error_new(CODE_INVALID_ARGUMENT, "cannot read \"%s\": not a regular file", path);

    buffer_reserve(out, FILE_LIMIT + 1);
    while (out->size <= FILE_LIMIT) {
        ssize_t got = read(fd, out->bytes + out->size, FILE_LIMIT + 1 - out->size);
        if (got < 0 && errno != EINTR)
            return error_from_errno(errno, "cannot read \"%s\"", path);
        if (got == 0)
            return NULL;
        if (got > 0)
            out->size += (size_t)got;
    }
    return error_new(CODE_INVALID_ARGUMENT, "\"%s\" is larger than 1 MiB: not a PEM file", path);
}

static BIO *
open_memory(const struct buffer *bytes)
{
    BIO *bio = BIO_new_mem_buf(bytes->size ? (const void *)bytes->bytes : "", (int)bytes->size);
    if (!bio)
        memory_exhausted();
    return bio;
}

/* Instead of OpenSSL's own, which would ask at the terminal. */
static int
refuse_passphrase(char *out, int room, int writing, void *asked)
{
    (void)out, (void)room, (void)writing;
    *(bool *)asked = true;
    return -1;
}

/* All certificates of a file, at least one. */
static struct error *
load_certificates(const char *path, STACK_OF(X509) * *out)
{
    struct buffer bytes AUTO(wipe_buffer) = {0};
    struct error *error = read_file(path, &bytes);
    if (error)
        return error;

    BIO *bio AUTO(free_bio) = open_memory(&bytes);
    STACK_OF(X509) * certificates AUTO(free_certificates) = sk_X509_new_null();
    bool encrypted = false;
    X509 *certificate;
    while ((certificate = PEM_read_bio_X509(bio, NULL, refuse_passphrase, &encrypted)))
        if (!sk_X509_push(certificates, certificate))
            memory_exhausted();

    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return error_new(CODE_INVALID_ARGUMENT, "a certificate in \"%s\" is damaged: %s", path,
                         take_reason());
    ERR_clear_error();
    if (!sk_X509_num(certificates))
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"%s\" has no certificate in it; give a file in PEM form", path);
    *out = STEAL(certificates);
    return NULL;
}

static struct error *
load_key(const char *path, EVP_PKEY **out)
{
    struct buffer bytes AUTO(wipe_buffer) = {0};
    struct error *error = read_file(path, &bytes);
    if (error)
        return error;

    BIO *bio AUTO(free_bio) = open_memory(&bytes);
    bool encrypted = false;
    *out = PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, &encrypted);
    ERR_clear_error();
    if (*out)
        return NULL;
    if (encrypted)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the private key in \"%s\" is encrypted and nobody can be asked for the "
                         "passphrase; decrypt it with `openssl pkey`",
                         path);
    return error_new(CODE_INVALID_ARGUMENT,
                     "\"%s\" has no usable private key in it; give a file in PEM form", path);
}

static time_t
to_time(const ASN1_TIME *time)
{
    struct tm parts;
    return ASN1_TIME_to_tm(time, &parts) ? timegm(&parts) : 0;
}

static const char *
print_time(time_t time, char out[32])
{
    struct tm parts;
    strftime(out, 32, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&time, &parts));
    return out;
}

static bool
is_expired(const X509 *certificate)
{
    return time(NULL) > to_time(X509_get0_notAfter(certificate));
}

/* Leaves in `*valid_from` when a certificate that is too new becomes good. */
static struct error *
check_validity(const X509 *certificate, const char *path, time_t *valid_from)
{
    char text[32];
    if (is_expired(certificate))
        return error_new(CODE_FAILED_PRECONDITION,
                         "the certificate in \"%s\" expired at %s; put a new one there", path,
                         print_time(to_time(X509_get0_notAfter(certificate)), text));
    time_t begin = to_time(X509_get0_notBefore(certificate));
    if (time(NULL) >= begin)
        return NULL;
    *valid_from = begin;
    return error_new(CODE_FAILED_PRECONDITION,
                     "the certificate in \"%s\" is not valid before %s; wait or set the clock",
                     path, print_time(begin, text));
}

static struct error *
load_authorities(SSL_CTX *ssl_context, const char *path)
{
    STACK_OF(X509) * certificates AUTO(free_certificates) = NULL;
    struct error *error = load_certificates(path, &certificates);
    if (error)
        return error;

    bool any_good = false;
    for (int i = 0; i < sk_X509_num(certificates); i++) {
        X509 *certificate = sk_X509_value(certificates, i);
        any_good = any_good || !is_expired(certificate);
        if (!X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl_context), certificate))
            return error_new(CODE_INVALID_ARGUMENT,
                             "OpenSSL does not take a certificate in \"%s\": %s", path,
                             take_reason());
    }
    if (!any_good)
        return error_new(CODE_FAILED_PRECONDITION,
                         "every certificate in \"%s\" has expired; put the CA's new one there",
                         path);
    return NULL;
}

static struct error *
load_identity(SSL_CTX *ssl_context, struct tls_context *context)
{
    STACK_OF(X509) * chain AUTO(free_certificates) = NULL;
    struct error *error = load_certificates(context->certificate.path, &chain);
    if (error)
        return error;
    EVP_PKEY *key AUTO(free_key) = NULL;
    if ((error = load_key(context->key.path, &key)))
        return error_wrap(error, "cannot load the private key");

    X509 *own = sk_X509_value(chain, 0);
    if (!X509_check_private_key(own, key)) {
        ERR_clear_error();
        return error_new(CODE_FAILED_PRECONDITION,
                         "the private key in \"%s\" is not that of the certificate in \"%s\"; give "
                         "two that were made together",
                         context->key.path, context->certificate.path);
    }
    if ((error = check_validity(own, context->certificate.path, &context->valid_from)))
        return error;

    sk_X509_shift(chain);
    int taken = SSL_CTX_use_cert_and_key(ssl_context, own, key, chain, 1);
    X509_free(own);
    if (!taken)
        return error_new(CODE_INVALID_ARGUMENT,
                         "OpenSSL does not take the certificate in \"%s\": %s",
                         context->certificate.path, take_reason());
    return NULL;
}

static const unsigned char alpn_protocols[] = {2, 'h', '2'};

/* Asked only when the client offers protocols: "h2" must be among them. */
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

/* No tickets and no cache: what is resumed is not verified again and would outlive a new CA. */
static void
set_rules(SSL_CTX *ssl_context)
{
    SSL_CTX_set_min_proto_version(ssl_context, TLS1_2_VERSION);
    /* What HTTP/2 allows with TLS 1.2 (RFC 9113, 9.2.2). */
    SSL_CTX_set_cipher_list(ssl_context, "ECDHE+AESGCM:ECDHE+CHACHA20");
    SSL_CTX_set_options(ssl_context,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ssl_context, 0);
    SSL_CTX_set_session_cache_mode(ssl_context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ssl_context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(ssl_context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(ssl_context, tls_peer_verify, NULL);
    /* A CA file may hold a CA whose own issuer is elsewhere; other gRPC peers trust it too. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ssl_context), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_alpn_protos(ssl_context, alpn_protocols, sizeof alpn_protocols);
    SSL_CTX_set_alpn_select_cb(ssl_context, select_protocol, NULL);
}

/* Puts what the files hold in force. */
static struct error *
load(struct tls_context *context)
{
    ERR_clear_error();
    context->valid_from = 0;
    SSL_CTX *ssl_context AUTO(free_ssl_context) = SSL_CTX_new(TLS_method());
    if (!ssl_context)
        return error_new(CODE_INTERNAL, "OpenSSL does not start: %s", take_reason());
    set_rules(ssl_context);
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
note_states(struct tls_context *context)
{
    bool ca = note_state(&context->ca);
    bool certificate = note_state(&context->certificate);
    bool key = note_state(&context->key);
    return ca || certificate || key;
}

struct error *
tls_context_open(const struct tls_options *options, struct tls_context **out)
{
    struct tls_context *context = memory_zeroed(sizeof *context);
    context->users = 1;
    context->ca.path = memory_string(options->ca_file);
    context->certificate.path = memory_string(options->certificate_file);
    context->key.path = memory_string(options->key_file);
    note_states(context);

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
    if (!note_states(context) && !due)
        return NULL;
    struct error *error = load(context);
    *changed = !error;
    return error_wrap(error, "the certificates in force stay");
}

void
tls_context_release(struct tls_context *context)
{
    if (--context->users)
        return;
    SSL_CTX_free(context->ssl_context);
    free(context->ca.path);
    free(context->certificate.path);
    free(context->key.path);
    free(context);
}

void
tls_context_close(struct tls_context *context)
{
    if (context)
        tls_context_release(context);
}
