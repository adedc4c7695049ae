/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small certificate authority in a directory: keys and certificates for mutual TLS, ECDSA on
 * P-256.
 *
 *     DIR/ca.crt  DIR/ca.key        the authority itself; it keeps no record of what it issues
 *     OUT/NAME.crt  OUT/NAME.key    an issued pair, for servers and clients
 *
 * Only the owner can read the keys. The two files of a pair are replaced one after the other. A
 * server that reloads in between sees that they do not match, keeps its old pair, and reloads
 * again.
 */
#ifndef PKI_H
#define PKI_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/error.h"
#include "base/text_map.h"
#include "pki/certificate_names.h"

/* 100 years. */
#define PKI_MAX_DAYS 36500ul

struct pki_made {
    char *certificate_file;
    char *key_file;
    time_t valid_until;
};

/* For AUTO. */
void pki_clear_made(struct pki_made *made);

/*
 * Creates the directory if necessary. ALREADY_EXISTS: it contains an authority, or a part of one.
 * `out` is filled even on error.
 */
MUST_CHECK struct error *pki_make_authority(const char *directory, const char *name,
                                            unsigned long days, struct pki_made *out);

struct pki_request {
    const char *authority; /* its directory */
    const char *directory; /* for the new files */
    const char *name;
    struct text_list alternatives; /* host names and IP addresses in addition to the name */
    unsigned long days;            /* limited by the validity of the authority */
    bool replaces;                 /* existing files of the same name */
};

/*
 * ALREADY_EXISTS: files of that name exist and `replaces` is false. `out` is filled even on error.
 */
MUST_CHECK struct error *pki_issue(const struct pki_request *request, struct pki_made *out);

/* ---- show ---- */

struct pki_certificate {
    struct certificate_names names;
    char *issuer; /* distinguished name */
    char *serial; /* hexadecimal */
    bool is_authority;
    time_t valid_from;
    time_t valid_until;
};

/* Reads the first certificate of the file. */
MUST_CHECK struct error *pki_read_certificate(const char *path, struct pki_certificate *out);

/* For AUTO. */
void pki_clear_certificate(struct pki_certificate *certificate);

#endif
