/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in a tree: see stream_names.h. What is made has mode 0600 or 0700 and no access list until
 * further commands give it others.
 */
#include "stream/stream_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/files.h"

static struct error *
fail(int errnum, const char *what, const char *name)
{
    return error_from_errno(errnum, "%s %s", what, name);
}

/* ---- temporary names ---- */

/*
 * The kernel gives temporary names in the root ("o257-7-0"), and does not send the times of the
 * root for that. So they are kept.
 */
struct root_times {
    bool are_kept;
    struct timespec times[2];
};

static bool
is_temporary(struct stream_text path)
{
    unsigned dashes = 0;
    if (path.size < 2 || path.bytes[0] != 'o')
        return false;
    for (size_t i = 1; i < path.size; i++) {
        if (path.bytes[i] == '-')
            dashes++;
        else if (path.bytes[i] < '0' || path.bytes[i] > '9')
            return false;
    }
    return dashes == 2;
}

static struct error *
remember_times(const struct stream_tree *tree, struct stream_text path, struct root_times *times)
{
    struct stat status;
    if (times->are_kept || !is_temporary(path))
        return NULL;
    if (fstat(tree->root.fd, &status) != 0)
        return fail(errno, "look at", "the root");
    *times = (struct root_times){true, {status.st_atim, status.st_mtim}};
    return NULL;
}

static struct error *
restore_times(const struct stream_tree *tree, const struct root_times *times)
{
    if (times->are_kept && futimens(tree->root.fd, times->times) != 0)
        return fail(errno, "set the times of", "the root");
    return NULL;
}

/* ---- making ---- */

/* The access list that a new entry has got from its directory is not in the stream. */
static struct error *
drop_acls(const struct stream_entry *entry)
{
    static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default"};
    char path[STREAM_NAME_MAX + 64];
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", entry->directory, entry->name);
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        if (lremovexattr(path, names[i]) != 0 && errno != ENODATA && errno != EOPNOTSUPP)
            return fail(errno, "remove the access list of", entry->name);
    }
    return NULL;
}

static int
make_symlink(const struct stream_entry *entry, struct stream_text target)
{
    char text[STREAM_PATH_MAX + 1];
    memcpy(text, target.bytes, target.size);
    text[target.size] = 0;
    return symlinkat(text, entry->directory, entry->name);
}

static int
make_node(const struct stream_entry *entry, const struct stream_command *command)
{
    mode_t mode = (mode_t)stream_command_number(command, STREAM_A_MODE);
    uint64_t device = stream_command_number(command, STREAM_A_RDEV);
    if ((!S_ISCHR(mode) && !S_ISBLK(mode)) || device > UINT32_MAX) {
        errno = EINVAL;
        return -1;
    }
    return mknodat(entry->directory, entry->name, (mode & S_IFMT) | 0600, (dev_t)device);
}

/* Returns 0, a descriptor of a new regular file, or -1 with errno. */
static int
make(const struct stream_entry *entry, const struct stream_command *command)
{
    switch (command->type) {
    case STREAM_MKFILE:
        return openat(entry->directory, entry->name,
                      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    case STREAM_MKDIR:
        return mkdirat(entry->directory, entry->name, 0700);
    case STREAM_SYMLINK:
        return make_symlink(entry, command->attributes[STREAM_A_PATH_LINK]);
    case STREAM_MKNOD:
        return make_node(entry, command);
    case STREAM_MKFIFO:
        return mknodat(entry->directory, entry->name, S_IFIFO | 0600, 0);
    default:
        return mknodat(entry->directory, entry->name, S_IFSOCK | 0600, 0);
    }
}

static bool
is_directory(const struct stream_entry *entry)
{
    struct stat status;
    return fstatat(entry->directory, entry->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
}

/*
 * What is there already was made by an earlier attempt. A directory stays: its entries are made
 * again one by one. Anything else is replaced, because all of it follows in the stream.
 */
struct error *
stream_names_make(struct stream_tree *tree, const struct stream_command *command,
                  struct stream_text path)
{
    struct stream_entry entry;
    struct root_times times = {0};
    struct error *error = stream_tree_find(tree, path, &entry);
    if (!error)
        error = remember_times(tree, path, &times);
    if (error)
        return error;
    int made = make(&entry, command);
    if (made < 0 && errno == EEXIST) {
        if (command->type == STREAM_MKDIR && is_directory(&entry))
            return entry.has_default_acl ? drop_acls(&entry) : NULL;
        if (unlinkat(entry.directory, entry.name, 0) != 0)
            return fail(errno, "replace", entry.name);
        stream_tree_close_file(tree);
        made = make(&entry, command);
    }
    if (made < 0)
        return fail(errno, "make", entry.name);
    if (command->type == STREAM_MKFILE)
        error = stream_tree_keep_file(tree, path, made);
    if (!error && entry.has_default_acl)
        error = drop_acls(&entry);
    return error ? error : restore_times(tree, &times);
}

/* ---- further names ---- */

static bool
is_same_file(const struct stream_entry *a, const struct stream_entry *b)
{
    struct stat left, right;
    return fstatat(a->directory, a->name, &left, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(b->directory, b->name, &right, AT_SYMLINK_NOFOLLOW) == 0 &&
           left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

static int
link_entries(const struct stream_entry *old, const struct stream_entry *new)
{
    return linkat(old->directory, old->name, new->directory, new->name, 0);
}

struct error *
stream_names_link(struct stream_tree *tree, const struct stream_command *command)
{
    struct stream_entry old, new;
    struct error *error = stream_tree_find(tree, command->attributes[STREAM_A_PATH_LINK], &old);
    if (!error)
        error = stream_tree_find(tree, command->attributes[STREAM_A_PATH], &new);
    if (error)
        return error;
    int result = link_entries(&old, &new);
    if (result != 0 && errno == EEXIST) {
        if (is_same_file(&old, &new))
            return NULL;
        if (unlinkat(new.directory, new.name, 0) != 0)
            return fail(errno, "replace", new.name);
        stream_tree_close_file(tree);
        result = link_entries(&old, &new);
    }
    return result != 0 ? fail(errno, "make another name of", old.name) : NULL;
}

/* A source that is missing has been renamed before. */
struct error *
stream_names_rename(struct stream_tree *tree, const struct stream_command *command)
{
    struct stream_entry from, to;
    struct root_times times = {0};
    struct stat status;
    struct error *error = stream_tree_find(tree, command->attributes[STREAM_A_PATH], &from);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    if (fstatat(from.directory, from.name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? NULL : fail(errno, "look at", from.name);
    error = stream_tree_find(tree, command->attributes[STREAM_A_PATH_TO], &to);
    if (!error)
        error = remember_times(tree, command->attributes[STREAM_A_PATH], &times);
    if (!error)
        error = remember_times(tree, command->attributes[STREAM_A_PATH_TO], &times);
    if (error)
        return error;
    if (renameat(from.directory, from.name, to.directory, to.name) != 0)
        return fail(errno, "rename", from.name);
    stream_tree_forget(tree);
    return restore_times(tree, &times);
}

static struct error *
remove_name(struct stream_tree *tree, struct stream_text path, int flags)
{
    struct stream_entry entry;
    struct root_times times = {0};
    struct error *error = stream_tree_find(tree, path, &entry);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    error = remember_times(tree, path, &times);
    if (error)
        return error;
    if (unlinkat(entry.directory, entry.name, flags) != 0 && errno != ENOENT)
        return fail(errno, "remove", entry.name);
    return restore_times(tree, &times);
}

struct error *
stream_names_unlink(struct stream_tree *tree, const struct stream_command *command)
{
    stream_tree_close_file(tree);
    return remove_name(tree, command->attributes[STREAM_A_PATH], 0);
}

struct error *
stream_names_rmdir(struct stream_tree *tree, const struct stream_command *command)
{
    stream_tree_forget(tree);
    return remove_name(tree, command->attributes[STREAM_A_PATH], AT_REMOVEDIR);
}
