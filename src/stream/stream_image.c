/* SPDX-License-Identifier: Apache-2.0 */
/* Images as streams: see stream_image.h. */
#include "stream/stream_image.h"

#include <errno.h>
#include <sys/stat.h>

#include "stream/stream_file.h"

struct error *
stream_image_open(struct stream_image *image, int fd, const struct stream_position *from,
                  const struct stream_sink *sink)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return error_from_errno(errno, "look at an image");
    if (!S_ISREG(status.st_mode))
        return error_new(CODE_INVALID_ARGUMENT, "an image must be a regular file");
    image->fd = fd;
    image->size = (uint64_t)status.st_size;
    return stream_writer_open(&image->writer, from, sink);
}

struct error *
stream_image_add(struct stream_image *image, uint64_t offset, uint64_t size)
{
    uint64_t reached;
    if (offset > image->size || size > image->size - offset)
        return error_new(CODE_OUT_OF_RANGE, "an image of %llu bytes has no bytes %llu to %llu",
                         (unsigned long long)image->size, (unsigned long long)offset,
                         (unsigned long long)(offset + size));
    return stream_file_send(&image->writer, STREAM_IMAGE_NAME, image->fd, offset, offset + size,
                            true, &reached);
}

struct error *
stream_image_finish(struct stream_image *image, struct stream_position *end)
{
    struct error *error = stream_file_truncate(&image->writer, STREAM_IMAGE_NAME, image->size);
    return error ? error : stream_writer_finish(&image->writer, end);
}

void
stream_image_close(struct stream_image *image)
{
    stream_writer_close(&image->writer);
}
