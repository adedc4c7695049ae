/* SPDX-License-Identifier: Apache-2.0 */
/* Signs requests to S3 (AWS Signature Version 4), and reads the keys for it from a file. */
#ifndef REPOSITORY_S3_SIGN_H
#define REPOSITORY_S3_SIGN_H

#include "base/buffer.h"
#include "base/error.h"

struct s3_credentials {
    char access_key[129];
    char secret_key[129];
};

/*
 * Reads lines "aws_access_key_id = ..." and "aws_secret_access_key = ...", as in the file of AWS
 * tools; "[default]" and comments are fine. INVALID_ARGUMENT.
 */
MUST_CHECK struct error *s3_credentials_read(const char *path, struct s3_credentials *out);

struct s3_request {
    const char *method;
    const char *host;  /* as in the Host field */
    const char *path;  /* begins with '/'; needs no escapes */
    const char *query; /* sorted and escaped; may be empty */
    const char *region;
    const uint8_t *bytes; /* the body */
    size_t size;
    int64_t time; /* Unix time in seconds */
};

/* Appends the fields Host, X-Amz-Content-Sha256, X-Amz-Date and Authorization. */
MUST_CHECK struct error *s3_sign(const struct s3_credentials *credentials,
                                 const struct s3_request *request, struct buffer *out);

/* Appends the text with %XX for all but unreserved characters. */
void s3_escape(struct buffer *out, const char *text);

#endif
