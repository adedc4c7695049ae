/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: see address.h. The parsers of the parts return what is wrong, or NULL; address_parse
 * puts the whole text in front of it.
 */
#include "rpc/http2/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_QUOTE_BYTES 128 /* bytes of the input that an error quotes */
#define DNS_PORT 443        /* gRPC's default for dns: */

enum family { FAMILY_ANY, FAMILY_IPV4, FAMILY_IPV6 };

/* A gRPC naming scheme ("dns:", optionally followed by "///"), or a plain prefix ("tcp://"). */
static const struct tcp_scheme {
    const char *prefix;
    enum family family;
    bool is_dns; /* it may name a server, "dns://SERVER/", and the port may be missing */
} tcp_schemes[] = {
    {"dns:", FAMILY_ANY, true},      {"passthrough:", FAMILY_ANY, false},
    {"ipv4:", FAMILY_IPV4, false},   {"ipv6:", FAMILY_IPV6, false},
    {"tcp://", FAMILY_ANY, false},   {"tcp4://", FAMILY_IPV4, false},
    {"tcp6://", FAMILY_IPV6, false},
};

static bool
starts_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

static const char *
set_path(enum address_kind kind, const char *path, struct address *out)
{
    size_t size = strlen(path);
    if (!size)
        return kind == ADDRESS_UNIX ? "the path is empty, write unix:/path/to/socket"
                                    : "the name is empty, write unix-abstract:name";
    if (size >= sizeof out->path)
        return kind == ADDRESS_UNIX
                   ? "the path is too long, a unix socket's path has at most 107 bytes"
                   : "the name is too long, an abstract socket's name has at most 107 bytes";
    out->kind = kind;
    out->path_size = size;
    memcpy(out->path, path, size);
    return NULL;
}

/* Collapses leading slashes, so that the printed form cannot begin with "unix://". */
static const char *
set_absolute_path(const char *path, struct address *out)
{
    while (path[0] == '/' && path[1] == '/')
        path++;
    if (!path[1])
        return "the path is empty, write unix:/path/to/socket";
    return set_path(ADDRESS_UNIX, path, out);
}

static const char *
parse_unix(const char *path, struct address *out)
{
    return path[0] == '/' ? set_absolute_path(path, out) : set_path(ADDRESS_UNIX, path, out);
}

static bool
is_name(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
            return false;
    }
    return true;
}

static bool
is_ipv4(const char *host)
{
    struct in_addr ignored;
    return inet_pton(AF_INET, host, &ignored) == 1;
}

/* With or without a zone: fe80::1%eth0. */
static bool
is_ipv6(const char *host)
{
    struct in6_addr ignored;
    char digits[INET6_ADDRSTRLEN] = "";
    size_t size = strcspn(host, "%");
    if (size >= sizeof digits)
        return false;
    memcpy(digits, host, size);
    if (inet_pton(AF_INET6, digits, &ignored) != 1)
        return false;
    return !host[size] || (host[size + 1] && is_name(host + size + 1, strlen(host + size + 1)));
}

static const char *
parse_port(const char *text, uint16_t *port)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits)
        return text[0] ? "the port must be a number, write HOST:PORT"
                       : "the port is missing, write HOST:PORT";
    unsigned long value = strtoul(text, NULL, 10);
    if (text[digits])
        return "the port must be a number with nothing after it, write HOST:PORT";
    if (digits > 5 || value > UINT16_MAX)
        return "the port must be 0 to 65535";
    *port = (uint16_t)value;
    return NULL;
}

static const char *
set_host(const char *host, size_t size, struct address *out)
{
    if (size >= sizeof out->host)
        return "the host is too long, at most 255 bytes";
    memcpy(out->host, host, size);
    return NULL;
}

static const char *
parse_bracketed(const char *text, struct address *out)
{
    const char *end = strchr(text, ']');
    if (!end)
        return "the ']' is missing, write [IPV6]:PORT";
    const char *problem = set_host(text + 1, (size_t)(end - text - 1), out);
    if (problem)
        return problem;
    if (!is_ipv6(out->host))
        return "the part in brackets must be an IPv6 address, write [::1]:PORT";
    if (!end[1] && out->port)
        return NULL;
    if (end[1] != ':')
        return "the port is missing, write [IPV6]:PORT";
    return parse_port(end + 2, &out->port);
}

static const char *
parse_unbracketed(const char *text, struct address *out)
{
    const char *colon = strchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : strlen(text);
    if (colon && strchr(colon + 1, ':'))
        return "more than one colon; put an IPv6 address in brackets, write [::1]:PORT";
    if (!is_name(text, size))
        return "a host may contain only letters, digits, '-', '.' and '_' (a unix socket is "
               "written "
               "unix:/path)";
    if (!colon && (!out->port || !size))
        return "the port is missing, write HOST:PORT (or unix:/path for a unix socket)";
    const char *problem = set_host(text, size, out);
    return problem || !colon ? problem : parse_port(colon + 1, &out->port);
}

static const char *
apply_family(enum family family, struct address *out)
{
    if (family != FAMILY_ANY && !out->host[0])
        snprintf(out->host, sizeof out->host, "%s", family == FAMILY_IPV4 ? "0.0.0.0" : "::");
    if (family == FAMILY_IPV4 && is_ipv6(out->host))
        return "that is an IPv6 address, write ipv6:[ADDRESS]:PORT";
    if (family == FAMILY_IPV6 && is_ipv4(out->host))
        return "that is an IPv4 address, write ipv4:ADDRESS:PORT";
    return NULL;
}

/* `out->port` is the default; 0: there must be one. */
static const char *
parse_tcp(const char *text, enum family family, struct address *out)
{
    if (strchr(text, ','))
        return "a list of addresses is not supported, write one HOST:PORT";
    out->kind = ADDRESS_TCP;
    const char *problem =
        text[0] == '[' ? parse_bracketed(text, out) : parse_unbracketed(text, out);
    return problem ? problem : apply_family(family, out);
}

static const char *
parse_tcp_scheme(const char *text, const struct tcp_scheme *scheme, struct address *out)
{
    text += strlen(scheme->prefix);
    bool is_uri = strstr(scheme->prefix, "//");
    if (!is_uri && starts_with(text, "//")) {
        const char *end = strchr(text + 2, '/');
        if (!end)
            return "there is no host behind the name server, write dns:///HOST:PORT";
        if (end > text + 2 && !scheme->is_dns)
            return "only dns: may name a server, write three slashes in front of the host";
        text = end + 1; /* names are looked up as this machine does it, whatever the server */
    }
    out->port = scheme->is_dns ? DNS_PORT : 0;
    return parse_tcp(text, scheme->family, out);
}

static const char *
parse_any(const char *text, struct address *out)
{
    if (!text[0])
        return "it is empty, write unix:/path or HOST:PORT";
    if (text[0] == '/')
        return set_absolute_path(text, out);
    if (starts_with(text, "unix:"))
        return parse_unix(text + strlen("unix:"), out);
    if (starts_with(text, "unix-abstract:"))
        return set_path(ADDRESS_UNIX_ABSTRACT, text + strlen("unix-abstract:"), out);
    for (size_t i = 0; i < COUNT_OF(tcp_schemes); i++) {
        if (starts_with(text, tcp_schemes[i].prefix))
            return parse_tcp_scheme(text, &tcp_schemes[i], out);
    }
    if (strstr(text, "://"))
        return "unknown scheme, use unix:, unix-abstract:, dns:, passthrough:, ipv4:, ipv6: or "
               "tcp://";
    return parse_tcp(text, FAMILY_ANY, out);
}

struct error *
address_parse(const char *text, struct address *out)
{
    struct address address;
    memset(&address, 0, sizeof address);
    const char *problem = parse_any(text, &address);
    if (problem)
        return error_new(CODE_INVALID_ARGUMENT, "address \"%.*s\": %s",
                         (int)utf8_cut(text, strlen(text), MAX_QUOTE_BYTES), text, problem);
    *out = address;
    return NULL;
}

/* A host of this name would be parsed as a scheme. */
static bool
is_scheme_name(const char *host)
{
    static const char *const names[] = {"unix",        "unix-abstract", "dns",
                                        "passthrough", "ipv4",          "ipv6"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(host, names[i]))
            return true;
    }
    return false;
}

static void
print_tcp(const struct address *address, char *out, size_t size)
{
    bool is_bracketed = strchr(address->host, ':');
    snprintf(out, size, "%s%s%s%s:%u", is_scheme_name(address->host) ? "dns:" : "",
             is_bracketed ? "[" : "", address->host, is_bracketed ? "]" : "",
             (unsigned)address->port);
}

void
address_print(const struct address *address, char *out, size_t size)
{
    switch (address->kind) {
    case ADDRESS_UNIX:
        snprintf(out, size, "unix:%s", address->path);
        break;
    case ADDRESS_UNIX_ABSTRACT:
        snprintf(out, size, "unix-abstract:%s", address->path);
        break;
    case ADDRESS_TCP:
        print_tcp(address, out, size);
        break;
    }
}

bool
address_is_local(const struct address *address)
{
    return address->kind != ADDRESS_TCP;
}
