/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that change the metadata of a file, a directory or anything else in a tree. They can
 * be repeated. No symbolic link is followed.
 */
#ifndef STREAM_STREAM_METADATA_H
#define STREAM_STREAM_METADATA_H

#include "stream/stream_tree.h"

/*
 * Security labels belong to the host, and properties of btrfs mean nothing elsewhere: it is no
 * error if the file system does not take these.
 */
MUST_CHECK struct error *stream_metadata_set_xattr(struct stream_tree *tree,
                                                   const struct stream_command *command);
/* Success if there is no such attribute. */
MUST_CHECK struct error *stream_metadata_remove_xattr(struct stream_tree *tree,
                                                      const struct stream_command *command);
MUST_CHECK struct error *stream_metadata_chmod(struct stream_tree *tree,
                                               const struct stream_command *command);
MUST_CHECK struct error *stream_metadata_chown(struct stream_tree *tree,
                                               const struct stream_command *command);
MUST_CHECK struct error *stream_metadata_utimes(struct stream_tree *tree,
                                                const struct stream_command *command);

#endif
