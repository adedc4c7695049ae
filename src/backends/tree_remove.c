/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing trees: see tree.h.
 *
 * A directory that is not empty is not entered but moved to the root of the tree under a new name,
 * and removed from there later. So a tree of any depth, even one that no path can name, needs only
 * a handful of descriptors. Recursion was rejected: the user of the volume determines its depth.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "backends/tree.h"
#include "base/files.h"
#include "base/tree_walk.h"

struct removal {
    int top;
    unsigned long long moved; /* how many directories were renamed */
    bool is_unfinished;       /* a directory at the root is not empty */
};

typedef struct error *entry_action(struct removal *removal, int directory, const char *name);

static struct error *
for_each_entry(struct removal *removal, int fd, entry_action *act)
{
    struct error *error = NULL;
    const char *name;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    if (!directory) {
        error = error_from_errno(errno, "read a directory");
        files_close(&copy);
        return error;
    }
    rewinddir(directory);
    while (!error && (name = tree_walk_read(directory, &error)))
        error = act(removal, fd, name);
    closedir(directory);
    return error;
}

/* Skips a name that the user has taken. */
static int
move_up(struct removal *removal, int directory, const char *name)
{
    int failed;
    do {
        char new_name[64];
        snprintf(new_name, sizeof new_name, "skycap-removes-%llu", removal->moved++);
        failed = renameat(directory, name, removal->top, new_name);
    } while (failed && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
    removal->is_unfinished |= !failed;
    return failed;
}

static int
remove_or_move(struct removal *removal, int directory, const char *name, bool is_directory)
{
    if (unlinkat(directory, name, is_directory ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
        return 0;
    if (!is_directory || (errno != ENOTEMPTY && errno != EEXIST))
        return -1;
    if (directory != removal->top)
        return move_up(removal, directory, name);
    removal->is_unfinished = true;
    return 0;
}

/*
 * A flag may forbid it or, if we are not root, the mode: of the entry, of its directory, or of the
 * root.
 */
static void
make_removable(struct removal *removal, int directory, const char *name, bool is_directory)
{
    /* If it does not help, the removal that follows reports it. */
    int ignored = fchmod(directory, 0700);
    if (is_directory)
        ignored = fchmodat(directory, name, 0700, AT_SYMLINK_NOFOLLOW);
    (void)ignored;
    int fd AUTO(files_close) = files_open_below(directory, name, O_RDONLY | O_NONBLOCK);
    if (fd >= 0)
        tree_seal(fd, false);
    tree_seal(directory, false);
    tree_seal(removal->top, false);
}

static struct error *
remove_entry(struct removal *removal, int directory, const char *name)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? NULL : error_from_errno(errno, "look at %s", name);
    bool is_directory = S_ISDIR(status.st_mode);
    int failed = remove_or_move(removal, directory, name, is_directory);
    if (failed && (errno == EPERM || errno == EACCES)) {
        make_removable(removal, directory, name, is_directory);
        failed = remove_or_move(removal, directory, name, is_directory);
    }
    if (failed && errno == EBUSY)
        return error_new(CODE_FAILED_PRECONDITION, "something is mounted at %s; unmount it", name);
    return failed ? error_from_errno(errno, "remove %s", name) : NULL;
}

static struct error *
empty_subdirectory(struct removal *removal, int directory, const char *name)
{
    int fd AUTO(files_close) = files_open_below(directory, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == EACCES && fchmodat(directory, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
        fd = files_open_below(directory, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == EXDEV)
        return error_new(CODE_FAILED_PRECONDITION, "something is mounted at %s; unmount it", name);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? NULL
                                                   : error_from_errno(errno, "open %s", name);
    return for_each_entry(removal, fd, remove_entry);
}

struct error *
tree_remove(int parent, const char *name)
{
    int top AUTO(files_close) = files_open_directory(parent, name);
    struct removal removal = {.top = top};
    if (top < 0 && errno == ENOENT)
        return NULL;
    if (top < 0)
        return error_from_errno(errno, "open %s", name);
    struct error *error = for_each_entry(&removal, top, remove_entry);
    while (!error && removal.is_unfinished) {
        error = for_each_entry(&removal, top, empty_subdirectory);
        removal.is_unfinished = false;
        if (!error)
            error = for_each_entry(&removal, top, remove_entry);
    }
    if (!error && unlinkat(parent, name, AT_REMOVEDIR) != 0)
        error = error_from_errno(errno, "remove the directory");
    return error_wrap(error, "remove the tree %s", name);
}
