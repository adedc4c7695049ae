/* SPDX-License-Identifier: Apache-2.0 */
/* Compressing, which the program itself never does. */
#ifndef UNIT_PACKED_H
#define UNIT_PACKED_H

#include <stdlib.h>
#include <zlib.h>

#include "base/buffer.h"

#define PACKED_GZIP (15 + 16)
#define PACKED_ZLIB 15

/* Appends the bytes as gzip, or as another format of zlib's. */
static inline void
packed_append(struct buffer *out, const void *bytes, size_t size, int window_bits)
{
    z_stream stream = {.next_in = (Bytef *)bytes, .avail_in = (uInt)size};
    if (deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    size_t room = deflateBound(&stream, size) + 64;
    stream.next_out = buffer_reserve(out, room);
    stream.avail_out = (uInt)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    out->size += room - stream.avail_out;
    deflateEnd(&stream);
}

#endif
