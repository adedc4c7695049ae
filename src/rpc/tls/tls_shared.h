/* SPDX-License-Identifier: Apache-2.0 */
/* What both implementations of tls.h share: with OpenSSL (tls_*.c) and with mbedTLS (small_*.c). */
#ifndef RPC_TLS_TLS_SHARED_H
#define RPC_TLS_TLS_SHARED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Ciphertext that was fed; the library has read up to `consumed`. */
struct tls_input {
    struct buffer bytes;
    size_t consumed;
};

void tls_input_feed(struct tls_input *input, const void *bytes, size_t size);
/* Copies at most `room` bytes; 0: more must be fed first. */
size_t tls_input_read(struct tls_input *input, void *out, size_t room);
void tls_input_clear(struct tls_input *input);

/* An IPv4 or IPv6 address, which is never sent as SNI. */
bool tls_is_address(const char *host);

/* Exactly, but for IPv6 addresses, which may have any of their forms. */
bool tls_has_name(char *const *names, size_t count, const char *name);

#endif
