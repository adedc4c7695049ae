/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake line: see host_handshake.h.
 *
 * A plugin runs with our rights, so these checks are no protection from it. They are for plugins
 * that print something else first, and for those of another version: the error says which it is.
 */
#include "velero/host_handshake.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "velero/velero.h"

#define MIN_FIELDS 4
#define MAX_FIELDS 7
#define MAX_QUOTE_BYTES 80
#define MIN_CERTIFICATE_TEXT 50 /* shorter values are no certificate, and ignored */

enum field { CORE, APP, NETWORK, ADDRESS, PROTOCOL, CERTIFICATE, MULTIPLEX };

struct text {
    const char *bytes;
    size_t size;
};

/* ---- texts ---- */

static bool
is(struct text text, const char *wanted)
{
    return text.size == strlen(wanted) && memcmp(text.bytes, wanted, text.size) == 0;
}

static bool
is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static struct text
trim(struct text text)
{
    while (text.size && is_space(text.bytes[0])) {
        text.bytes++;
        text.size--;
    }
    while (text.size && is_space(text.bytes[text.size - 1]))
        text.size--;
    return text;
}

/* The beginning of the text for an error, without anything that a terminal would act upon. */
static const char *
quote(struct text text, char out[MAX_QUOTE_BYTES + 4])
{
    size_t size = text.size < MAX_QUOTE_BYTES ? text.size : MAX_QUOTE_BYTES;
    for (size_t i = 0; i < size; i++)
        out[i] = text.bytes[i] >= ' ' && text.bytes[i] <= '~' ? text.bytes[i] : '?';
    memcpy(out + size, size < text.size ? "..." : "", size < text.size ? 4 : 1);
    return out;
}

static bool
is_printable(struct text text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.bytes[i] < ' ' || text.bytes[i] > '~')
            return false;
    return true;
}

/* 0: it is not a positive number of at most four digits. */
static unsigned
number_of(struct text text)
{
    unsigned number = 0;
    if (!text.size || text.size > 4)
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return 0;
        number = number * 10 + (unsigned)(text.bytes[i] - '0');
    }
    return number;
}

/* ---- fields ---- */

/* Returns how many there are; 0: too few or too many. Missing ones are empty. */
static size_t
split(struct text line, struct text fields[MAX_FIELDS])
{
    size_t count = 0;
    memset(fields, 0, MAX_FIELDS * sizeof *fields);
    for (const char *at = line.bytes, *end = at + line.size; count < MAX_FIELDS; count++) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        fields[count] = (struct text){at, (size_t)((bar ? bar : end) - at)};
        if (!bar)
            return count + 1 >= MIN_FIELDS ? count + 1 : 0;
        at = bar + 1;
    }
    return 0;
}

static struct error *
check_versions(const struct text fields[MAX_FIELDS])
{
    char quoted[MAX_QUOTE_BYTES + 4];
    if (number_of(fields[CORE]) != VELERO_CORE_VERSION)
        return error_new(CODE_FAILED_PRECONDITION,
                         "it speaks version \"%s\" of the handshake; this host speaks %d",
                         quote(fields[CORE], quoted), VELERO_CORE_VERSION);
    if (number_of(fields[APP]) != VELERO_PROTOCOL_VERSION)
        return error_new(
            CODE_FAILED_PRECONDITION,
            "it speaks version \"%s\" of Velero's plugin protocol; this host speaks %d",
            quote(fields[APP], quoted), VELERO_PROTOCOL_VERSION);
    if (!is(fields[PROTOCOL], "grpc"))
        return error_new(CODE_FAILED_PRECONDITION, "it speaks \"%s\"; this host speaks grpc",
                         fields[PROTOCOL].size ? quote(fields[PROTOCOL], quoted) : "netrpc");
    return NULL;
}

static bool
is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* Go writes an abstract socket's name with a leading @. */
static struct error *
read_unix(struct text text, struct address *address)
{
    char given[sizeof address->path + 20];
    bool is_abstract = text.bytes[0] == '@';
    if (text.size >= sizeof address->path)
        return error_new(CODE_INVALID_ARGUMENT, "the path of its socket has %zu bytes", text.size);
    if (!is_abstract && text.bytes[0] != '/')
        return error_new(CODE_INVALID_ARGUMENT, "the path of its socket is not absolute");
    snprintf(given, sizeof given, "%s%.*s",
             is_abstract ? "unix-abstract:" : "unix:", (int)(text.size - is_abstract),
             text.bytes + is_abstract);
    return address_parse(given, address);
}

static struct error *
read_tcp(struct text text, struct address *address)
{
    char given[sizeof address->host + 16];
    if (text.size >= sizeof address->host)
        return error_new(CODE_INVALID_ARGUMENT, "its address has %zu bytes", text.size);
    snprintf(given, sizeof given, "tcp://%.*s", (int)text.size, text.bytes);
    struct error *error = address_parse(given, address);
    if (!error && (!is_loopback(address->host) || !address->port))
        error = error_new(CODE_INVALID_ARGUMENT,
                          "it listens at \"%.*s\", which is not an address of the loopback",
                          (int)text.size, text.bytes);
    return error;
}

static struct error *
read_address(struct text network, struct text text, struct host_handshake *out)
{
    struct address address = {0};
    struct error *error;
    if (!text.size)
        return error_new(CODE_INVALID_ARGUMENT, "it does not say where it listens");
    if (is(network, "unix"))
        error = read_unix(text, &address);
    else if (is(network, "tcp"))
        error = read_tcp(text, &address);
    else
        return error_new(CODE_INVALID_ARGUMENT, "its network is neither unix nor tcp");
    if (!error)
        address_print(&address, out->target, sizeof out->target);
    return error;
}

static struct error *
read_certificate(struct text text, struct host_handshake *out)
{
    if (text.size <= MIN_CERTIFICATE_TEXT)
        return NULL;
    if (text.size > HOST_HANDSHAKE_MAX_CERTIFICATE_BYTES / 3 * 4 ||
        !base64_decode(text.bytes, text.size, &out->certificate))
        return error_new(CODE_INVALID_ARGUMENT, "its certificate is not valid base64, or too long");
    return NULL;
}

/* ---- the line ---- */

static struct error *
read_fields(const struct text fields[MAX_FIELDS], struct host_handshake *out)
{
    struct error *error = check_versions(fields);
    if (!error)
        error = read_address(fields[NETWORK], fields[ADDRESS], out);
    if (!error)
        error = read_certificate(fields[CERTIFICATE], out);
    return error;
}

struct error *
host_handshake_parse(const char *line, size_t size, struct host_handshake *out)
{
    char quoted[MAX_QUOTE_BYTES + 4];
    struct text fields[MAX_FIELDS];
    struct text text = trim((struct text){line, size});
    *out = (struct host_handshake){0};
    if (size > HOST_HANDSHAKE_MAX_BYTES)
        return error_new(CODE_INVALID_ARGUMENT, "its first line of output has %zu bytes", size);
    if (!is_printable(text) || !split(text, fields))
        return error_new(CODE_INVALID_ARGUMENT,
                         "its first line of output is not a plugin's handshake: \"%s\"",
                         quote(text, quoted));
    struct error *error = read_fields(fields, out);
    if (error)
        host_handshake_clear(out);
    return error;
}

void
host_handshake_clear(struct host_handshake *handshake)
{
    buffer_clear(&handshake->certificate);
}
