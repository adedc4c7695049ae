/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies a stream to a directory, on any file system, and continues after a crash.
 *
 * A commit makes everything that was applied durable and then saves the position. After a crash a
 * new receiver is opened at the position that was saved last, and the stream is fed from there.
 * Commands between that position and the crash are applied a second time, to a tree that has their
 * effects, or only those of the first few (and any part of the data). This gives the same tree:
 *
 *   mkfile, mknod, mkfifo,   What is there is removed first. All that the stream says about the
 *   mksock, symlink          file comes after, and so is said again.
 *   mkdir                    A directory that is there stays, with what is in it.
 *   link                     A name that is there and is of another file is removed first.
 *   rename                   A source that is missing has been renamed.
 *   unlink, rmdir            A name that is missing has been removed.
 *   write, clone, truncate,  Set the same bytes, size, attribute, mode, owner or times again.
 *   fallocate, set_xattr,
 *   chmod, chown, utimes
 *   remove_xattr             An attribute that is missing has been removed.
 *
 * Some commands would do harm if they were repeated together with later ones (stream_hazards.h):
 * before the later one the receiver commits on its own. Streams of whole trees have no such
 * commands, except for directories that the kernel first makes under a temporary name.
 *
 * The kernel makes a file under a temporary name and then renames it. The receiver makes it with
 * its final name at once.
 *
 * Not thread safe: one owner at a time. Of no use after an error but to be closed.
 */
#ifndef STREAM_STREAM_RECEIVER_H
#define STREAM_STREAM_RECEIVER_H

#include "stream/stream.h"

struct stream_receiver;

struct stream_receiver_options {
    /*
     * The tree: empty, or with the contents that the stream is based on. Nobody else changes it.
     * Used only during stream_receiver_open.
     */
    int root;
    struct stream_position from;
    /* No file may become larger. 0: as large as the file system allows. */
    uint64_t max_file_bytes;
    /* Saves the position durably; the tree is durable up to there. */
    struct error *(*save)(void *context, const struct stream_position *position);
    void *context;
};

MUST_CHECK struct error *stream_receiver_open(const struct stream_receiver_options *options,
                                              struct stream_receiver **out);

/*
 * Applies each command as soon as it is complete. The larger the pieces, the larger the writes.
 * DATA_LOSS if the stream is damaged, INVALID_ARGUMENT if it contains what no producer sends,
 * RESOURCE_EXHAUSTED if there is no space.
 */
MUST_CHECK struct error *stream_receiver_feed(struct stream_receiver *receiver,
                                              const uint8_t *bytes, size_t size);

/* Makes durable what was applied (syncfs) and saves the position. Cheap if there is nothing new. */
MUST_CHECK struct error *stream_receiver_commit(struct stream_receiver *receiver);

/* Behind the last command that was applied: where a commit would be. */
struct stream_position stream_receiver_position(const struct stream_receiver *receiver);

/*
 * Commits a stream that is complete. `sent` is the position that the producer ended with. DATA_LOSS
 * if the end of the stream is missing or the positions differ.
 */
MUST_CHECK struct error *stream_receiver_finish(struct stream_receiver *receiver,
                                                const struct stream_position *sent);

/* Commits nothing. NULL is allowed. */
void stream_receiver_close(struct stream_receiver *receiver);

#endif
