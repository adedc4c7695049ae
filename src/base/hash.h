/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a. Ids that are stored contain it, so it must not change. Not safe against attackers. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t
hash_bytes(const char *bytes, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

static inline uint64_t
hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}

#endif
