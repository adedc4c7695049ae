/* SPDX-License-Identifier: Apache-2.0 */
/* Content-defined chunks: see chunker.h. */
#include "exports/chunker.h"

#include <endian.h>
#include <openssl/sha.h>
#include <string.h>

#define MASK_BEFORE (((UINT64_C(1) << 21) - 1) << 43) /* the oldest bytes reach the highest bits */
#define MASK_BEHIND (((UINT64_C(1) << 19) - 1) << 45)
#define PER_DIGEST (SHA256_DIGEST_LENGTH / sizeof(uint64_t))

/* The table is SHA-256 of the secret and a counter. */
void
chunker_init(struct chunker *chunker, const uint8_t secret[CHUNKER_SECRET])
{
    uint8_t seed[CHUNKER_SECRET + 1], digest[SHA256_DIGEST_LENGTH];
    memcpy(seed, secret, CHUNKER_SECRET);
    for (size_t i = 0; i < 256 / PER_DIGEST; i++) {
        seed[CHUNKER_SECRET] = (uint8_t)i;
        SHA256(seed, sizeof seed, digest);
        for (size_t k = 0; k < PER_DIGEST; k++) {
            uint64_t number;
            memcpy(&number, digest + k * sizeof number, sizeof number);
            chunker->gear[i * PER_DIGEST + k] = le64toh(number);
        }
    }
}

/* The end of the chunk, or `to` if there is none between `from` and `to`. */
static size_t
find_end(const uint64_t *gear, const uint8_t *bytes, size_t from, size_t to, uint64_t mask,
         uint64_t *hash)
{
    uint64_t state = *hash;
    for (size_t i = from; i < to; i++) {
        state = (state << 1) + gear[bytes[i]];
        if (!(state & mask))
            return i + 1;
    }
    *hash = state;
    return to;
}

size_t
chunker_cut(const struct chunker *chunker, const uint8_t *bytes, size_t size)
{
    uint64_t hash = 0;
    size_t end = size < CHUNKER_MOST ? size : CHUNKER_MOST;
    size_t middle = end < CHUNKER_USUAL ? end : CHUNKER_USUAL;
    if (end <= CHUNKER_LEAST)
        return end;
    /* 64 bytes before the first possible end fill the hash. */
    size_t start = CHUNKER_LEAST - 64;
    for (size_t i = start; i < CHUNKER_LEAST; i++)
        hash = (hash << 1) + chunker->gear[bytes[i]];
    size_t found = find_end(chunker->gear, bytes, CHUNKER_LEAST, middle, MASK_BEFORE, &hash);
    if (found < middle || middle == end)
        return found;
    return find_end(chunker->gear, bytes, middle, end, MASK_BEHIND, &hash);
}
