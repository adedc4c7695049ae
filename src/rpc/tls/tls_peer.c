/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verifies a peer's certificate during the handshake.
 *
 * At this point OpenSSL can still turn a refusal into an alert that tells the peer why. So the name
 * is checked here too.
 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "rpc/tls/tls_private.h"
#include "rpc/tls/tls_shared.h"

bool
tls_peer_is(const struct tls_peer *peer, const char *name)
{
    return tls_has_name(peer->names.items, peer->names.count, name);
}

void
tls_peer_clear(struct tls_peer *peer)
{
    certificate_names_clear(&peer->names);
    free(peer->expected_name);
    error_free(peer->refusal);
    *peer = (struct tls_peer){0};
}

static struct error *
name_refusal(const struct tls_peer *peer)
{
    struct buffer list AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < peer->names.count; i++) {
        if (list.size > 200) {
            buffer_append_text(&list, ", ...");
            break;
        }
        buffer_print(&list, "%s%.200s", i ? ", " : "", peer->names.items[i]);
    }
    return error_new(CODE_UNAVAILABLE, "peer presented the name(s) \"%s\" but \"%s\" was expected",
                     buffer_text(&list), peer->expected_name);
}

/* Advice; the name of the CA file follows. */
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

/* Returns the error number that makes OpenSSL send the appropriate alert. */
static int
verify(X509_STORE_CTX *store, struct tls_peer *peer)
{
    if (X509_verify_cert(store) <= 0) {
        peer->refusal = chain_refusal(store, peer);
        int verify_error = X509_STORE_CTX_get_error(store);
        /* Another CA of the same name: the alert for a bad signature would be misleading. */
        if (verify_error == X509_V_ERR_CERT_SIGNATURE_FAILURE)
            return X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
        return verify_error != X509_V_OK ? verify_error : X509_V_ERR_UNSPECIFIED;
    }
    certificate_names_add(&peer->names, X509_STORE_CTX_get0_cert(store));
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
    int verify_error = verify(store, SSL_get_app_data(ssl));
    X509_STORE_CTX_set_error(store, verify_error);
    return verify_error == X509_V_OK;
}
