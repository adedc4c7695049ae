/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing an image with the repository: see compare.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "exports/compare.h"
#include "exports/image_manifest.h"

static struct error *
read_image(const struct compare_options *options, uint64_t offset, uint8_t *bytes, size_t size)
{
    for (size_t have = 0; have < size;) {
        ssize_t got = pread(options->fd, bytes + have, size - have, (off_t)(offset + have));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? error_from_errno(errno, "read the image")
                           : error_new(CODE_DATA_LOSS, "the image is too short");
        have += (size_t)got;
    }
    return NULL;
}

static struct error *
compare_chunk(const struct compare_options *options, uint64_t index, const struct repository_id *id,
              uint8_t *expected, uint8_t *found)
{
    uint64_t offset = index * IMAGE_CHUNK, left = options->size - offset;
    size_t size = left < IMAGE_CHUNK ? (size_t)left : IMAGE_CHUNK, stored = IMAGE_CHUNK;
    struct error *error = NULL;
    if (image_id_is_zero(id))
        memset(expected, 0, IMAGE_CHUNK);
    else
        error = repository_read(options->repository, id, expected, &stored);
    if (!error)
        error = read_image(options, offset, found, size);
    if (!error && (stored != IMAGE_CHUNK || memcmp(expected, found, size) != 0))
        error = error_new(CODE_DATA_LOSS, "the image differs between byte %ju and %ju",
                          (uintmax_t)offset, (uintmax_t)(offset + size));
    return error;
}

struct error *
compare_image(const struct compare_options *options)
{
    struct image_reader manifest AUTO(image_reader_close) = {0};
    uint8_t *expected = memory_map(REPOSITORY_CHUNK_MAX), *found = memory_map(IMAGE_CHUNK);
    const struct progress *progress = options->progress;
    struct error *error =
        image_reader_open(&manifest, options->repository, &options->root, options->size);
    for (uint64_t i = 0; !error && i < manifest.count; i++) {
        struct repository_id id;
        error = image_reader_get(&manifest, i, &id);
        if (!error)
            error = compare_chunk(options, i, &id, expected, found);
        uint64_t done = (i + 1) * IMAGE_CHUNK;
        if (!error)
            progress->report(progress->context, done < options->size ? done : options->size,
                             options->size);
        if (!error && progress->cancelled(progress->context))
            error = error_new(CODE_CANCELLED, "the comparison was cancelled");
    }
    memory_unmap(expected, REPOSITORY_CHUNK_MAX);
    memory_unmap(found, IMAGE_CHUNK);
    return error;
}
