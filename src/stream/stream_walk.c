/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees as streams: see stream_walk.h. A directory is made, its entries follow, then its
 * subdirectories, and at last its own metadata: to make entries would change its times, and a
 * default access list would change the entries.
 */
#include "stream/stream_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/tree_walk.h"
#include "stream/stream_attributes.h"
#include "stream/stream_file.h"

struct walking {
    struct tree_walk walk;
    struct stream_writer writer;
    struct stream_attributes attributes;
    size_t links; /* files with several names so far */
};

/* The names of a directory. */
struct listing {
    struct arena arena;
    const char **names;
    size_t count;
    size_t capacity;
};

/* An entry that is being sent. */
struct entry {
    const char *directory; /* its path */
    const char *name;
    const char *path;
    int at; /* the open directory */
    struct stat status;
};

/* ---- listings ---- */

static void
clear_listing(struct listing *listing)
{
    arena_clear(&listing->arena);
    free(listing->names);
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct error *
read_names(DIR *directory, struct listing *out)
{
    struct error *error = NULL;
    const char *name;
    arena_init(&out->arena, NULL, 0, STREAM_WALK_NAMES_BYTES);
    while ((name = tree_walk_read(directory, &error))) {
        size_t size = strlen(name) + 1;
        char *copy = arena_try(&out->arena, size);
        if (!copy)
            return error_new(CODE_RESOURCE_EXHAUSTED, "a directory has too many entries");
        memcpy(copy, name, size);
        if (out->count == out->capacity) {
            out->capacity = out->capacity ? out->capacity * 2 : 64;
            out->names = memory_resize(out->names, out->capacity * sizeof *out->names);
        }
        out->names[out->count++] = copy;
    }
    if (out->count)
        qsort(out->names, out->count, sizeof *out->names, compare_names);
    return error;
}

/* ---- entries ---- */

/* Begins a command that makes something. Our receiver ignores the number of the inode. */
static struct error *
begin_making(struct walking *walking, unsigned command, const struct entry *entry)
{
    struct error *error = stream_writer_begin(&walking->writer, command, entry->path);
    if (!error)
        stream_writer_put_number(&walking->writer, STREAM_A_INO, entry->status.st_ino);
    return error;
}

static struct error *
make_plain(struct walking *walking, unsigned command, const struct entry *entry)
{
    struct error *error = begin_making(walking, command, entry);
    return error ? error : stream_writer_end(&walking->writer);
}

static struct error *
send_regular(struct walking *walking, const struct entry *entry)
{
    uint64_t size = (uint64_t)entry->status.st_size, reached = 0;
    int fd AUTO(files_close) = files_open_quietly(entry->at, entry->name, O_NONBLOCK);
    if (fd < 0)
        return error_from_errno(errno, "open %s", entry->path);
    struct error *error = make_plain(walking, STREAM_MKFILE, entry);
    if (!error)
        error = stream_file_send(&walking->writer, entry->path, fd, 0, size, false, &reached);
    if (!error && reached < size)
        error = stream_file_truncate(&walking->writer, entry->path, size);
    return error ? error
                 : stream_attributes_send(&walking->attributes, entry->path, &entry->status, fd,
                                          entry->at, entry->name);
}

static struct error *
make_symlink(struct walking *walking, const struct entry *entry)
{
    char target[PATH_MAX];
    ssize_t size = readlinkat(entry->at, entry->name, target, sizeof target);
    if (size < 0 || size > (ssize_t)STREAM_PATH_MAX)
        return error_from_errno(size < 0 ? errno : ENAMETOOLONG, "read the symbolic link %s",
                                entry->path);
    struct error *error = begin_making(walking, STREAM_SYMLINK, entry);
    if (error)
        return error;
    stream_writer_put(&walking->writer, STREAM_A_PATH_LINK, target, (size_t)size);
    return stream_writer_end(&walking->writer);
}

static struct error *
make_node(struct walking *walking, const struct entry *entry)
{
    mode_t mode = entry->status.st_mode;
    unsigned command = S_ISFIFO(mode)   ? STREAM_MKFIFO
                       : S_ISSOCK(mode) ? STREAM_MKSOCK
                                        : STREAM_MKNOD;
    struct error *error = begin_making(walking, command, entry);
    if (error)
        return error;
    stream_writer_put_number(&walking->writer, STREAM_A_MODE, mode);
    stream_writer_put_number(&walking->writer, STREAM_A_RDEV, entry->status.st_rdev);
    return stream_writer_end(&walking->writer);
}

static struct error *
send_other(struct walking *walking, const struct entry *entry)
{
    struct error *error =
        S_ISLNK(entry->status.st_mode) ? make_symlink(walking, entry) : make_node(walking, entry);
    return error ? error
                 : stream_attributes_send(&walking->attributes, entry->path, &entry->status, -1,
                                          entry->at, entry->name);
}

/* Sends a link if the file was sent under another name, and sets `*done`. */
static struct error *
send_link(struct walking *walking, const struct entry *entry, bool *done)
{
    const char *first =
        tree_walk_find_link(&walking->walk, &entry->status, entry->directory, entry->name);
    *done = first != NULL;
    if (!first && ++walking->links > STREAM_WALK_LINKS_MAX)
        return error_new(CODE_RESOURCE_EXHAUSTED, "more than %u files have several names",
                         STREAM_WALK_LINKS_MAX);
    if (!first)
        return NULL;
    struct error *error = stream_writer_begin(&walking->writer, STREAM_LINK, entry->path);
    if (error)
        return error;
    stream_writer_put_text(&walking->writer, STREAM_A_PATH_LINK, first);
    return stream_writer_end(&walking->writer);
}

static struct error *
send_entry(struct walking *walking, struct entry *entry)
{
    mode_t mode;
    bool done = false;
    if (fstatat(entry->at, entry->name, &entry->status, AT_SYMLINK_NOFOLLOW) != 0)
        return error_from_errno(errno, "look at %s", entry->path);
    mode = entry->status.st_mode;
    if (S_ISDIR(mode))
        return make_plain(walking, STREAM_MKDIR, entry);
    struct error *error = entry->status.st_nlink > 1 ? send_link(walking, entry, &done) : NULL;
    if (error || done)
        return error;
    return S_ISREG(mode) ? send_regular(walking, entry) : send_other(walking, entry);
}

/* ---- directories ---- */

/* Keeps in the listing only the names of directories. */
static struct error *
send_entries(struct walking *walking, const char *path, int directory, struct listing *listing)
{
    bool is_root = !strcmp(path, ".");
    size_t room = strlen(path) + NAME_MAX + 2;
    char *full AUTO(memory_cleanup) = memory_new(room);
    size_t directories = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const char *name = listing->names[i];
        snprintf(full, room, "%s%s%s", is_root ? "" : path, is_root ? "" : "/", name);
        struct entry entry = {.directory = path, .name = name, .path = full, .at = directory};
        struct error *error = send_entry(walking, &entry);
        if (error)
            return error;
        if (S_ISDIR(entry.status.st_mode))
            listing->names[directories++] = name;
    }
    listing->count = directories;
    return NULL;
}

static struct error *
enter(struct walking *walking, const char *path, DIR *directory)
{
    struct listing listing AUTO(clear_listing) = {0};
    struct error *error = read_names(directory, &listing);
    if (!error)
        error = send_entries(walking, path, dirfd(directory), &listing);
    if (error)
        return error;
    tree_walk_push(&walking->walk, ".", path, true);
    for (size_t i = listing.count; i > 0; i--)
        tree_walk_push(&walking->walk, path, listing.names[i - 1], false);
    return NULL;
}

static struct error *
leave(struct walking *walking, const char *path, int directory)
{
    struct stat status;
    if (fstat(directory, &status) != 0)
        return error_from_errno(errno, "look at the directory %s", path);
    return stream_attributes_send(&walking->attributes, path, &status, directory, directory, ".");
}

static struct error *
take_step(struct walking *walking, const struct tree_step *step)
{
    DIR *directory = NULL;
    struct error *error = tree_walk_open(&walking->walk, step->path, &directory);
    if (error)
        return error;
    if (!directory)
        return error_new(CODE_ABORTED, "the directory %s was removed", step->path);
    error = step->is_leaving ? leave(walking, step->path, dirfd(directory))
                             : enter(walking, step->path, directory);
    closedir(directory);
    return error;
}

/* The first command names a subvolume; other receivers make one. */
static struct error *
send_subvolume(struct stream_writer *writer)
{
    static const uint8_t no_uuid[16];
    struct error *error = stream_writer_begin(writer, STREAM_SUBVOL, "tree");
    if (error)
        return error;
    stream_writer_put(writer, STREAM_A_UUID, no_uuid, sizeof no_uuid);
    stream_writer_put_number(writer, STREAM_A_CTRANSID, 0);
    return stream_writer_end(writer);
}

static struct error *
send_tree(struct walking *walking)
{
    struct error *error = send_subvolume(&walking->writer);
    struct tree_step *step;
    tree_walk_push(&walking->walk, ".", ".", false);
    while (!error && (step = tree_walk_pop(&walking->walk))) {
        error = take_step(walking, step);
        free(step);
    }
    return error;
}

struct error *
stream_walk_send(int root, const struct stream_position *from, const struct stream_sink *sink,
                 struct stream_position *end)
{
    struct walking walking = {.walk.top = root};
    /* Where data lies is only known when it has been written. */
    struct error *error = files_sync(root);
    if (error)
        return error;
    error = stream_writer_open(&walking.writer, from, sink);
    stream_attributes_init(&walking.attributes, &walking.writer);
    if (!error)
        error = send_tree(&walking);
    if (!error)
        error = stream_writer_finish(&walking.writer, end);
    stream_attributes_clear(&walking.attributes);
    stream_writer_close(&walking.writer);
    tree_walk_clear(&walking.walk);
    return error;
}
