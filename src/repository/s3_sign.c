/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of requests to S3: see s3_sign.h. */
#include "repository/s3_sign.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "repository/key_file.h"

#define DIGEST_BYTES 32u
#define HEX_BYTES 65u
#define FILE_BYTES 4095u /* of credentials */
#define SIGNED_FIELDS "host;x-amz-content-sha256;x-amz-date"

/* ---- credentials ---- */

/* Copies the value behind "name =", if the line has this name. False: it is too long. */
static bool
read_value(const char *line, const char *name, char *out, size_t room)
{
    size_t size = strlen(name);
    if (strncmp(line, name, size) != 0)
        return true;
    line += size + strspn(line + size, " \t");
    if (*line != '=')
        return true;
    line++;
    line += strspn(line, " \t");
    size = strcspn(line, " \t\r");
    if (size >= room)
        return false;
    memcpy(out, line, size);
    out[size] = 0;
    return true;
}

struct error *
s3_credentials_read(const char *path, struct s3_credentials *out)
{
    struct buffer text AUTO(key_file_wipe) = {0};
    bool is_good = true;
    *out = (struct s3_credentials){0};
    struct error *error = files_read_all(path, FILE_BYTES, &text);
    if (error)
        return error_wrap(error, "the credentials for S3");
    buffer_append_byte(&text, 0);
    char *rest = NULL, *line = strtok_r((char *)text.bytes, "\n", &rest);
    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, " \t");
        is_good &= read_value(line, "aws_access_key_id", out->access_key, sizeof out->access_key);
        is_good &=
            read_value(line, "aws_secret_access_key", out->secret_key, sizeof out->secret_key);
    }
    if (is_good && out->access_key[0] && out->secret_key[0])
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "%s has no credentials for S3: write aws_access_key_id = ... and "
                     "aws_secret_access_key = ... in two lines",
                     path);
}

/* ---- text ---- */

void
s3_escape(struct buffer *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < 128 && isalnum(c)) || strchr("-._~", c))
            buffer_append_byte(out, c);
        else
            buffer_print(out, "%%%02X", c);
    }
}

static bool
hash(const void *bytes, size_t size, char hex[HEX_BYTES])
{
    uint8_t digest[DIGEST_BYTES];
    if (!EVP_Digest(bytes, size, digest, NULL, EVP_sha256(), NULL))
        return false;
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return true;
}

/* ---- signing ---- */

static bool
sign_with(const uint8_t *key, size_t key_size, const char *text, uint8_t out[DIGEST_BYTES])
{
    unsigned size = DIGEST_BYTES;
    return HMAC(EVP_sha256(), key, (int)key_size, (const uint8_t *)text, strlen(text), out, &size);
}

/* The key for a day, a region and S3. */
static bool
make_key(const struct s3_credentials *credentials, const char *day, const char *region,
         uint8_t key[DIGEST_BYTES])
{
    char start[sizeof credentials->secret_key + 4];
    uint8_t next[DIGEST_BYTES];
    snprintf(start, sizeof start, "AWS4%s", credentials->secret_key);
    bool is_good = sign_with((const uint8_t *)start, strlen(start), day, key) &&
                   sign_with(key, DIGEST_BYTES, region, next) &&
                   sign_with(next, DIGEST_BYTES, "s3", key) &&
                   sign_with(key, DIGEST_BYTES, "aws4_request", next);
    memcpy(key, next, DIGEST_BYTES);
    OPENSSL_cleanse(start, sizeof start);
    return is_good;
}

static bool
make_signature(const struct s3_credentials *credentials, const struct s3_request *request,
               const char *time, const char *body_hash, char signature[HEX_BYTES])
{
    struct buffer canonical AUTO(buffer_clear) = {0}, text AUTO(buffer_clear) = {0};
    char day[9], request_hash[HEX_BYTES];
    uint8_t key[DIGEST_BYTES], digest[DIGEST_BYTES];
    snprintf(day, sizeof day, "%.8s", time);
    buffer_print(&canonical,
                 "%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n\n%s\n%s",
                 request->method, request->path, request->query, request->host, body_hash, time,
                 SIGNED_FIELDS, body_hash);
    if (!hash(canonical.bytes, canonical.size, request_hash))
        return false;
    buffer_print(&text, "AWS4-HMAC-SHA256\n%s\n%s/%s/s3/aws4_request\n%s", time, day,
                 request->region, request_hash);
    bool is_good = make_key(credentials, day, request->region, key) &&
                   sign_with(key, sizeof key, buffer_text(&text), digest);
    OPENSSL_cleanse(key, sizeof key);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(signature + 2 * i, 3, "%02x", digest[i]);
    return is_good;
}

struct error *
s3_sign(const struct s3_credentials *credentials, const struct s3_request *request,
        struct buffer *out)
{
    char body_hash[HEX_BYTES], signature[HEX_BYTES], text[17];
    time_t now = (time_t)request->time;
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts);
    if (!hash(request->bytes, request->size, body_hash) ||
        !make_signature(credentials, request, text, body_hash, signature))
        return error_new(CODE_INTERNAL, "OpenSSL cannot sign a request");
    buffer_print(out,
                 "Host: %s\r\nX-Amz-Content-Sha256: %s\r\nX-Amz-Date: %s\r\n"
                 "Authorization: AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/s3/aws4_request, "
                 "SignedHeaders=" SIGNED_FIELDS ", Signature=%s\r\n",
                 request->host, body_hash, text, credentials->access_key, text, request->region,
                 signature);
    return NULL;
}
