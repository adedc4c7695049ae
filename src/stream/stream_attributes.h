/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata of a file as commands. */
#ifndef STREAM_STREAM_ATTRIBUTES_H
#define STREAM_STREAM_ATTRIBUTES_H

#include <sys/stat.h>

#include "stream/stream_writer.h"

/* Space for names and values of extended attributes. */
struct stream_attributes {
    struct stream_writer *writer;
    char *names;
    char *value;
};

void stream_attributes_init(struct stream_attributes *attributes, struct stream_writer *writer);
void stream_attributes_clear(struct stream_attributes *attributes);

/*
 * Sends owner, mode, extended attributes and times, in this order: a change of the owner removes
 * set-user-id bits and capabilities. The file is the descriptor, or the name in the directory `at`
 * if the descriptor is -1.
 */
MUST_CHECK struct error *stream_attributes_send(struct stream_attributes *attributes,
                                                const char *path, const struct stat *status, int fd,
                                                int at, const char *name);

#endif
