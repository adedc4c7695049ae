/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the contents of files into chunks where the contents say so, so that an insertion changes
 * only the chunks around it. The places depend on a secret of the repository: the sizes of its
 * chunks do not tell what is in them.
 *
 * A chunk ends behind the first byte, at least CHUNKER_LEAST from its start, where a rolling hash
 * of the last 64 bytes has all bits of a mask clear; or after CHUNKER_MOST. Before CHUNKER_USUAL
 * the mask has more bits than behind it, so that most chunks are of about that size.
 */
#ifndef EXPORTS_CHUNKER_H
#define EXPORTS_CHUNKER_H

#include <stddef.h>
#include <stdint.h>

#define CHUNKER_LEAST (256u << 10)
#define CHUNKER_USUAL (1u << 20)
#define CHUNKER_MOST (4u << 20)
#define CHUNKER_SECRET 32

struct chunker {
    uint64_t gear[256];
};

void chunker_init(struct chunker *chunker, const uint8_t secret[CHUNKER_SECRET]);

/*
 * The size of the first chunk of these bytes, which are CHUNKER_MOST or more, or all up to the end
 * of the contents.
 */
size_t chunker_cut(const struct chunker *chunker, const uint8_t *bytes, size_t size);

#endif
