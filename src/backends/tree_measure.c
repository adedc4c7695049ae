/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring trees: see tree.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "backends/tree.h"
#include "base/tree_walk.h"

/* The order does not matter. The multiplications spread each bit over all. */
static void
add_change(const struct stat *status, struct tree_size *size)
{
    int64_t changed_ns = (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
    uint64_t mixed = (uint64_t)status->st_ino * 0x9e3779b97f4a7c15 + (uint64_t)changed_ns;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    size->fingerprint += mixed ^ (mixed >> 31);
    if (changed_ns > size->changed_ns)
        size->changed_ns = changed_ns;
}

static void
measure_entry(struct tree_walk *walk, const char *path, DIR *directory, const char *name,
              struct tree_size *size)
{
    struct stat status;
    if (fstatat(dirfd(directory), name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return; /* removed meanwhile */
    if (S_ISDIR(status.st_mode))
        tree_walk_push(walk, path, name, false);
    else if (status.st_nlink > 1 && tree_walk_find_link(walk, &status, path, name))
        return;
    size->allocated_bytes += (uint64_t)status.st_blocks * 512;
    size->inodes++;
    add_change(&status, size);
}

static struct error *
measure_directory(struct tree_walk *walk, const char *path, struct tree_size *size)
{
    DIR *directory = NULL;
    const char *name;
    struct error *error = tree_walk_open(walk, path, &directory);
    if (error || !directory)
        return error;
    while ((name = tree_walk_read(directory, &error)))
        measure_entry(walk, path, directory, name, size);
    closedir(directory);
    return error;
}

struct error *
tree_measure(int directory, struct tree_size *out)
{
    struct tree_walk walk = {.top = directory};
    struct tree_size size = {0};
    struct error *error = NULL;
    struct tree_step *step;
    struct stat top;
    if (fstat(directory, &top) == 0)
        add_change(&top, &size);
    tree_walk_push(&walk, ".", ".", false);
    while (!error && (step = tree_walk_pop(&walk))) {
        error = measure_directory(&walk, step->path, &size);
        free(step);
    }
    tree_walk_clear(&walk);
    *out = size;
    return error_wrap(error, "measure the tree");
}
