/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of both implementations of rpc/tls/tls_identity.h. */
#ifndef UNIT_TLS_IDENTITY_CHECKS_H
#define UNIT_TLS_IDENTITY_CHECKS_H

#include "rpc/tls/tls_identity.h"
#include "tls_ends.h"

static inline void
save_identity(const char *name, struct tls_identity *identity)
{
    char file[64];
    snprintf(file, sizeof file, "%s.crt", name);
    save_text(file, buffer_text(&identity->certificate));
    snprintf(file, sizeof file, "%s.key", name);
    save_text(file, buffer_text(&identity->key));
}

/* The DER is the certificate in the PEM file, signed by itself. */
static inline void
check_certificate(const struct tls_identity *identity)
{
    const unsigned char *at = identity->der.bytes;
    X509 *certificate = d2i_X509(NULL, &at, (long)identity->der.size);
    CHECK(certificate && at == identity->der.bytes + identity->der.size);
    BIO *pem = BIO_new_mem_buf(identity->certificate.bytes, (int)identity->certificate.size);
    X509 *same = PEM_read_bio_X509(pem, NULL, NULL, NULL);
    CHECK(same && certificate && X509_cmp(same, certificate) == 0);
    CHECK(X509_verify(certificate, X509_get0_pubkey(certificate)) == 1);
    CHECK(X509_check_host(certificate, "localhost", 0, 0, NULL) == 1);
    CHECK(X509_check_ca(certificate) == 1);
    CHECK(X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0);
    time_t much_later = time(NULL) + 20L * 365 * DAY;
    CHECK(X509_cmp_time(X509_get0_notAfter(certificate), &much_later) > 0);
    X509_free(same);
    X509_free(certificate);
    BIO_free(pem);
}

/* Each side trusts just the certificate of the other. */
static inline void
an_identity_is_trusted_by_who_knows_it(void)
{
    struct tls_identity one AUTO(tls_identity_clear) = {0}, other AUTO(tls_identity_clear) = {0};
    CHECK(!tls_identity_make(&one) && !tls_identity_make(&other));
    CHECK(one.der.size != other.der.size ||
          memcmp(one.der.bytes, other.der.bytes, one.der.size) != 0);
    check_certificate(&one);
    save_identity("one", &one);
    save_identity("other", &other);
    for (int is_known = 0; is_known < 2; is_known++) {
        struct end server = our_server(is_known ? "other.crt" : "one.crt", "one");
        struct end client = our_client("one.crt", "other", "localhost");
        talk(&client, &server, 1000);
        CHECK_NUMBER(both_established(&client, &server) && !server.error, is_known);
        if (is_known)
            check_greeting(&client, &server);
        end_clear(&client);
        end_clear(&server);
    }
}

#endif
