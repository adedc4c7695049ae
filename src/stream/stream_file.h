/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a file as commands: its data as writes, its holes as nothing or as holes. */
#ifndef STREAM_STREAM_FILE_H
#define STREAM_STREAM_FILE_H

#include <stdbool.h>

#include "stream/stream_writer.h"

/*
 * Sends the bytes from `start` to `end` of the open file. `with_holes` is for a target that may
 * have data where the file has a hole. Sets `*reached` to the end of the last command's range.
 */
MUST_CHECK struct error *stream_file_send(struct stream_writer *writer, const char *path, int fd,
                                          uint64_t start, uint64_t end, bool with_holes,
                                          uint64_t *reached);

MUST_CHECK struct error *stream_file_truncate(struct stream_writer *writer, const char *path,
                                              uint64_t size);

#endif
