/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in a certificate: common name, DNS names and IP addresses. OpenSSL's type is named by
 * its struct tag, so that this header compiles without OpenSSL's headers.
 */
#ifndef PKI_CERTIFICATE_NAMES_H
#define PKI_CERTIFICATE_NAMES_H

#include <stddef.h>

struct x509_st;

struct certificate_names {
    char **items;
    size_t count;
};

/* Adds the names of the certificate, without duplicates. */
void certificate_names_add(struct certificate_names *names, const struct x509_st *certificate);
void certificate_names_clear(struct certificate_names *names);

#endif
