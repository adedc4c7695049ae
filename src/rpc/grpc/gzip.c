/* SPDX-License-Identifier: Apache-2.0 */
/* Decompressing gzip with a limit: see gzip.h. The only file that uses zlib. */
#include "rpc/grpc/gzip.h"

#include <zlib.h>

#define GZIP_WINDOW_BITS (15 + 16)

static void
end_inflate(z_stream *stream)
{
    inflateEnd(stream);
}

struct error *
gzip_inflate(const uint8_t *bytes, size_t size, uint8_t *out, size_t limit, size_t *out_size)
{
    z_stream stream AUTO(end_inflate) = {.next_in = (Bytef *)bytes,
                                         .avail_in = (uInt)size,
                                         .next_out = out,
                                         .avail_out = (uInt)limit};
    if (inflateInit2(&stream, GZIP_WINDOW_BITS) != Z_OK)
        return error_new(CODE_RESOURCE_EXHAUSTED, "no memory to decompress a message");
    int state = inflate(&stream, Z_FINISH);
    *out_size = limit - stream.avail_out;
    if (state == Z_STREAM_END)
        return NULL;
    if (state == Z_BUF_ERROR && stream.avail_in && !stream.avail_out)
        return error_new(CODE_RESOURCE_EXHAUSTED,
                         "compressed message is larger than the limit of %zu bytes", limit);
    return error_new(CODE_INTERNAL, "compressed message is not valid gzip");
}
