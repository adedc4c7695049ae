/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed pieces: see stream_zstd.h. */
#include "stream/stream_zstd.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"

#define LEVEL 1

struct stream_zstd {
    ZSTD_CCtx *context;
};

struct stream_zstd *
stream_zstd_new(void)
{
    struct stream_zstd *zstd = memory_zeroed(sizeof *zstd);
    zstd->context = ZSTD_createCCtx();
    if (!zstd->context)
        memory_exhausted();
    return zstd;
}

void
stream_zstd_free(struct stream_zstd *zstd)
{
    if (!zstd)
        return;
    ZSTD_freeCCtx(zstd->context);
    free(zstd);
}

size_t
stream_zstd_pack(struct stream_zstd *zstd, const uint8_t *bytes, size_t size, uint8_t *out,
                 size_t room)
{
    size_t got = ZSTD_compressCCtx(zstd->context, out, room, bytes, size, LEVEL);
    return ZSTD_isError(got) ? 0 : got;
}

struct error *
stream_zstd_unpack(const uint8_t *packed, size_t packed_size, uint8_t *out, size_t size)
{
    size_t got = ZSTD_decompress(out, size, packed, packed_size);
    if (!ZSTD_isError(got) && got == size)
        return NULL;
    return error_new(CODE_DATA_LOSS, "a compressed piece of a transfer is damaged");
}
