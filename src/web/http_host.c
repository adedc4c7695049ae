/* SPDX-License-Identifier: Apache-2.0 */
/* The names of this server: see http_host.h. */
#include "web/http_host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/attributes.h"

#define MAX_NAME 255

/* Copies the host without its port and brackets. False: it is neither a host nor an address. */
static bool
cut_port(const char *text, char out[MAX_NAME + 1], bool *has_brackets)
{
    *has_brackets = text[0] == '[';
    const char *start = text + *has_brackets;
    size_t size = strcspn(start, *has_brackets ? "]" : ":");
    if (!size || size > MAX_NAME || (*has_brackets && start[size] != ']'))
        return false;
    const char *rest = start + size + *has_brackets;
    if (rest[0] && (rest[0] != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1)))
        return false;
    memcpy(out, start, size);
    out[size] = '\0';
    return true;
}

bool
http_host_is_known(const char *host, const char *const *names, size_t count)
{
    char name[MAX_NAME + 1];
    struct in6_addr address;
    bool has_brackets;
    if (!cut_port(host, name, &has_brackets))
        return false;
    if (has_brackets)
        return inet_pton(AF_INET6, name, &address) == 1;
    if (inet_pton(AF_INET, name, &address) == 1 || strcasecmp(name, "localhost") == 0)
        return true;
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

bool
http_host_is_origin(const char *host, const char *origin)
{
    /* Something in front may speak TLS. */
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        size_t size = strlen(schemes[i]);
        if (strncmp(origin, schemes[i], size) == 0)
            return strcasecmp(origin + size, host) == 0;
    }
    return false;
}

bool
http_host_is_loopback(const char *address)
{
    struct in6_addr six;
    struct in_addr four;
    if (inet_pton(AF_INET, address, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, address, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}
