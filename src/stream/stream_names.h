/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands that change names. Each can be applied again to a tree to which it has been applied
 * before: see stream_receiver.h. All return INVALID_ARGUMENT for what no producer sends.
 */
#ifndef STREAM_STREAM_NAMES_H
#define STREAM_STREAM_NAMES_H

#include "stream/stream_tree.h"

/* mkfile, mkdir, mknod, mkfifo, mksock and symlink, at this path instead of the command's own. */
MUST_CHECK struct error *stream_names_make(struct stream_tree *tree,
                                           const struct stream_command *command,
                                           struct stream_text path);
MUST_CHECK struct error *stream_names_link(struct stream_tree *tree,
                                           const struct stream_command *command);
MUST_CHECK struct error *stream_names_rename(struct stream_tree *tree,
                                             const struct stream_command *command);
MUST_CHECK struct error *stream_names_unlink(struct stream_tree *tree,
                                             const struct stream_command *command);
MUST_CHECK struct error *stream_names_rmdir(struct stream_tree *tree,
                                            const struct stream_command *command);

#endif
