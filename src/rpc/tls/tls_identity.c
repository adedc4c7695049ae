/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate for one connection: see tls_identity.h. */
#include "rpc/tls/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "pki/pem.h"

#define NAME "localhost"
/* The clock of the peer may be behind. */
#define BACKDATE_S 30
#define VALID_S (30L * 365 * 24 * 60 * 60)

static void
free_certificate(X509 **certificate)
{
    X509_free(*certificate);
}

static struct error *
failure(void)
{
    return error_new(CODE_INTERNAL, "OpenSSL cannot make a certificate: %s", pem_take_reason());
}

static bool
add_extension(X509 *certificate, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    bool is_added = extension && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return is_added;
}

static bool
fill(X509 *certificate, EVP_PKEY *key)
{
    uint64_t serial;
    X509_NAME *name = X509_get_subject_name(certificate);
    return RAND_bytes((unsigned char *)&serial, sizeof serial) == 1 &&
           X509_set_version(certificate, X509_VERSION_3) &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -BACKDATE_S) &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), VALID_S) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)NAME, -1, -1,
                                      0) &&
           X509_set_issuer_name(certificate, name) && X509_set_pubkey(certificate, key) &&
           add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
           add_extension(certificate, NID_key_usage,
                         "critical,digitalSignature,keyAgreement,keyCertSign") &&
           add_extension(certificate, NID_ext_key_usage, "serverAuth,clientAuth") &&
           add_extension(certificate, NID_subject_alt_name, "DNS:" NAME) &&
           X509_sign(certificate, key, EVP_sha256());
}

static void
take_bytes(BIO *bio, struct buffer *out)
{
    char *bytes;
    long size = BIO_get_mem_data(bio, &bytes);
    buffer_append(out, bytes, (size_t)size);
}

static bool
print(X509 *certificate, EVP_PKEY *key, struct tls_identity *out)
{
    BIO *pem AUTO(pem_free_bio) = BIO_new(BIO_s_mem());
    BIO *der AUTO(pem_free_bio) = BIO_new(BIO_s_mem());
    BIO *private AUTO(pem_free_bio) = BIO_new(BIO_s_secmem());
    if (!pem || !der || !private || !PEM_write_bio_X509(pem, certificate) ||
        !i2d_X509_bio(der, certificate) ||
        !PEM_write_bio_PrivateKey(private, key, NULL, NULL, 0, NULL, NULL))
        return false;
    take_bytes(pem, &out->certificate);
    take_bytes(der, &out->der);
    take_bytes(private, &out->key);
    return true;
}

struct error *
tls_identity_make(struct tls_identity *out)
{
    EVP_PKEY *key AUTO(pem_free_key) = EVP_EC_gen("P-256");
    X509 *certificate AUTO(free_certificate) = X509_new();
    if (!key || !certificate || !fill(certificate, key) || !print(certificate, key, out))
        return failure();
    return NULL;
}

void
tls_identity_clear(struct tls_identity *identity)
{
    buffer_clear(&identity->certificate);
    buffer_clear(&identity->der);
    pem_wipe_buffer(&identity->key);
}
