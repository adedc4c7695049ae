/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a request: see request.h. */
#include "rpc/request.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "rpc/grpc_text.h"

#define FIELD_OVERHEAD 32u

void
request_init(struct request_head *head)
{
    *head = (struct request_head){.content_length = -1};
}

static bool
is(const char *name, size_t name_size, const char *wanted)
{
    return name_size == strlen(wanted) && memcmp(name, wanted, name_size) == 0;
}

static void
call_malformed(struct request_head *head, const char *what)
{
    if (!head->malformed)
        head->malformed = what;
}

static void
add_pseudo_field(struct request_head *head, struct arena *arena, const char *name, size_t name_size,
                 const char *value, size_t value_size)
{
    const char **place = NULL;
    if (is(name, name_size, ":path"))
        place = &head->path;
    else if (is(name, name_size, ":method"))
        place = &head->method;
    else if (is(name, name_size, ":scheme"))
        place = &head->scheme;
    else if (is(name, name_size, ":authority"))
        place = &head->authority;
    if (!place)
        call_malformed(head, "unknown pseudo-header field");
    else if (head->in_trailers)
        call_malformed(head, "pseudo-header field in trailers");
    else if (head->saw_regular_field)
        call_malformed(head, "pseudo-header field after a regular one");
    else if (*place)
        call_malformed(head, "pseudo-header field sent twice");
    else
        *place = arena_copy(arena, value, value_size);
}

/* Fields that belong to one HTTP/1 connection have no place in HTTP/2. */
static bool
is_connection_specific(const char *name, size_t name_size)
{
    return is(name, name_size, "connection") || is(name, name_size, "keep-alive") ||
           is(name, name_size, "proxy-connection") || is(name, name_size, "transfer-encoding") ||
           is(name, name_size, "upgrade");
}

static void
read_content_length(struct request_head *head, const char *value, size_t value_size)
{
    int64_t length = 0;
    bool valid = value_size > 0 && value_size <= 18 && head->content_length < 0;
    for (size_t i = 0; valid && i < value_size; i++) {
        valid = value[i] >= '0' && value[i] <= '9';
        length = length * 10 + (value[i] - '0');
    }
    if (valid)
        head->content_length = length;
    else
        call_malformed(head, "bad content-length");
}

static void
read_encoding(struct request_head *head, const char *value, size_t value_size)
{
    if (is(value, value_size, "gzip"))
        head->encoding = ENCODING_GZIP;
    else if (!is(value, value_size, "identity"))
        head->encoding = ENCODING_UNKNOWN;
}

static void
read_known_field(struct request_head *head, const char *name, size_t name_size, const char *value,
                 size_t value_size)
{
    if (is(name, name_size, "te")) {
        if (!is(value, value_size, "trailers"))
            call_malformed(head, "te other than trailers");
    } else if (is(name, name_size, "grpc-timeout")) {
        head->has_timeout = true;
        head->bad_timeout = !grpc_text_parse_timeout(value, value_size, &head->timeout_ns);
    } else if (is(name, name_size, "grpc-encoding")) {
        read_encoding(head, value, value_size);
    } else if (is(name, name_size, "content-length")) {
        read_content_length(head, value, value_size);
    } else if (is_connection_specific(name, name_size)) {
        call_malformed(head, "connection-specific field");
    }
}

void
request_add_field(struct request_head *head, struct arena *arena, size_t max_bytes,
                  const char *name, size_t name_size, const char *value, size_t value_size)
{
    head->bytes += name_size + value_size + FIELD_OVERHEAD;
    if (!nghttp2_check_header_name((const uint8_t *)name, name_size))
        call_malformed(head, "bad field name");
    if (!nghttp2_check_header_value((const uint8_t *)value, value_size))
        call_malformed(head, "bad field value");
    if (head->malformed || head->bytes > max_bytes)
        return;
    if (name_size && name[0] == ':') {
        add_pseudo_field(head, arena, name, name_size, value, value_size);
        return;
    }
    head->saw_regular_field = true;
    read_known_field(head, name, name_size, value, value_size);
    if (head->in_trailers)
        return;
    metadata_add_bytes(&head->metadata, arena, name, name_size, value, value_size);
    if (is(name, name_size, "content-type"))
        head->content_type = head->metadata.last->value;
}

void
request_finish(struct request_head *head)
{
    if (head->in_trailers)
        return;
    if (!head->method || !head->scheme)
        call_malformed(head, "a pseudo-header field is missing");
    else if (!head->path || (head->path[0] != '/' && strcmp(head->path, "*") != 0))
        call_malformed(head, "no :path");
}

int
request_http_status(const struct request_head *head)
{
    if (strcmp(head->method, "POST") != 0)
        return 405;
    if (!head->content_type ||
        !grpc_text_is_grpc_content_type(head->content_type, strlen(head->content_type)))
        return 415;
    return 0;
}
