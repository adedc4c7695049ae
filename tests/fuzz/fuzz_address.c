/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is an address or an error that says why; what is printed parses to the same address
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rpc/http2/address.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static bool
is_same(const struct address *a, const struct address *b)
{
    return a->kind == b->kind && a->path_size == b->path_size && a->port == b->port &&
           !strcmp(a->path, b->path) && !strcmp(a->host, b->host);
}

static void
check_sound(const struct address *address)
{
    REQUIRE(memchr(address->path, '\0', sizeof address->path));
    REQUIRE(memchr(address->host, '\0', sizeof address->host));
    REQUIRE(address->path_size == strlen(address->path));
    REQUIRE(address_is_local(address) == (address->path_size > 0));
    REQUIRE(!address_is_local(address) || (!address->host[0] && !address->port));
}

static void
check_round_trip(const struct address *address)
{
    char text[ADDRESS_TEXT_SIZE], again_text[ADDRESS_TEXT_SIZE];
    struct address again;
    memset(text, 'x', sizeof text);
    address_print(address, text, sizeof text);
    REQUIRE(memchr(text, '\0', sizeof text) && strlen(text) < sizeof text - 1);
    struct error *error AUTO(error_cleanup) = address_parse(text, &again);
    REQUIRE(!error);
    REQUIRE(is_same(address, &again));
    address_print(&again, again_text, sizeof again_text);
    REQUIRE(!strcmp(text, again_text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text AUTO(memory_cleanup) = memory_new(size + 1);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    struct address address;
    struct error *error AUTO(error_cleanup) = address_parse(text, &address);
    if (error) {
        REQUIRE(error->code == CODE_INVALID_ARGUMENT && strstr(error->message, ": "));
        return 0;
    }
    check_sound(&address);
    check_round_trip(&address);
    return 0;
}
