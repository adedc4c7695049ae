/* SPDX-License-Identifier: Apache-2.0 */
/* Input and names: see tls_shared.h. */
#include "rpc/tls/tls_shared.h"

#include <arpa/inet.h>
#include <string.h>

void
tls_input_feed(struct tls_input *input, const void *bytes, size_t size)
{
    if (input->consumed) {
        input->bytes.size -= input->consumed;
        memmove(input->bytes.bytes, input->bytes.bytes + input->consumed, input->bytes.size);
        input->consumed = 0;
    }
    buffer_append(&input->bytes, bytes, size);
}

size_t
tls_input_read(struct tls_input *input, void *out, size_t room)
{
    size_t size = input->bytes.size - input->consumed;
    if (size > room)
        size = room;
    if (size)
        memcpy(out, input->bytes.bytes + input->consumed, size);
    input->consumed += size;
    return size;
}

void
tls_input_clear(struct tls_input *input)
{
    buffer_clear(&input->bytes);
    input->consumed = 0;
}

bool
tls_is_address(const char *host)
{
    struct in6_addr room;
    return inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, host, &room) == 1;
}

bool
tls_has_name(char *const *names, size_t count, const char *name)
{
    struct in6_addr address;
    char canonical[INET6_ADDRSTRLEN];
    if (inet_pton(AF_INET6, name, &address) == 1)
        name = inet_ntop(AF_INET6, &address, canonical, sizeof canonical);
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}
