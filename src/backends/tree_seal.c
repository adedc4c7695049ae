/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealing trees: see tree.h. Files are sealed after all of them are written out: when a file
 * becomes immutable, ext4 writes it to the disk and waits, one file after the other, unless there
 * is nothing left to write.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "backends/tree.h"
#include "base/files.h"
#include "base/tree_walk.h"

bool
tree_seal(int fd, bool sealed)
{
    unsigned flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0)
        return false;
    unsigned wanted = sealed ? flags | FS_IMMUTABLE_FL : flags & ~(FS_IMMUTABLE_FL | FS_APPEND_FL);
    return wanted == flags || ioctl(fd, FS_IOC_SETFLAGS, &wanted) == 0;
}

static void
seal_entry(struct tree_walk *walk, const char *path, int directory, const char *name)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISDIR(status.st_mode))
        tree_walk_push(walk, path, name, false);
    if (!S_ISREG(status.st_mode))
        return;
    int file AUTO(files_close) = files_open_below(directory, name, O_RDONLY);
    if (file >= 0)
        tree_seal(file, true);
}

/* Keeps the access time, which is the source's: reading the directory here must not change it. */
static struct error *
seal_directory(struct tree_walk *walk, const char *path)
{
    struct error *error = NULL;
    const char *name;
    int fd = files_open_below(walk->top, path, O_RDONLY | O_DIRECTORY | O_NOATIME);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        error = error_from_errno(errno, "open the copy of %s", path);
        files_close(&fd);
        return error;
    }
    tree_seal(fd, true);
    while (!error && (name = tree_walk_read(directory, &error)))
        seal_entry(walk, path, fd, name);
    closedir(directory);
    return error;
}

struct error *
tree_seal_all(struct copy_job *job, int top)
{
    struct tree_walk walk = {.top = top};
    struct error *error = NULL;
    struct tree_step *step;
    if (!tree_seal(top, true))
        return NULL; /* nor could anything below it */
    tree_walk_push(&walk, ".", ".", false);
    while (!error && (step = tree_walk_pop(&walk))) {
        error = seal_directory(&walk, step->path);
        free(step);
        if (!error)
            error = copy_job_advance(job, 0);
    }
    tree_walk_clear(&walk);
    return error_wrap(error, "seal the tree");
}
