/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a crash a receiver applies all commands since the last commit again, to a tree in which
 * some or all of them have been applied. Each command alone can be repeated (stream_receiver.h).
 * Some pairs cannot: if "rename a b" is followed by "mkfile a", a repetition of the first would
 * move the new file over the old one. This remembers what has happened to which path since the
 * last commit, and tells which command needs a commit before it.
 *
 * Paths are kept as 64-bit hashes. If two are equal, there is a commit more than necessary.
 */
#ifndef STREAM_STREAM_HAZARDS_H
#define STREAM_STREAM_HAZARDS_H

#include <stdbool.h>

#include "stream/stream_command.h"

/* What a command does to a path. */
enum stream_use {
    STREAM_USES,      /* reads or changes the file, or makes another name of it */
    STREAM_MAKES,     /* anything but a directory */
    STREAM_MAKES_DIR, /* a directory */
    STREAM_MOVES_FROM,
    STREAM_MOVES_TO,
    STREAM_UNLINKS,
    STREAM_REMOVES_DIR,
    STREAM_USE_COUNT
};

struct stream_hazards;

NEVER_NULL struct stream_hazards *stream_hazards_new(void);
void stream_hazards_free(struct stream_hazards *hazards);

/* There has been a commit: forgets everything. */
void stream_hazards_clear(struct stream_hazards *hazards);

/* Whether a commit must come before this use. */
bool stream_hazards_forbid(const struct stream_hazards *hazards, struct stream_text path,
                           enum stream_use use);

/* Remembers the use, before it takes place. */
void stream_hazards_note(struct stream_hazards *hazards, struct stream_text path,
                         enum stream_use use);

/* The same for the contents of files: what was cloned from a file must not be changed later. */
bool stream_hazards_forbid_change(const struct stream_hazards *hazards, uint64_t inode,
                                  uint64_t start, uint64_t end);
void stream_hazards_note_clone(struct stream_hazards *hazards, uint64_t inode, uint64_t start,
                               uint64_t end);

/* There is no space to remember more: a commit must come before the next command. */
bool stream_hazards_are_full(const struct stream_hazards *hazards);

#endif
