/* SPDX-License-Identifier: Apache-2.0 */
/* The tree that a stream is applied to: see stream_tree.h. */
#include "stream/stream_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define DEFAULT_ACL "system.posix_acl_default"

static char *
copy_text(struct stream_text text)
{
    char *copy = memory_new(text.size + 1);
    memcpy(copy, text.bytes, text.size);
    copy[text.size] = 0;
    return copy;
}

static bool
has_default_acl(int fd)
{
    return fgetxattr(fd, DEFAULT_ACL, NULL, 0) > 0;
}

struct error *
stream_tree_open(struct stream_tree *tree, int root)
{
    *tree = (struct stream_tree){.root.fd = -1, .file.fd = -1};
    tree->root.fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree->root.fd < 0)
        return error_from_errno(errno, "open the target of a stream");
    tree->root.has_default_acl = has_default_acl(tree->root.fd);
    return NULL;
}

static void
close_directory(struct stream_directory *directory)
{
    if (directory->path)
        close(directory->fd);
    free(directory->path);
    *directory = (struct stream_directory){0};
}

void
stream_tree_close_file(struct stream_tree *tree)
{
    files_close(&tree->file.fd);
    free(tree->file.path);
    tree->file = (struct stream_file){.fd = -1};
}

void
stream_tree_forget(struct stream_tree *tree)
{
    stream_tree_close_file(tree);
    for (unsigned i = 0; i < STREAM_TREE_DIRECTORIES; i++)
        close_directory(&tree->directories[i]);
    tree->root.has_default_acl = has_default_acl(tree->root.fd);
}

void
stream_tree_close(struct stream_tree *tree)
{
    if (tree->root.fd < 0)
        return;
    stream_tree_forget(tree);
    files_close(&tree->root.fd);
}

/* The open directory with this path, or NULL; then `*oldest` is the one to replace. */
static struct stream_directory *
find_directory(struct stream_tree *tree, struct stream_text path, struct stream_directory **oldest)
{
    *oldest = &tree->directories[0];
    for (unsigned i = 0; i < STREAM_TREE_DIRECTORIES; i++) {
        struct stream_directory *known = &tree->directories[i];
        if (known->path &&
            stream_text_is_same((struct stream_text){known->path, known->path_size}, path)) {
            known->used_at = ++tree->uses;
            return known;
        }
        if (known->used_at < (*oldest)->used_at)
            *oldest = known;
    }
    return NULL;
}

static struct error *
explain_open(int errnum, const char *path)
{
    if (errnum == ELOOP || errnum == EXDEV || errnum == ENOTDIR)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the stream leads through what is no directory of the tree: %s", path);
    return error_from_errno(errnum, "open %s", path);
}

static struct error *
open_directory(struct stream_tree *tree, struct stream_text path, struct stream_directory **out)
{
    struct stream_directory *oldest;
    *out = &tree->root;
    if (!path.size)
        return NULL;
    *out = find_directory(tree, path, &oldest);
    if (*out)
        return NULL;
    char *text AUTO(memory_cleanup) = copy_text(path);
    int fd = files_open_below(tree->root.fd, text, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return explain_open(errno, text);
    close_directory(oldest);
    *oldest = (struct stream_directory){.path = STEAL(text),
                                        .path_size = path.size,
                                        .fd = fd,
                                        .has_default_acl = has_default_acl(fd),
                                        .used_at = ++tree->uses};
    *out = oldest;
    return NULL;
}

struct error *
stream_tree_find(struct stream_tree *tree, struct stream_text path, struct stream_entry *out)
{
    const char *slash = memrchr(path.bytes, '/', path.size);
    const char *name = slash ? slash + 1 : path.bytes;
    size_t size = path.size - (size_t)(name - path.bytes);
    if (!size)
        return error_new(CODE_INVALID_ARGUMENT, "the stream replaces the root of the tree");
    struct stream_text parent = {path.bytes, slash ? (size_t)(slash - path.bytes) : 0};
    struct stream_directory *directory;
    struct error *error = open_directory(tree, parent, &directory);
    if (error)
        return error;
    out->directory = directory->fd;
    out->has_default_acl = directory->has_default_acl;
    memcpy(out->name, name, size); /* stream_command.c has checked the size */
    out->name[size] = 0;
    return NULL;
}

/*
 * Looks at the file before it opens it: to open a device can have effects already. Nobody else can
 * replace it in between.
 */
static struct error *
open_regular(struct stream_tree *tree, struct stream_text path, int flags, int *out)
{
    struct stream_entry entry;
    struct stat status;
    struct error *error = stream_tree_find(tree, path, &entry);
    if (error)
        return error;
    if (fstatat(entry.directory, entry.name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return error_from_errno(errno, "look at %s", entry.name);
    if (!S_ISREG(status.st_mode))
        return error_new(CODE_INVALID_ARGUMENT, "%s has contents but is not a regular file",
                         entry.name);
    *out = files_open_below(entry.directory, entry.name, flags | O_NONBLOCK);
    return *out < 0 ? explain_open(errno, entry.name) : NULL;
}

struct error *
stream_tree_keep_file(struct stream_tree *tree, struct stream_text path, int fd)
{
    struct stat status;
    stream_tree_close_file(tree);
    if (fstat(fd, &status) != 0) {
        struct error *error = error_from_errno(errno, "look at a file");
        close(fd);
        return error;
    }
    tree->file = (struct stream_file){
        .path = copy_text(path), .path_size = path.size, .fd = fd, .inode = status.st_ino};
    return NULL;
}

static bool
is_open_file(const struct stream_tree *tree, struct stream_text path)
{
    return tree->file.path &&
           stream_text_is_same((struct stream_text){tree->file.path, tree->file.path_size}, path);
}

struct error *
stream_tree_open_file(struct stream_tree *tree, struct stream_text path)
{
    if (is_open_file(tree, path))
        return NULL;
    int fd = -1;
    struct error *error = open_regular(tree, path, O_RDWR, &fd);
    return error ? error : stream_tree_keep_file(tree, path, fd);
}

struct error *
stream_tree_open_source(struct stream_tree *tree, struct stream_text path, int *out)
{
    return open_regular(tree, path, O_RDONLY, out);
}

int
stream_tree_find_open(struct stream_tree *tree, struct stream_text path)
{
    if (is_open_file(tree, path))
        return tree->file.fd;
    struct stream_directory *oldest;
    struct stream_directory *known = path.size ? find_directory(tree, path, &oldest) : &tree->root;
    return known ? known->fd : -1;
}
