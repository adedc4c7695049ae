/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of mutual TLS, with mbedTLS: see small_private.h. */
#include <mbedtls/error.h>
#include <mbedtls/platform_util.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "rpc/tls/small_private.h"
#include "rpc/tls/tls.h"

#define FILE_LIMIT ((size_t)1 << 20)

/* The cipher suites that HTTP/2 allows with TLS 1.2, and those of TLS 1.3. */
static const int cipher_suites[] = {
#if MBEDTLS_VERSION_MAJOR >= 3
    MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
    MBEDTLS_TLS1_3_AES_128_GCM_SHA256,
#endif
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    0,
};

static const char *alpn_protocols[] = {"h2", NULL};

struct error *
small_failure(const char *what, int number)
{
    char text[160];
    mbedtls_strerror(number, text, sizeof text);
    return error_new(CODE_UNAVAILABLE, "%s: %s", what, text);
}

struct error *
small_random_open(struct small_random *random)
{
    mbedtls_entropy_init(&random->entropy);
    mbedtls_ctr_drbg_init(&random->generator);
    int failed =
        mbedtls_ctr_drbg_seed(&random->generator, mbedtls_entropy_func, &random->entropy, NULL, 0);
    return failed ? small_failure("random numbers", failed) : NULL;
}

void
small_random_close(struct small_random *random)
{
    mbedtls_ctr_drbg_free(&random->generator);
    mbedtls_entropy_free(&random->entropy);
}

/* ---- files ---- */

static void
wipe(struct buffer *buffer)
{
    if (buffer->bytes)
        mbedtls_platform_zeroize(buffer->bytes, buffer->size);
    buffer_clear(buffer);
}

/* With a NUL at the end, which mbedTLS wants for PEM; there is room for it. */
static struct error *
read_file(const char *path, struct buffer *out)
{
    struct error *error = files_read_all(path, FILE_LIMIT, out);
    if (!error)
        buffer_append_byte(out, '\0');
    return error;
}

static struct error *
load_certificates(const char *path, mbedtls_x509_crt *out)
{
    struct buffer pem AUTO(wipe) = {0};
    struct error *error = read_file(path, &pem);
    if (error)
        return error;
    int failed = mbedtls_x509_crt_parse(out, pem.bytes, pem.size);
    if (!failed)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "\"%s\" contains no usable certificate; use a file in PEM format", path);
}

static int
parse_key(struct tls_context *context, const struct buffer *pem)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_parse_key(&context->key, pem->bytes, pem->size, NULL, 0,
                                mbedtls_ctr_drbg_random, &context->random.generator);
#else
    return mbedtls_pk_parse_key(&context->key, pem->bytes, pem->size, NULL, 0);
#endif
}

static int
compare_key(struct tls_context *context)
{
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_check_pair(&context->certificate.pk, &context->key, mbedtls_ctr_drbg_random,
                                 &context->random.generator);
#else
    return mbedtls_pk_check_pair(&context->certificate.pk, &context->key);
#endif
}

static struct error *
load_key(struct tls_context *context, const char *path)
{
    struct buffer pem AUTO(wipe) = {0};
    struct error *error = read_file(path, &pem);
    if (error)
        return error_wrap(error, "cannot load the private key");
    if (parse_key(context, &pem))
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"%s\" contains no usable private key; use a file in PEM format that is "
                         "not encrypted",
                         path);
    if (compare_key(context))
        return error_new(CODE_FAILED_PRECONDITION,
                         "the private key in \"%s\" does not match the certificate in \"%s\"; use "
                         "a pair that was issued together",
                         path, context->certificate_path);
    return NULL;
}

static struct error *
check_validity(const struct tls_context *context)
{
    if (!mbedtls_x509_time_is_past(&context->certificate.valid_to))
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION, "the certificate in \"%s\" has expired: renew it",
                     context->certificate_path);
}

/* ---- configuration ---- */

static struct error *
configure(struct tls_context *context, mbedtls_ssl_config *config, int end)
{
    mbedtls_ssl_config_init(config);
    int failed = mbedtls_ssl_config_defaults(config, end, MBEDTLS_SSL_TRANSPORT_STREAM,
                                             MBEDTLS_SSL_PRESET_DEFAULT);
    if (!failed)
        failed = mbedtls_ssl_conf_own_cert(config, &context->certificate, &context->key);
    if (!failed)
        failed = mbedtls_ssl_conf_alpn_protocols(config, alpn_protocols);
    if (failed)
        return small_failure("cannot configure TLS", failed);
    mbedtls_ssl_conf_min_version(config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
    mbedtls_ssl_conf_ciphersuites(config, cipher_suites);
    mbedtls_ssl_conf_rng(config, mbedtls_ctr_drbg_random, &context->random.generator);
    mbedtls_ssl_conf_ca_chain(config, &context->ca, NULL);
    mbedtls_ssl_conf_authmode(config, MBEDTLS_SSL_VERIFY_REQUIRED);
    mbedtls_ssl_conf_session_tickets(config, MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
    return NULL;
}

static struct error *
load(struct tls_context *context, const struct tls_options *options)
{
    struct error *error = small_random_open(&context->random);
    if (error)
        return error;
    error = load_certificates(options->ca_file, &context->ca);
    if (error)
        return error_wrap(error, "cannot load the CA");
    error = load_certificates(options->certificate_file, &context->certificate);
    if (!error)
        error = load_key(context, options->key_file);
    if (!error)
        error = check_validity(context);
    if (!error)
        error = configure(context, &context->server, MBEDTLS_SSL_IS_SERVER);
    if (!error)
        error = configure(context, &context->client, MBEDTLS_SSL_IS_CLIENT);
    return error_wrap(error, "cannot load our certificate");
}

struct error *
tls_context_open(const struct tls_options *options, struct tls_context **out)
{
    struct tls_context *context = memory_zeroed(sizeof *context);
    context->references = 1;
    context->ca_path = memory_string(options->ca_file);
    context->certificate_path = memory_string(options->certificate_file);
    mbedtls_x509_crt_init(&context->ca);
    mbedtls_x509_crt_init(&context->certificate);
    mbedtls_pk_init(&context->key);
    struct error *error = load(context, options);
    if (error)
        small_context_release(context);
    else
        *out = context;
    return error;
}

struct error *
tls_context_reload(struct tls_context *context, bool *changed)
{
    (void)context;
    *changed = false;
    return error_new(CODE_UNIMPLEMENTED, "this program does not reload certificates");
}

/* Programs with mbedTLS have no metrics. */
int64_t
tls_context_valid_until(const struct tls_context *context)
{
    (void)context;
    return 0;
}

void
small_context_release(struct tls_context *context)
{
    if (--context->references)
        return;
    mbedtls_ssl_config_free(&context->server);
    mbedtls_ssl_config_free(&context->client);
    mbedtls_pk_free(&context->key);
    mbedtls_x509_crt_free(&context->certificate);
    mbedtls_x509_crt_free(&context->ca);
    small_random_close(&context->random);
    free(context->ca_path);
    free(context->certificate_path);
    free(context);
}

void
tls_context_close(struct tls_context *context)
{
    if (context)
        small_context_release(context);
}
