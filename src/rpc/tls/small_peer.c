/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies a peer's certificate during the handshake, with mbedTLS: see small_private.h. */
#include <arpa/inet.h>
#include <mbedtls/oid.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "rpc/tls/small_private.h"
#include "rpc/tls/tls_shared.h"

#define NAME_LIMIT 1024 /* of one certificate */

/* The tags of alternative names (RFC 5280, GeneralName). */
#define TAG_DNS 0x82
#define TAG_IP 0x87

bool
small_peer_is(const struct small_peer *peer, const char *name)
{
    return tls_has_name(peer->names, peer->name_count, name);
}

void
small_peer_clear(struct small_peer *peer)
{
    for (size_t i = 0; i < peer->name_count; i++)
        free(peer->names[i]);
    free(peer->names);
    free(peer->expected_name);
    error_free(peer->refusal);
    *peer = (struct small_peer){0};
}

/* ---- names ---- */

/* Ignores names with a NUL or a control character, and those that are there already. */
static void
add_name(struct small_peer *peer, const unsigned char *bytes, size_t size)
{
    struct buffer name AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < ' ' || bytes[i] == 0x7f)
            return;
    buffer_append(&name, bytes, size);
    if (!size || peer->name_count == NAME_LIMIT || small_peer_is(peer, buffer_text(&name)))
        return;
    peer->names = memory_resize(peer->names, (peer->name_count + 1) * sizeof *peer->names);
    peer->names[peer->name_count++] = memory_string(buffer_text(&name));
}

static void
add_address(struct small_peer *peer, const mbedtls_x509_buf *address)
{
    char text[INET6_ADDRSTRLEN];
    int family = address->len == 4 ? AF_INET : address->len == 16 ? AF_INET6 : AF_UNSPEC;
    if (family != AF_UNSPEC && inet_ntop(family, address->p, text, sizeof text))
        add_name(peer, (const unsigned char *)text, strlen(text));
}

/* A certificate with several common names has none that counts. */
static void
add_common_name(struct small_peer *peer, const mbedtls_x509_crt *certificate)
{
    const mbedtls_x509_name *found = NULL;
    for (const mbedtls_x509_name *name = &certificate->subject; name; name = name->next) {
        if (MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &name->oid) != 0)
            continue;
        if (found)
            return;
        found = name;
    }
    if (found)
        add_name(peer, found->val.p, found->val.len);
}

static void
add_names(struct small_peer *peer, const mbedtls_x509_crt *certificate)
{
    add_common_name(peer, certificate);
    for (const mbedtls_x509_sequence *name = &certificate->subject_alt_names; name;
         name = name->next) {
        if (name->buf.tag == TAG_DNS)
            add_name(peer, name->buf.p, name->buf.len);
        else if (name->buf.tag == TAG_IP)
            add_address(peer, &name->buf);
    }
}

/* ---- verification ---- */

static struct error *
name_refusal(const struct small_peer *peer)
{
    return error_new(CODE_UNAVAILABLE,
                     "peer presented the name \"%.200s\"%s but \"%s\" was expected",
                     peer->name_count ? peer->names[0] : "",
                     peer->name_count > 1 ? " and others" : "", peer->expected_name);
}

static struct error *
chain_refusal(const struct small_peer *peer, uint32_t flags)
{
    char text[256] = "";
    mbedtls_x509_crt_verify_info(text, sizeof text, "", flags);
    text[strcspn(text, "\n")] = '\0';
    return error_new(CODE_UNAVAILABLE, "certificate verify failed: %s (the CA is in \"%s\")", text,
                     peer->ca_path);
}

/*
 * mbedTLS calls it from the authority down to the peer's own certificate. It compares the name that
 * was sent to the server with patterns; the peer's own names are compared here instead, exactly.
 */
int
small_peer_verify(void *context, mbedtls_x509_crt *certificate, int depth, uint32_t *flags)
{
    struct small_peer *peer = context;
    *flags &= ~(uint32_t)MBEDTLS_X509_BADCERT_CN_MISMATCH;
    if (*flags && !peer->refusal)
        peer->refusal = chain_refusal(peer, *flags);
    if (depth != 0 || *flags)
        return 0;
    add_names(peer, certificate);
    if (peer->expected_name && !small_peer_is(peer, peer->expected_name)) {
        peer->refusal = peer->refusal ? peer->refusal : name_refusal(peer);
        *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    }
    return 0;
}
