/* SPDX-License-Identifier: Apache-2.0 */
/* The header block of a request: see request.h. */
#include "rpc/grpc/request.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

#include "rpc/grpc/grpc_text.h"

void
request_init(struct request_header *header)
{
    *header = (struct request_header){.content_length = -1};
}

static bool
equals(const char *name, size_t name_size, const char *wanted)
{
    return name_size == strlen(wanted) && memcmp(name, wanted, name_size) == 0;
}

static void
set_malformed(struct request_header *header, const char *what)
{
    if (!header->malformed)
        header->malformed = what;
}

/* ---- names ---- */

enum name {
    NAME_OTHER, /* any other name; must be validated */
    NAME_METHOD,
    NAME_SCHEME,
    NAME_PATH,
    NAME_AUTHORITY,
    NAME_TE,
    NAME_CONTENT_TYPE,
    NAME_CONTENT_LENGTH,
    NAME_TIMEOUT,
    NAME_ENCODING,
    NAME_CONNECTION_SPECIFIC, /* connection-specific in HTTP/1, forbidden in HTTP/2 */
    NAME_PLAIN,               /* metadata that most clients send */
};

#define IS(wanted) (memcmp(name, wanted, sizeof(wanted) - 1) == 0)

/* Switches on the length first: this runs eight times per call. */
static enum name
find_name(const char *name, size_t name_size)
{
    switch (name_size) {
    case 2:
        return IS("te") ? NAME_TE : NAME_OTHER;
    case 5:
        return IS(":path") ? NAME_PATH : NAME_OTHER;
    case 7:
        return IS(":method")   ? NAME_METHOD
               : IS(":scheme") ? NAME_SCHEME
               : IS("upgrade") ? NAME_CONNECTION_SPECIFIC
                               : NAME_OTHER;
    case 10:
        return IS(":authority")                       ? NAME_AUTHORITY
               : IS("user-agent")                     ? NAME_PLAIN
               : IS("connection") || IS("keep-alive") ? NAME_CONNECTION_SPECIFIC
                                                      : NAME_OTHER;
    case 12:
        return IS("content-type")   ? NAME_CONTENT_TYPE
               : IS("grpc-timeout") ? NAME_TIMEOUT
                                    : NAME_OTHER;
    case 13:
        return IS("grpc-encoding") ? NAME_ENCODING : NAME_OTHER;
    case 14:
        return IS("content-length") ? NAME_CONTENT_LENGTH : NAME_OTHER;
    case 16:
        return IS("proxy-connection") ? NAME_CONNECTION_SPECIFIC : NAME_OTHER;
    case 17:
        return IS("transfer-encoding") ? NAME_CONNECTION_SPECIFIC : NAME_OTHER;
    case 20:
        return IS("grpc-accept-encoding") ? NAME_PLAIN : NAME_OTHER;
    default:
        return NAME_OTHER;
    }
}

/* ---- values ---- */

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/* Are all eight bytes between the space and the tilde? */
static bool
are_plain(const char *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    uint64_t below_space = word - EACH_BYTE(0x20);
    uint64_t above_tilde = word + EACH_BYTE(0x01);
    return !((word | below_space | above_tilde) & EACH_BYTE(0x80));
}

static bool
is_white(char character)
{
    return character == ' ' || character == '\t';
}

/*
 * Checks eight bytes at a time, since most values are plain ASCII. White space at either end is
 * malformed (RFC 9113, 8.2.1).
 */
static bool
is_valid_value(const char *value, size_t size)
{
    if (size && (is_white(value[0]) || is_white(value[size - 1])))
        return false;
    bool plain = size >= sizeof(uint64_t);
    for (size_t i = 0; plain && i + sizeof(uint64_t) < size; i += sizeof(uint64_t))
        plain = are_plain(value + i);
    return (plain && are_plain(value + size - sizeof(uint64_t))) ||
           nghttp2_check_header_value((const uint8_t *)value, size);
}

/* ---- fields ---- */

static void
read_pseudo_field(struct request_header *header, enum name name, const char *value)
{
    const char **place = name == NAME_PATH        ? &header->path
                         : name == NAME_METHOD    ? &header->method
                         : name == NAME_SCHEME    ? &header->scheme
                         : name == NAME_AUTHORITY ? &header->authority
                                                  : NULL;
    if (!place)
        set_malformed(header, "unknown pseudo-header field");
    else if (header->in_trailers)
        set_malformed(header, "pseudo-header field in trailers");
    else if (header->saw_regular_field)
        set_malformed(header, "pseudo-header field after a regular one");
    else if (*place)
        set_malformed(header, "pseudo-header field sent twice");
    else
        *place = value;
}

static void
read_content_length(struct request_header *header, const char *value, size_t value_size)
{
    int64_t length = 0;
    bool valid = value_size > 0 && value_size <= 18 && header->content_length < 0;
    for (size_t i = 0; valid && i < value_size; i++) {
        valid = value[i] >= '0' && value[i] <= '9';
        length = length * 10 + (value[i] - '0');
    }
    if (valid)
        header->content_length = length;
    else
        set_malformed(header, "bad content-length");
}

static void
read_encoding(struct request_header *header, const char *value, size_t value_size)
{
    if (equals(value, value_size, "gzip"))
        header->encoding = ENCODING_GZIP;
    else if (!equals(value, value_size, "identity"))
        header->encoding = ENCODING_UNKNOWN;
}

static void
read_known_field(struct request_header *header, enum name name, const char *value,
                 size_t value_size)
{
    if (name == NAME_TE) {
        if (!equals(value, value_size, "trailers"))
            set_malformed(header, "te other than trailers");
    } else if (name == NAME_TIMEOUT) {
        header->has_timeout = true;
        header->bad_timeout = !grpc_text_parse_timeout(value, value_size, &header->timeout_ns);
    } else if (name == NAME_ENCODING) {
        read_encoding(header, value, value_size);
    } else if (name == NAME_CONTENT_LENGTH) {
        read_content_length(header, value, value_size);
    } else if (name == NAME_CONNECTION_SPECIFIC) {
        set_malformed(header, "connection-specific field");
    } else if (name == NAME_CONTENT_TYPE && !header->in_trailers) {
        header->content_type = value;
    }
}

/* Returns true if the field is metadata. */
static bool
read_field(struct request_header *header, const struct field *field)
{
    enum name name = find_name(field->name, field->name_size);
    if (name == NAME_OTHER &&
        !nghttp2_check_header_name((const uint8_t *)field->name, field->name_size))
        set_malformed(header, "bad field name");
    if (!is_valid_value(field->value, field->value_size))
        set_malformed(header, "bad field value");
    if (header->malformed)
        return false;
    if (field->name_size && field->name[0] == ':') {
        read_pseudo_field(header, name, field->value);
        return false;
    }
    header->saw_regular_field = true;
    read_known_field(header, name, field->value, field->value_size);
    return !header->in_trailers;
}

void
request_read_fields(struct request_header *header, struct arena *arena, const struct field *fields,
                    size_t count)
{
    struct metadata_entry *entry =
        header->in_trailers ? NULL : arena_alloc(arena, count * sizeof *entry);
    for (size_t i = 0; i < count; i++) {
        const struct field *field = &fields[i];
        if (!read_field(header, field) || !entry)
            continue;
        *entry = (struct metadata_entry){.key = field->name,
                                         .key_size = field->name_size,
                                         .value = field->value,
                                         .value_size = field->value_size,
                                         .is_secret = field->is_secret};
        metadata_append(&header->metadata, entry++);
    }
}

void
request_finish(struct request_header *header)
{
    if (header->in_trailers)
        return;
    if (!header->method || !header->scheme)
        set_malformed(header, "a pseudo-header field is missing");
    else if (!header->path || (header->path[0] != '/' && strcmp(header->path, "*") != 0))
        set_malformed(header, "no :path");
}

int
request_http_status(const struct request_header *header)
{
    if (strcmp(header->method, "POST") != 0)
        return 405;
    if (!header->content_type ||
        !grpc_text_is_grpc_content_type(header->content_type, strlen(header->content_type)))
        return 415;
    return 0;
}
