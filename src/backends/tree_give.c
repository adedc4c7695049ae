/* SPDX-License-Identifier: Apache-2.0 */
/* Giving trees to a group: see tree.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/tree.h"
#include "base/files.h"
#include "base/tree_walk.h"

#define DIRECTORY_BITS (S_ISGID | S_IRWXG)
#define FILE_BITS (S_IRGRP | S_IWGRP)

/* Files that their owner may execute become executable for the group. */
static mode_t
mode_for(const struct stat *found)
{
    if (S_ISDIR(found->st_mode))
        return (found->st_mode | DIRECTORY_BITS) & 07777;
    mode_t run = found->st_mode & S_IXUSR ? S_IXGRP : 0;
    return (found->st_mode | FILE_BITS | run) & 07777;
}

/* `fd` may be opened with O_PATH; fchmod does not work on that. */
static struct error *
give(int fd, const struct stat *found, gid_t group)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fchownat(fd, "", (uid_t)-1, group, AT_EMPTY_PATH) != 0)
        return error_from_errno(errno, "give a file to the group %u", group);
    /* Afterwards: changing the group removes set-id bits. */
    if ((S_ISDIR(found->st_mode) || S_ISREG(found->st_mode)) && chmod(path, mode_for(found)) != 0)
        return error_from_errno(errno, "let the group %u write to a file", group);
    return NULL;
}

static struct error *
give_entry(struct tree_walk *walk, const char *path, DIR *directory, const char *name, gid_t group)
{
    struct stat found;
    int fd AUTO(files_close) = openat(dirfd(directory), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &found) != 0)
        return NULL; /* removed meanwhile */
    if (S_ISDIR(found.st_mode))
        tree_walk_push(walk, path, name, false);
    return give(fd, &found, group);
}

static struct error *
give_directory(struct tree_walk *walk, const char *path, gid_t group)
{
    DIR *directory = NULL;
    const char *name;
    struct error *error = tree_walk_open(walk, path, &directory);
    if (error || !directory)
        return error;
    while (!error && (name = tree_walk_read(directory, &error)))
        error = give_entry(walk, path, directory, name, group);
    closedir(directory);
    return error;
}

static struct error *
give_all_below(int directory, gid_t group)
{
    struct tree_walk walk = {.top = directory};
    struct error *error = NULL;
    struct tree_step *step;
    tree_walk_push(&walk, ".", ".", false);
    while (!error && (step = tree_walk_pop(&walk))) {
        error = give_directory(&walk, step->path, group);
        free(step);
    }
    tree_walk_clear(&walk);
    return error;
}

struct error *
tree_give(int directory, gid_t group)
{
    struct stat top;
    if (fstat(directory, &top) != 0)
        return error_from_errno(errno, "look at a tree");
    if (top.st_gid == group && (top.st_mode & DIRECTORY_BITS) == DIRECTORY_BITS)
        return NULL;
    struct error *error = give_all_below(directory, group);
    /* The root last: only now is true what it says about everything below. */
    return error ? error : give(directory, &top, group);
}
