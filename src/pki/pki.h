/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small certificate authority in a directory: keys and certificates for mutual TLS, ECDSA on P-256.
 *
 *     DIR/ca.crt  DIR/ca.key        the authority's own; nothing else is kept of what it issues
 *     OUT/NAME.crt  OUT/NAME.key    what it issued: for servers and for clients
 *
 * Keys are readable by their owner only. A pair that is replaced is new as a whole a moment later: a server that reads in between sees that the two
 * do not fit, keeps what it has, and reads again.
 */
#ifndef PKI_H
#define PKI_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/error.h"
#include "base/text_map.h"
#include "pki/certificate_names.h"

/* A hundred years. */
#define PKI_MOST_DAYS 36500ul

struct pki_made {
    char *certificate_file;
    char *key_file;
    time_t valid_until;
};

/* For AUTO. */
void pki_clear_made(struct pki_made *made);

/* Makes the directory if need be. ALREADY_EXISTS if an authority, or a part of one, is there. `out` is filled also with an error. */
MUST_CHECK struct error *pki_make_authority(const char *directory, const char *name,
                                            unsigned long days, struct pki_made *out);

struct pki_request {
    const char *authority; /* the directory */
    const char *directory; /* for the new files */
    const char *name;
    struct text_list alternatives; /* host names and IP addresses beside the name */
    unsigned long days;            /* never longer than the authority itself is valid */
    bool replaces;                 /* files of the same name */
};

/* ALREADY_EXISTS, unless files of that name are to be replaced. `out` is filled also with an error. */
MUST_CHECK struct error *pki_issue(const struct pki_request *request, struct pki_made *out);

/* ---- showing ---- */

struct pki_certificate {
    struct certificate_names names;
    char *issuer; /* its distinguished name */
    char *serial; /* hexadecimal */
    bool is_authority;
    time_t valid_from;
    time_t valid_until;
};

/* The first certificate of the file. */
MUST_CHECK struct error *pki_read_certificate(const char *path, struct pki_certificate *out);

/* For AUTO. */
void pki_clear_certificate(struct pki_certificate *certificate);

#endif
