/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of a certificate: see pki.h. */
#include <openssl/bn.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "pki/pem.h"
#include "pki/pki.h"

static char *
issuer_of(const X509 *certificate)
{
    BIO *bio AUTO(pem_free_bio) = BIO_new(BIO_s_mem());
    if (!bio || X509_NAME_print_ex(bio, X509_get_issuer_name(certificate), 0, XN_FLAG_RFC2253) < 0)
        memory_exhausted();
    char *bytes;
    long size = BIO_get_mem_data(bio, &bytes);
    char *text = memory_zeroed((size_t)size + 1);
    memcpy(text, bytes, (size_t)size);
    return text;
}

static char *
serial_of(const X509 *certificate)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *digits = number ? BN_bn2hex(number) : NULL;
    if (!digits)
        memory_exhausted();
    char *text = memory_string(digits);
    OPENSSL_free(digits);
    BN_free(number);
    return text;
}

struct error *
pki_read_certificate(const char *path, struct pki_certificate *out)
{
    STACK_OF(X509) * certificates AUTO(pem_free_certificates) = NULL;
    struct error *error = pem_load_certificates(path, &certificates);
    if (error)
        return error;
    X509 *certificate = sk_X509_value(certificates, 0);
    certificate_names_add(&out->names, certificate);
    out->issuer = issuer_of(certificate);
    out->serial = serial_of(certificate);
    out->is_authority = X509_check_ca(certificate) == 1;
    out->valid_from = pem_read_time(X509_get0_notBefore(certificate));
    out->valid_until = pem_read_time(X509_get0_notAfter(certificate));
    return NULL;
}

void
pki_clear_certificate(struct pki_certificate *certificate)
{
    certificate_names_clear(&certificate->names);
    free(certificate->issuer);
    free(certificate->serial);
    *certificate = (struct pki_certificate){0};
}
