/* SPDX-License-Identifier: Apache-2.0 */
/* Reading PEM files: see pem.h. */
#include "pki/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/files.h"
#include "base/memory.h"

#define FILE_LIMIT ((size_t)1 << 20)

void
pem_free_bio(BIO **bio)
{
    BIO_free(*bio);
}

void
pem_free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

void
pem_free_certificates(STACK_OF(X509) * *certificates)
{
    sk_X509_pop_free(*certificates, X509_free);
}

void
pem_wipe_buffer(struct buffer *buffer)
{
    if (buffer->bytes)
        OPENSSL_cleanse(buffer->bytes, buffer->size);
    buffer_clear(buffer);
}

const char *
pem_take_reason(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return reason ? reason : "no reason given";
}

static struct error *
read_file(const char *path, struct buffer *out)
{
    struct error *error = files_read_all(path, FILE_LIMIT, out);
    if (error && error->code == CODE_OUT_OF_RANGE) {
        error_free(error);
        return error_new(CODE_INVALID_ARGUMENT, "\"%s\" is larger than 1 MiB: not a PEM file",
                         path);
    }
    return error;
}

static BIO *
open_memory(const struct buffer *bytes)
{
    BIO *bio = BIO_new_mem_buf(bytes->size ? (const void *)bytes->bytes : "", (int)bytes->size);
    if (!bio)
        memory_exhausted();
    return bio;
}

/* Replaces OpenSSL's callback, which would prompt on the terminal. */
static int
refuse_passphrase(char *out, int room, int writing, void *asked)
{
    (void)out, (void)room, (void)writing;
    *(bool *)asked = true;
    return -1;
}

struct error *
pem_load_certificates(const char *path, STACK_OF(X509) * *out)
{
    struct buffer bytes AUTO(pem_wipe_buffer) = {0};
    struct error *error = read_file(path, &bytes);
    if (error)
        return error;

    BIO *bio AUTO(pem_free_bio) = open_memory(&bytes);
    STACK_OF(X509) * certificates AUTO(pem_free_certificates) = sk_X509_new_null();
    bool encrypted = false;
    X509 *certificate;
    while ((certificate = PEM_read_bio_X509(bio, NULL, refuse_passphrase, &encrypted)))
        if (!sk_X509_push(certificates, certificate))
            memory_exhausted();

    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return error_new(CODE_INVALID_ARGUMENT, "a certificate in \"%s\" is damaged: %s", path,
                         pem_take_reason());
    ERR_clear_error();
    if (!sk_X509_num(certificates))
        return error_new(CODE_INVALID_ARGUMENT,
                         "\"%s\" contains no certificate; use a file in PEM format", path);
    *out = STEAL(certificates);
    return NULL;
}

struct error *
pem_load_key(const char *path, EVP_PKEY **out)
{
    struct buffer bytes AUTO(pem_wipe_buffer) = {0};
    struct error *error = read_file(path, &bytes);
    if (error)
        return error;

    BIO *bio AUTO(pem_free_bio) = open_memory(&bytes);
    bool encrypted = false;
    *out = PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, &encrypted);
    ERR_clear_error();
    if (*out)
        return NULL;
    if (encrypted)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the private key in \"%s\" is encrypted, and there is no passphrase "
                         "prompt; decrypt it with `openssl pkey`",
                         path);
    return error_new(CODE_INVALID_ARGUMENT,
                     "\"%s\" contains no usable private key; use a file in PEM format", path);
}

time_t
pem_read_time(const ASN1_TIME *time)
{
    struct tm parts;
    return ASN1_TIME_to_tm(time, &parts) ? timegm(&parts) : 0;
}

const char *
pem_print_time(time_t time, char out[32])
{
    struct tm parts;
    strftime(out, 32, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&time, &parts));
    return out;
}
