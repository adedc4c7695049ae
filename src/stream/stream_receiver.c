/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving streams: see stream_receiver.h. A command that makes something waits for the next
 * command: if that renames it, it is made with its new name. The position of the receiver is then
 * still before it.
 */
#include "stream/stream_receiver.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "stream/stream_contents.h"
#include "stream/stream_hazards.h"
#include "stream/stream_metadata.h"
#include "stream/stream_names.h"
#include "stream/stream_sums.h"

struct stream_receiver {
    struct stream_receiver_options options;
    struct stream_frames frames;
    struct stream_tree tree;
    struct stream_contents contents;
    struct stream_hazards *hazards;
    struct stream_position applied;
    struct stream_position saved;
    struct buffer waiting; /* a whole command that makes something; empty: none */
    struct stream_position after_waiting;
};

/* ---- commits ---- */

struct error *
stream_receiver_commit(struct stream_receiver *receiver)
{
    struct error *error = stream_contents_flush(&receiver->contents);
    if (error || receiver->applied.offset == receiver->saved.offset)
        return error;
    error = files_sync(receiver->tree.root.fd);
    if (!error)
        error = receiver->options.save(receiver->options.context, &receiver->applied);
    if (error)
        return error_wrap(error, "commit a stream at byte %llu",
                          (unsigned long long)receiver->applied.offset);
    receiver->saved = receiver->applied;
    stream_hazards_clear(receiver->hazards);
    return NULL;
}

/* To be called before the use takes place. */
static struct error *
use(struct stream_receiver *receiver, struct stream_text path, enum stream_use kind)
{
    struct error *error = NULL;
    if (stream_hazards_forbid(receiver->hazards, path, kind))
        error = stream_receiver_commit(receiver);
    if (!error)
        stream_hazards_note(receiver->hazards, path, kind);
    return error;
}

/* ---- names ---- */

static struct error *
make(struct stream_receiver *receiver, const struct stream_command *command,
     struct stream_text path)
{
    bool is_directory = command->type == STREAM_MKDIR;
    struct error *error = use(receiver, path, is_directory ? STREAM_MAKES_DIR : STREAM_MAKES);
    return error ? error : stream_names_make(&receiver->tree, command, path);
}

/* Makes what waits, at the path that the command renames it to, and sets `*done`. */
static struct error *
make_waiting(struct stream_receiver *receiver, const struct stream_command *next, bool *done)
{
    struct stream_command command;
    const uint8_t *bytes = receiver->waiting.bytes;
    struct stream_frame frame = {(unsigned)stream_load(bytes + 4, 2), bytes,
                                 receiver->waiting.size};
    struct error *error = stream_command_parse(&frame, &command);
    if (error)
        return error;
    struct stream_text path = command.attributes[STREAM_A_PATH];
    *done =
        next->type == STREAM_RENAME && stream_text_is_same(next->attributes[STREAM_A_PATH], path);
    error = make(receiver, &command, *done ? next->attributes[STREAM_A_PATH_TO] : path);
    receiver->waiting.size = 0;
    if (!error)
        receiver->applied = receiver->after_waiting;
    return error;
}

static struct error *
link_names(struct stream_receiver *receiver, const struct stream_command *command)
{
    struct error *error = use(receiver, command->attributes[STREAM_A_PATH], STREAM_MAKES);
    if (!error)
        error = use(receiver, command->attributes[STREAM_A_PATH_LINK], STREAM_USES);
    return error ? error : stream_names_link(&receiver->tree, command);
}

static struct error *
rename_path(struct stream_receiver *receiver, const struct stream_command *command)
{
    struct stream_text from = command->attributes[STREAM_A_PATH];
    struct stream_text to = command->attributes[STREAM_A_PATH_TO];
    struct error *error = NULL;
    if (stream_hazards_forbid(receiver->hazards, to, STREAM_MOVES_TO))
        error = stream_receiver_commit(receiver);
    if (!error)
        error = use(receiver, from, STREAM_MOVES_FROM);
    return error ? error : stream_names_rename(&receiver->tree, command);
}

static struct error *
unlink_path(struct stream_receiver *receiver, const struct stream_command *command)
{
    struct error *error = use(receiver, command->attributes[STREAM_A_PATH], STREAM_UNLINKS);
    return error ? error : stream_names_unlink(&receiver->tree, command);
}

static struct error *
remove_directory(struct stream_receiver *receiver, const struct stream_command *command)
{
    struct error *error = use(receiver, command->attributes[STREAM_A_PATH], STREAM_REMOVES_DIR);
    return error ? error : stream_names_rmdir(&receiver->tree, command);
}

/* ---- contents ---- */

/* Opens the file and commits if something was cloned from what will be changed. */
static struct error *
prepare_change(struct stream_receiver *receiver, const struct stream_command *command)
{
    struct stream_range range;
    struct error *error = stream_contents_find_range(&receiver->contents, command, &range);
    if (!error)
        error = use(receiver, command->attributes[STREAM_A_PATH], STREAM_USES);
    if (!error)
        error = stream_tree_open_file(&receiver->tree, command->attributes[STREAM_A_PATH]);
    if (!error && stream_hazards_forbid_change(receiver->hazards, receiver->tree.file.inode,
                                               range.start, range.end)) {
        error = stream_receiver_commit(receiver);
        stream_hazards_note(receiver->hazards, command->attributes[STREAM_A_PATH], STREAM_USES);
    }
    return error;
}

static struct error *
clone_data(struct stream_receiver *receiver, const struct stream_command *command)
{
    int source AUTO(files_close) = -1;
    struct stat status;
    struct stream_text path = command->attributes[STREAM_A_CLONE_PATH];
    uint64_t start = stream_command_number(command, STREAM_A_CLONE_OFFSET);
    uint64_t size = stream_command_number(command, STREAM_A_CLONE_LEN);
    struct error *error = use(receiver, path, STREAM_USES);
    if (!error)
        error = prepare_change(receiver, command);
    if (!error)
        error = stream_tree_open_source(&receiver->tree, path, &source);
    if (error)
        return error;
    if (fstat(source, &status) != 0)
        return error_from_errno(errno, "look at what is cloned");
    stream_hazards_note(receiver->hazards, path, STREAM_USES);
    stream_hazards_note_clone(receiver->hazards, status.st_ino, start, start + size);
    return stream_contents_clone(&receiver->contents, command, source);
}

static struct error *
change(struct stream_receiver *receiver, const struct stream_command *command)
{
    if (command->type == STREAM_CLONE)
        return clone_data(receiver, command);
    struct error *error = prepare_change(receiver, command);
    if (error)
        return error;
    if (command->type == STREAM_TRUNCATE)
        return stream_contents_truncate(&receiver->contents, command);
    return stream_contents_punch(&receiver->contents, command);
}

/* Only here writes may be collected, as long as they are of one file. */
static struct error *
write_data(struct stream_receiver *receiver, const struct stream_command *command)
{
    struct error *error = NULL;
    struct stream_text path = command->attributes[STREAM_A_PATH];
    if (stream_tree_find_open(&receiver->tree, path) != receiver->tree.file.fd)
        error = stream_contents_flush(&receiver->contents);
    if (!error)
        error = prepare_change(receiver, command);
    return error ? error : stream_contents_write(&receiver->contents, command);
}

static struct error *
set_metadata(struct stream_receiver *receiver, const struct stream_command *command)
{
    struct stream_tree *tree = &receiver->tree;
    struct error *error = use(receiver, command->attributes[STREAM_A_PATH], STREAM_USES);
    if (error)
        return error;
    switch (command->type) {
    case STREAM_SET_XATTR:
        return stream_metadata_set_xattr(tree, command);
    case STREAM_REMOVE_XATTR:
        return stream_metadata_remove_xattr(tree, command);
    case STREAM_CHMOD:
        return stream_metadata_chmod(tree, command);
    case STREAM_CHOWN:
        return stream_metadata_chown(tree, command);
    default:
        return stream_metadata_utimes(tree, command);
    }
}

/* ---- all commands ---- */

static struct error *
apply(struct stream_receiver *receiver, const struct stream_command *command)
{
    switch (command->type) {
    case STREAM_RENAME:
        return rename_path(receiver, command);
    case STREAM_LINK:
        return link_names(receiver, command);
    case STREAM_UNLINK:
        return unlink_path(receiver, command);
    case STREAM_RMDIR:
        return remove_directory(receiver, command);
    case STREAM_WRITE:
        return write_data(receiver, command);
    case STREAM_CLONE:
    case STREAM_TRUNCATE:
    case STREAM_FALLOCATE:
        return change(receiver, command);
    case STREAM_SET_XATTR:
    case STREAM_REMOVE_XATTR:
    case STREAM_CHMOD:
    case STREAM_CHOWN:
    case STREAM_UTIMES:
        return set_metadata(receiver, command);
    case STREAM_UPDATE_EXTENT:
        return error_new(CODE_INVALID_ARGUMENT, "the stream has no data");
    default: /* subvol, snapshot, end; and fileattr, which no other file system knows */
        return NULL;
    }
}

static bool
makes_something(unsigned type)
{
    return type >= STREAM_MKFILE && type <= STREAM_SYMLINK;
}

static struct error *
take_command(struct stream_receiver *receiver, const struct stream_frame *frame)
{
    struct stream_command command;
    bool done = false;
    if (stream_load(frame->bytes + 6, 4) != stream_sums_check(frame->bytes, frame->size))
        return error_new(CODE_DATA_LOSS, "the stream is damaged: a checksum is wrong");
    struct error *error = stream_command_parse(frame, &command);
    if (!error && frame->type != STREAM_WRITE)
        error = stream_contents_flush(&receiver->contents);
    if (!error && stream_hazards_are_full(receiver->hazards))
        error = stream_receiver_commit(receiver);
    if (!error && receiver->waiting.size)
        error = make_waiting(receiver, &command, &done);
    if (error)
        return error;
    if (makes_something(frame->type)) {
        buffer_append(&receiver->waiting, frame->bytes, frame->size);
        receiver->after_waiting = receiver->frames.position;
        return NULL;
    }
    error = done ? NULL : apply(receiver, &command);
    if (!error)
        receiver->applied = receiver->frames.position;
    return error;
}

static struct error *
take_frame(void *context, const struct stream_frame *frame)
{
    struct stream_receiver *receiver = context;
    if (frame->type == 0 && frame->size == STREAM_HEADER_BYTES &&
        receiver->frames.position.offset == STREAM_HEADER_BYTES) {
        receiver->applied = receiver->frames.position;
        return NULL;
    }
    return error_wrap(take_command(receiver, frame), "apply the command that ends at byte %llu",
                      (unsigned long long)receiver->frames.position.offset);
}

struct error *
stream_receiver_feed(struct stream_receiver *receiver, const uint8_t *bytes, size_t size)
{
    const struct stream_frame_sink sink = {take_frame, receiver};
    struct error *error = stream_frames_feed(&receiver->frames, bytes, size, &sink);
    return error ? error : stream_contents_flush(&receiver->contents);
}

/* ---- life ---- */

struct error *
stream_receiver_open(const struct stream_receiver_options *options, struct stream_receiver **out)
{
    struct stream_receiver *receiver = memory_zeroed(sizeof *receiver);
    struct error *error = stream_tree_open(&receiver->tree, options->root);
    if (error) {
        free(receiver);
        return error;
    }
    uint64_t max = options->max_file_bytes;
    receiver->options = *options;
    receiver->frames.position = receiver->applied = receiver->saved = options->from;
    receiver->contents = (struct stream_contents){
        .tree = &receiver->tree, .max_file_bytes = max && max < INT64_MAX ? max : INT64_MAX};
    receiver->hazards = stream_hazards_new();
    *out = receiver;
    return NULL;
}

struct stream_position
stream_receiver_position(const struct stream_receiver *receiver)
{
    return receiver->applied;
}

struct error *
stream_receiver_finish(struct stream_receiver *receiver, const struct stream_position *sent)
{
    /* A receiver that was opened at the end has nothing more to see. */
    if (!receiver->frames.has_ended && receiver->options.from.offset != sent->offset)
        return error_new(CODE_DATA_LOSS, "the stream has no end; it has %llu bytes",
                         (unsigned long long)receiver->frames.position.offset);
    if (receiver->applied.offset != sent->offset ||
        memcmp(receiver->applied.sum, sent->sum, STREAM_SUM_BYTES) != 0)
        return error_new(CODE_DATA_LOSS,
                         "the stream that was received is not the one that was sent: it has %llu "
                         "bytes of %llu",
                         (unsigned long long)receiver->applied.offset,
                         (unsigned long long)sent->offset);
    return stream_receiver_commit(receiver);
}

void
stream_receiver_close(struct stream_receiver *receiver)
{
    if (!receiver)
        return;
    stream_frames_clear(&receiver->frames);
    stream_tree_close(&receiver->tree);
    stream_hazards_free(receiver->hazards);
    buffer_clear(&receiver->waiting);
    free(receiver);
}
