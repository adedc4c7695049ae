/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end: the judgement on a peer's certificate, in the middle of the handshake.
 *
 * This is the point where OpenSSL still turns a "no" into an alert that tells the peer why, so the
 * name is compared here too.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "rpc/tls/tls_private.h"

/* Each once. Leaves out what C text cannot hold: a name with a NUL in it is a trick. */
static void
add_name(struct tls_peer *peer, const unsigned char *bytes, int size)
{
    if (size <= 0 || memchr(bytes, '\0', (size_t)size))
        return;
    char *name AUTO(memory_cleanup) = memory_zeroed((size_t)size + 1);
    memcpy(name, bytes, (size_t)size);
    for (size_t i = 0; i < peer->name_count; i++)
        if (!strcmp(peer->names[i], name))
            return;
    peer->names = memory_resize(peer->names, (peer->name_count + 1) * sizeof *peer->names);
    peer->names[peer->name_count++] = STEAL(name);
}

static void
add_address(struct tls_peer *peer, const ASN1_OCTET_STRING *address)
{
    char text[INET6_ADDRSTRLEN];
    int size = ASN1_STRING_length(address);
    if (size != 4 && size != 16)
        return;
    inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text, sizeof text);
    add_name(peer, (const unsigned char *)text, (int)strlen(text));
}

/* With several common names it is not sure which of them the CA looked at: none counts. */
static void
add_common_name(struct tls_peer *peer, const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (place < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, place) >= 0)
        return;
    unsigned char *text = NULL;
    int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)));
    add_name(peer, text, size);
    OPENSSL_free(text);
}

void
tls_peer_collect_names(struct tls_peer *peer, const X509 *certificate)
{
    add_common_name(peer, certificate);
    GENERAL_NAMES *alternatives = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(alternatives); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(alternatives, i);
        if (name->type == GEN_DNS)
            add_name(peer, ASN1_STRING_get0_data(name->d.dNSName),
                     ASN1_STRING_length(name->d.dNSName));
        else if (name->type == GEN_IPADD)
            add_address(peer, name->d.iPAddress);
    }
    GENERAL_NAMES_free(alternatives);
}

bool
tls_peer_is(const struct tls_peer *peer, const char *name)
{
    struct in6_addr address;
    char canonical[INET6_ADDRSTRLEN];
    if (inet_pton(AF_INET6, name, &address) == 1)
        name = inet_ntop(AF_INET6, &address, canonical, sizeof canonical);
    for (size_t i = 0; i < peer->name_count; i++)
        if (!strcmp(peer->names[i], name))
            return true;
    return false;
}

void
tls_peer_clear(struct tls_peer *peer)
{
    for (size_t i = 0; i < peer->name_count; i++)
        free(peer->names[i]);
    free(peer->names);
    free(peer->expected_name);
    error_free(peer->refusal);
    *peer = (struct tls_peer){0};
}

static struct error *
name_refusal(const struct tls_peer *peer)
{
    struct buffer list AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < peer->name_count; i++) {
        if (list.size > 200) {
            buffer_append_text(&list, ", ...");
            break;
        }
        buffer_print(&list, "%s%.200s", i ? ", " : "", peer->names[i]);
    }
    return error_new(CODE_UNAVAILABLE, "peer presented the name(s) \"%s\" but \"%s\" was expected",
                     buffer_text(&list), peer->expected_name);
}

/* What to look at; the name of the CA file follows. */
static const char *
explain(int verify_error)
{
    switch (verify_error) {
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return "the peer's certificate is not signed by the CA in";
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "renew it; the CA is in";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "compare the clocks of both machines; the CA is in";
    case X509_V_ERR_INVALID_PURPOSE:
        return "the peer's certificate needs the extended key usage for its role; the CA is in";
    default:
        return "the CA is in";
    }
}

static struct error *
chain_refusal(X509_STORE_CTX *store, const struct tls_peer *peer)
{
    char subject[200] = "unknown";
    int verify_error = X509_STORE_CTX_get_error(store);
    X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    if (certificate)
        X509_NAME_oneline(X509_get_subject_name(certificate), subject, sizeof subject);
    return error_new(CODE_UNAVAILABLE, "certificate verify failed: %s: %s (%s \"%s\")",
                     X509_verify_cert_error_string(verify_error), subject, explain(verify_error),
                     peer->ca_file);
}

/* Gives the error number that makes OpenSSL send the fitting alert. */
static int
judge(X509_STORE_CTX *store, struct tls_peer *peer)
{
    if (X509_verify_cert(store) <= 0) {
        peer->refusal = chain_refusal(store, peer);
        int verify_error = X509_STORE_CTX_get_error(store);
        /* Another CA of the same name; the alert for a bad signature would not say so. */
        if (verify_error == X509_V_ERR_CERT_SIGNATURE_FAILURE)
            return X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
        return verify_error != X509_V_OK ? verify_error : X509_V_ERR_UNSPECIFIED;
    }
    tls_peer_collect_names(peer, X509_STORE_CTX_get0_cert(store));
    if (!peer->expected_name || tls_peer_is(peer, peer->expected_name))
        return X509_V_OK;
    peer->refusal = name_refusal(peer);
    return X509_V_ERR_HOSTNAME_MISMATCH;
}

int
tls_peer_verify(X509_STORE_CTX *store, void *unused)
{
    (void)unused;
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    int verify_error = judge(store, SSL_get_app_data(ssl));
    X509_STORE_CTX_set_error(store, verify_error);
    return verify_error == X509_V_OK;
}
