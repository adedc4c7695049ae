/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates and keys in PEM files. OpenSSL's types are named by their struct tags, so that this
 * header compiles without OpenSSL's headers.
 */
#ifndef PKI_PEM_H
#define PKI_PEM_H

#include <time.h>

#include "base/buffer.h"
#include "base/error.h"

struct asn1_string_st;
struct bio_st;
struct evp_pkey_st;
struct stack_st_X509;

/* Loads all certificates of a file; at least one. */
MUST_CHECK struct error *pem_load_certificates(const char *path, struct stack_st_X509 **out);

/* Loads a private key, which must not be encrypted: there is no passphrase prompt. */
MUST_CHECK struct error *pem_load_key(const char *path, struct evp_pkey_st **out);

/* Returns OpenSSL's reason for its last failure and clears its error queue. */
const char *pem_take_reason(void);

/* Returns 0 for an invalid time. */
time_t pem_read_time(const struct asn1_string_st *time);

/* "2027-01-31 12:00:00 UTC" */
const char *pem_print_time(time_t time, char out[32]);

/* For AUTO. */
void pem_free_bio(struct bio_st **bio);
void pem_free_key(struct evp_pkey_st **key);
void pem_free_certificates(struct stack_st_X509 **certificates);
/* Wipes the buffer before freeing it, so that no key stays in freed memory. */
void pem_wipe_buffer(struct buffer *buffer);

#endif
