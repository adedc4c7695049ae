/* SPDX-License-Identifier: Apache-2.0 */
/* Walking trees: see tree_walk.h. */
#include "backends/tree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/files.h"
#include "base/memory.h"

struct link {
    dev_t device;
    ino_t inode;
    char path[];
};

/* "." is the top; paths below it do not begin with it. */
static size_t
path_size(const char *directory, const char *name)
{
    return strlen(directory) + strlen(name) + 2;
}

static void
join_path(char *out, size_t size, const char *directory, const char *name)
{
    if (!strcmp(directory, "."))
        snprintf(out, size, "%s", name);
    else
        snprintf(out, size, "%s/%s", directory, name);
}

void
tree_walk_push(struct tree_walk *walk, const char *directory, const char *name, bool is_leaving)
{
    size_t size = path_size(directory, name);
    struct tree_step *step = memory_new(sizeof *step + size);
    step->next = walk->steps;
    step->is_leaving = is_leaving;
    join_path(step->path, size, directory, name);
    walk->steps = step;
}

struct tree_step *
tree_walk_pop(struct tree_walk *walk)
{
    struct tree_step *step = walk->steps;
    if (step)
        walk->steps = step->next;
    return step;
}

void
tree_walk_clear(struct tree_walk *walk)
{
    struct tree_step *step;
    while ((step = tree_walk_pop(walk)))
        free(step);
    tdestroy(walk->links, free);
    walk->links = NULL;
}

struct error *
tree_walk_open(const struct tree_walk *walk, const char *path, DIR **out)
{
    *out = NULL;
    int fd = files_open_below(walk->top, path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return NULL;
    if (fd < 0 && errno == EXDEV)
        return error_new(CODE_FAILED_PRECONDITION,
                         "something is mounted at %s inside the volume; unmount it", path);
    if (fd < 0 && errno == ENAMETOOLONG)
        return error_new(CODE_FAILED_PRECONDITION, "the tree is deeper than a path can name");
    *out = fd < 0 ? NULL : fdopendir(fd);
    if (*out)
        return NULL;
    struct error *error = error_from_errno(errno, "open the directory %s", path);
    if (fd >= 0)
        close(fd);
    return error;
}

const char *
tree_walk_read(DIR *directory, struct error **error)
{
    struct dirent *entry;
    do {
        errno = 0;
        entry = readdir(directory);
    } while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
    if (!entry && errno)
        *error = error_from_errno(errno, "read a directory");
    return entry ? entry->d_name : NULL;
}

static int
compare_links(const void *a, const void *b)
{
    const struct link *left = a, *right = b;
    if (left->device != right->device)
        return left->device < right->device ? -1 : 1;
    return left->inode < right->inode ? -1 : left->inode > right->inode;
}

const char *
tree_walk_find_link(struct tree_walk *walk, const struct stat *status, const char *directory,
                    const char *name)
{
    size_t size = path_size(directory, name);
    struct link *link = memory_new(sizeof *link + size);
    link->device = status->st_dev;
    link->inode = status->st_ino;
    join_path(link->path, size, directory, name);
    struct link **found = tsearch(link, &walk->links, compare_links);
    if (!found)
        memory_exhausted();
    if (*found == link)
        return NULL;
    free(link);
    return (*found)->path;
}
