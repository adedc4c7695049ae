/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of s3://HOST[:PORT]/BUCKET[/PREFIX]. */
#ifndef REPOSITORY_S3_URL_H
#define REPOSITORY_S3_URL_H

#include "base/error.h"

struct s3_url {
    char host[256]; /* a name, or an address; [..] is taken off */
    char port[6];
    char authority[272]; /* as in the Host field */
    char bucket[64];
    char prefix[512]; /* "" or "some/folder/" */
};

/* INVALID_ARGUMENT: bucket and prefix have only letters, digits and -._ between slashes. */
MUST_CHECK struct error *s3_url_parse(const char *url, bool is_plain, struct s3_url *out);

#endif
