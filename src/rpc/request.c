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

/* ---- names ---- */

enum field {
    FIELD_OTHER, /* not one of those below: its name has to be looked at */
    FIELD_METHOD,
    FIELD_SCHEME,
    FIELD_PATH,
    FIELD_AUTHORITY,
    FIELD_TE,
    FIELD_CONTENT_TYPE,
    FIELD_CONTENT_LENGTH,
    FIELD_TIMEOUT,
    FIELD_ENCODING,
    FIELD_OF_CONNECTION, /* of one HTTP/1 connection: it has no place in HTTP/2 */
    FIELD_PLAIN,         /* metadata that most clients send */
};

#define IS(wanted) (memcmp(name, wanted, sizeof(wanted) - 1) == 0)

/* By length first: this is asked eight times for every call. */
static enum field
find_field(const char *name, size_t name_size)
{
    switch (name_size) {
    case 2:
        return IS("te") ? FIELD_TE : FIELD_OTHER;
    case 5:
        return IS(":path") ? FIELD_PATH : FIELD_OTHER;
    case 7:
        return IS(":method")   ? FIELD_METHOD
               : IS(":scheme") ? FIELD_SCHEME
               : IS("upgrade") ? FIELD_OF_CONNECTION
                               : FIELD_OTHER;
    case 10:
        return IS(":authority")                       ? FIELD_AUTHORITY
               : IS("user-agent")                     ? FIELD_PLAIN
               : IS("connection") || IS("keep-alive") ? FIELD_OF_CONNECTION
                                                      : FIELD_OTHER;
    case 12:
        return IS("content-type")   ? FIELD_CONTENT_TYPE
               : IS("grpc-timeout") ? FIELD_TIMEOUT
                                    : FIELD_OTHER;
    case 13:
        return IS("grpc-encoding") ? FIELD_ENCODING : FIELD_OTHER;
    case 14:
        return IS("content-length") ? FIELD_CONTENT_LENGTH : FIELD_OTHER;
    case 16:
        return IS("proxy-connection") ? FIELD_OF_CONNECTION : FIELD_OTHER;
    case 17:
        return IS("transfer-encoding") ? FIELD_OF_CONNECTION : FIELD_OTHER;
    case 20:
        return IS("grpc-accept-encoding") ? FIELD_PLAIN : FIELD_OTHER;
    default:
        return FIELD_OTHER;
    }
}

/* ---- fields ---- */

static void
add_pseudo_field(struct request_head *head, struct arena *arena, enum field field,
                 const char *value, size_t value_size)
{
    const char **place = field == FIELD_PATH        ? &head->path
                         : field == FIELD_METHOD    ? &head->method
                         : field == FIELD_SCHEME    ? &head->scheme
                         : field == FIELD_AUTHORITY ? &head->authority
                                                    : NULL;
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
read_known_field(struct request_head *head, enum field field, const char *value, size_t value_size)
{
    if (field == FIELD_TE) {
        if (!is(value, value_size, "trailers"))
            call_malformed(head, "te other than trailers");
    } else if (field == FIELD_TIMEOUT) {
        head->has_timeout = true;
        head->bad_timeout = !grpc_text_parse_timeout(value, value_size, &head->timeout_ns);
    } else if (field == FIELD_ENCODING) {
        read_encoding(head, value, value_size);
    } else if (field == FIELD_CONTENT_LENGTH) {
        read_content_length(head, value, value_size);
    } else if (field == FIELD_OF_CONNECTION) {
        call_malformed(head, "connection-specific field");
    }
}

void
request_add_field(struct request_head *head, struct arena *arena, size_t max_bytes,
                  const char *name, size_t name_size, const char *value, size_t value_size)
{
    enum field field = find_field(name, name_size);
    head->bytes += name_size + value_size + FIELD_OVERHEAD;
    if (field == FIELD_OTHER && !nghttp2_check_header_name((const uint8_t *)name, name_size))
        call_malformed(head, "bad field name");
    if (!nghttp2_check_header_value((const uint8_t *)value, value_size))
        call_malformed(head, "bad field value");
    if (head->malformed || head->bytes > max_bytes)
        return;
    if (name_size && name[0] == ':') {
        add_pseudo_field(head, arena, field, value, value_size);
        return;
    }
    head->saw_regular_field = true;
    read_known_field(head, field, value, value_size);
    if (head->in_trailers)
        return;
    metadata_add_bytes(&head->metadata, arena, name, name_size, value, value_size);
    if (field == FIELD_CONTENT_TYPE)
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
