/* SPDX-License-Identifier: Apache-2.0 */
/* Walking trees: see tree_walk.h. */
#include "base/tree_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

/* Shared by all entries in it that are queued or remembered. */
struct tree_directory {
    size_t users;
    char path[];
};

struct tree_waiting {
    struct tree_waiting *next;
    struct tree_directory *directory;
    bool is_leaving;
    char name[];
};

struct link {
    dev_t device;
    ino_t inode;
    struct tree_directory *directory;
    char name[];
};

/* ---- paths ---- */

/* "." is the root; paths below it do not begin with it. */
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

static void
release_directory(struct tree_directory *directory)
{
    if (directory && --directory->users == 0)
        free(directory);
}

/* The caller usually comes from the same directory many times. */
static struct tree_directory *
share_directory(struct tree_walk *walk, const char *path)
{
    if (!walk->directory || strcmp(walk->directory->path, path) != 0) {
        size_t size = strlen(path) + 1;
        release_directory(walk->directory);
        walk->directory = memory_new(sizeof *walk->directory + size);
        walk->directory->users = 1;
        memcpy(walk->directory->path, path, size);
    }
    walk->directory->users++;
    return walk->directory;
}

/* ---- what waits ---- */

void
tree_walk_push(struct tree_walk *walk, const char *directory, const char *name, bool is_leaving)
{
    size_t size = strlen(name) + 1;
    struct tree_waiting *waiting = memory_new(sizeof *waiting + size);
    waiting->next = walk->waiting;
    waiting->directory = share_directory(walk, directory);
    waiting->is_leaving = is_leaving;
    memcpy(waiting->name, name, size);
    walk->waiting = waiting;
}

struct tree_step *
tree_walk_pop(struct tree_walk *walk)
{
    struct tree_waiting *waiting = walk->waiting;
    if (!waiting)
        return NULL;
    size_t size = path_size(waiting->directory->path, waiting->name);
    struct tree_step *step = memory_new(sizeof *step + size);
    step->is_leaving = waiting->is_leaving;
    join_path(step->path, size, waiting->directory->path, waiting->name);
    walk->waiting = waiting->next;
    release_directory(waiting->directory);
    free(waiting);
    return step;
}

static void
free_link(void *context)
{
    struct link *link = context;
    release_directory(link->directory);
    free(link);
}

void
tree_walk_clear(struct tree_walk *walk)
{
    struct tree_step *step;
    while ((step = tree_walk_pop(walk)))
        free(step);
    tdestroy(walk->links, free_link);
    release_directory(walk->directory);
    free(walk->link_path);
    *walk = (struct tree_walk){.top = walk->top};
}

struct error *
tree_walk_open(const struct tree_walk *walk, const char *path, DIR **out)
{
    *out = NULL;
    int fd = files_open_quietly(walk->top, path, O_DIRECTORY);
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

static struct link *
make_link(struct tree_walk *walk, const struct stat *status, const char *directory,
          const char *name)
{
    size_t size = strlen(name) + 1;
    struct link *link = memory_new(sizeof *link + size);
    link->device = status->st_dev;
    link->inode = status->st_ino;
    link->directory = share_directory(walk, directory);
    memcpy(link->name, name, size);
    return link;
}

const char *
tree_walk_find_link(struct tree_walk *walk, const struct stat *status, const char *directory,
                    const char *name)
{
    struct link *link = make_link(walk, status, directory, name);
    struct link **found = tsearch(link, &walk->links, compare_links);
    if (!found)
        memory_exhausted();
    if (*found == link)
        return NULL;
    free_link(link);
    size_t size = path_size((*found)->directory->path, (*found)->name);
    walk->link_path = memory_resize(walk->link_path, size);
    join_path(walk->link_path, size, (*found)->directory->path, (*found)->name);
    return walk->link_path;
}
