/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of buckets: see s3_url.h. */
#include "repository/s3_url.h"

#include <stdio.h>
#include <string.h>

#define START "s3://"

static struct error *
refuse(const char *url)
{
    return error_new(CODE_INVALID_ARGUMENT,
                     "\"%s\" is no address of a bucket: write s3://HOST[:PORT]/BUCKET[/PREFIX], "
                     "with letters, digits and -._ in bucket and prefix",
                     url);
}

/* Copies [from, to); false if it does not fit. */
static bool
copy(char *out, size_t room, const char *from, const char *to)
{
    size_t size = (size_t)(to - from);
    if (size >= room)
        return false;
    memcpy(out, from, size);
    out[size] = 0;
    return true;
}

static bool
is_plain_text(const char *text, const char *more)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    while (*text && (strchr(letters, *text) || strchr(more, *text)))
        text++;
    return !*text;
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static bool
parse_authority(const char *text, bool is_plain, struct s3_url *out)
{
    const char *end = text + strlen(text), *host = text, *host_end, *port;
    if (*text == '[') {
        host = text + 1;
        host_end = strchr(text, ']');
        port = host_end ? host_end + 1 : NULL;
    } else {
        host_end = text + strcspn(text, ":");
        port = host_end;
    }
    if (!host_end || host_end == host || (port != end && *port != ':'))
        return false;
    port += port != end;
    if (port == end)
        port = is_plain ? "80" : "443";
    return copy(out->host, sizeof out->host, host, host_end) && is_plain_text(out->host, "-._:%") &&
           copy(out->port, sizeof out->port, port, port + strlen(port)) &&
           strspn(out->port, "0123456789") == strlen(out->port) &&
           copy(out->authority, sizeof out->authority, text, end);
}

static bool
parse_prefix(const char *text, struct s3_url *out)
{
    size_t size = strlen(text);
    while (size && text[size - 1] == '/')
        size--;
    if (!size)
        return true;
    /* A folder that is empty, "." or ".." means something else to some servers. */
    if (text[0] == '/' || strstr(text, "//") || strstr(text, "./") || text[size - 1] == '.')
        return false;
    if (size + 2 > sizeof out->prefix)
        return false;
    snprintf(out->prefix, sizeof out->prefix, "%.*s/", (int)size, text);
    return is_plain_text(out->prefix, "-._/");
}

struct error *
s3_url_parse(const char *url, bool is_plain, struct s3_url *out)
{
    char authority[272];
    *out = (struct s3_url){0};
    if (strncmp(url, START, strlen(START)) != 0)
        return refuse(url);
    const char *text = url + strlen(START), *slash = strchr(text, '/');
    if (!slash || !copy(authority, sizeof authority, text, slash) ||
        !parse_authority(authority, is_plain, out))
        return refuse(url);
    const char *bucket = slash + 1, *end = bucket + strcspn(bucket, "/");
    if (end == bucket || !copy(out->bucket, sizeof out->bucket, bucket, end) ||
        !is_plain_text(out->bucket, "-._") || !parse_prefix(end + (*end == '/'), out))
        return refuse(url);
    return NULL;
}
