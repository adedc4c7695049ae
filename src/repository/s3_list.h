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

struct s3_list {
    bool is_truncated;
    struct buffer token; /* NextContinuationToken */
};

/*
 * Parses a ListBucketResult and calls `each` for every object in it. UNAVAILABLE: it is none.
 */
MUST_CHECK struct error *s3_list_parse(const uint8_t *bytes, size_t size, struct s3_list *list,
                                       struct error *(*each)(const char *key, uint64_t size,
                                                             void *context),
                                       void *context);

/* The Code of an Error, for messages; "" if there is none. */
void s3_error_code(const uint8_t *bytes, size_t size, char *out, size_t room);

#endif
