/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the XML of S3: lists of objects and errors. This is no XML parser: it knows elements,
 * the five named entities and numeric ones, and refuses the rest.
 */
#ifndef REPOSITORY_S3_LIST_H
#define REPOSITORY_S3_LIST_H

#include "base/buffer.h"
#include "base/error.h"

#define S3_KEY_MAX 1024u
#define S3_TOKEN_MAX 4096u
#define S3_PAGES_MAX 100000u   /* of one list */
#define S3_IDLE_PAGES_MAX 100u /* in a row, without a key behind those before */

/* A list that comes in pages. Zeroed before the first one. */
struct s3_list {
    bool is_truncated;
    struct buffer token; /* NextContinuationToken */
    /* whether it ends */
    struct buffer highest; /* key so far */
    unsigned pages, idle_pages;
    bool is_idle;         /* this page */
    struct buffer marked; /* a token of an earlier page */
};

void s3_list_clear(struct s3_list *list);

/*
 * Parses a page, a ListBucketResult, and calls `each` for every object in it. UNAVAILABLE: it is
 * none. FAILED_PRECONDITION: the pages repeat, or do not end.
 */
MUST_CHECK struct error *s3_list_parse(const uint8_t *bytes, size_t size, struct s3_list *list,
                                       struct error *(*each)(const char *key, uint64_t size,
                                                             void *context),
                                       void *context);

/* The Code of an Error, for messages; "" if there is none. */
void s3_error_code(const uint8_t *bytes, size_t size, char *out, size_t room);

#endif
