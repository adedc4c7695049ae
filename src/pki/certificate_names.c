/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a certificate: see certificate_names.h. */
#include "pki/certificate_names.h"

#include <arpa/inet.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Skips duplicates, and names with an embedded NUL, which are attempts to deceive C code. */
static void
add_name(struct certificate_names *names, const unsigned char *bytes, int size)
{
    if (size <= 0 || memchr(bytes, '\0', (size_t)size))
        return;
    char *name AUTO(memory_cleanup) = memory_zeroed((size_t)size + 1);
    memcpy(name, bytes, (size_t)size);
    for (size_t i = 0; i < names->count; i++)
        if (!strcmp(names->items[i], name))
            return;
    names->items = memory_resize(names->items, (names->count + 1) * sizeof *names->items);
    names->items[names->count++] = STEAL(name);
}

static void
add_address(struct certificate_names *names, const ASN1_OCTET_STRING *address)
{
    char text[INET6_ADDRSTRLEN];
    int size = ASN1_STRING_length(address);
    if (size != 4 && size != 16)
        return;
    inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text, sizeof text);
    add_name(names, (const unsigned char *)text, (int)strlen(text));
}

/* Ignores the common name if there are several: it is unclear which one the CA checked. */
static void
add_common_name(struct certificate_names *names, const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (place < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, place) >= 0)
        return;
    unsigned char *text = NULL;
    int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)));
    add_name(names, text, size);
    OPENSSL_free(text);
}

void
certificate_names_add(struct certificate_names *names, const X509 *certificate)
{
    add_common_name(names, certificate);
    GENERAL_NAMES *alternatives = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(alternatives); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(alternatives, i);
        if (name->type == GEN_DNS)
            add_name(names, ASN1_STRING_get0_data(name->d.dNSName),
                     ASN1_STRING_length(name->d.dNSName));
        else if (name->type == GEN_IPADD)
            add_address(names, name->d.iPAddress);
    }
    GENERAL_NAMES_free(alternatives);
}

void
certificate_names_clear(struct certificate_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct certificate_names){0};
}
