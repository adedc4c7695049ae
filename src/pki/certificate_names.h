/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that a certificate is for: its common name, DNS names and addresses. OpenSSL's type
 * stands here by its struct tag, so that this header compiles without its headers.
 */
#ifndef PKI_CERTIFICATE_NAMES_H
#define PKI_CERTIFICATE_NAMES_H

#include <stddef.h>

struct x509_st;

struct certificate_names {
    char **items;
    size_t count;
};

/* Adds each name of the certificate once. */
void certificate_names_add(struct certificate_names *names, const struct x509_st *certificate);
void certificate_names_clear(struct certificate_names *names);

#endif
