/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk image as a stream about one file, STREAM_IMAGE_NAME. Only ranges that are added are sent:
 * for a full image its data, for a later one what has changed. The target's file must exist; its
 * owner, mode and other metadata are its own. The image must not change meanwhile.
 */
#ifndef STREAM_STREAM_IMAGE_H
#define STREAM_STREAM_IMAGE_H

#include "stream/stream_writer.h"

#define STREAM_IMAGE_NAME "image"

struct stream_image {
    struct stream_writer writer;
    int fd;
    uint64_t size;
};

/* The descriptor and the sink must live as long as the image. */
MUST_CHECK struct error *stream_image_open(struct stream_image *image, int fd,
                                           const struct stream_position *from,
                                           const struct stream_sink *sink);

/*
 * Sends a range: data as data, holes as holes. A stream that continues gets the same ranges in the
 * same order.
 */
MUST_CHECK struct error *stream_image_add(struct stream_image *image, uint64_t offset,
                                          uint64_t size);
MUST_CHECK struct error *stream_image_finish(struct stream_image *image,
                                             struct stream_position *end);

/* Also for `struct stream_image i AUTO(stream_image_close) = {0}`. */
void stream_image_close(struct stream_image *image);

#endif
