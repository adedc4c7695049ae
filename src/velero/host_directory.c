/* SPDX-License-Identifier: Apache-2.0 */
/* The programs in a plugin directory: see host_directory.h. */
#include "velero/host_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/tree_walk.h"

#define MAX_ENTRIES 10000

struct search {
    const char *directory;
    size_t most;
    const struct log *log;
    struct arena *arena;
    const char **paths;
    size_t count;
    size_t entries;
    struct tree_walk walk;
};

static struct error *
add_program(struct search *search, const char *path)
{
    if (search->count == search->most)
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s has more than %zu programs: is it a directory of plugins?",
                         search->directory, search->most);
    search->paths[search->count++] = path;
    return NULL;
}

static bool
is_top(const char *below)
{
    return strcmp(below, ".") == 0;
}

/* Of a link, what it leads to; one that leads nowhere is passed over. */
static struct error *
visit(struct search *search, const char *below, const char *name)
{
    struct stat own, file;
    const char *path = is_top(below) ? arena_string(search->arena, name)
                                     : arena_print(search->arena, "%s/%s", below, name);
    if (++search->entries > MAX_ENTRIES)
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s has more than %d entries: is it a directory of plugins?",
                         search->directory, MAX_ENTRIES);
    if (fstatat(search->walk.top, path, &own, AT_SYMLINK_NOFOLLOW) != 0)
        return NULL;
    if (S_ISDIR(own.st_mode)) {
        tree_walk_push(&search->walk, below, name, false);
        return NULL;
    }
    if (fstatat(search->walk.top, path, &file, 0) != 0 || !S_ISREG(file.st_mode))
        return NULL;
    if (file.st_mode & 0111)
        return add_program(search, path);
    log_info(search->log, "file in the plugin directory is not executable", LOG_TEXT("file", path));
    return NULL;
}

static struct error *
read_directory(struct search *search, const char *below)
{
    DIR *directory = NULL;
    struct error *error = tree_walk_open(&search->walk, below, &directory);
    const char *name;
    if (error && !is_top(below)) {
        log_warn(search->log, "directory of plugins cannot be read", LOG_TEXT("directory", below),
                 LOG_TEXT("error", error->message));
        error_free(error);
        return NULL;
    }
    if (error || !directory)
        return error;
    while (!error && (name = tree_walk_read(directory, &error)))
        error = visit(search, below, name);
    closedir(directory);
    return error;
}

static int
compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct error *
search_all(struct search *search)
{
    struct error *error = NULL;
    tree_walk_push(&search->walk, ".", ".", false);
    while (!error) {
        struct tree_step *step AUTO(memory_cleanup) = tree_walk_pop(&search->walk);
        if (!step)
            break;
        error = read_directory(search, step->path);
    }
    tree_walk_clear(&search->walk);
    qsort(search->paths, search->count, sizeof *search->paths, compare_paths);
    return error;
}

struct error *
host_directory_list(const char *directory, size_t most, const struct log *log, struct arena *arena,
                    const char ***paths, size_t *count)
{
    int top AUTO(files_close) = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return error_from_errno(errno, "read the plugin directory %s", directory);
    struct search search = {.directory = directory,
                            .most = most,
                            .log = log,
                            .arena = arena,
                            .paths = arena_alloc(arena, most * sizeof *search.paths),
                            .walk = {.top = top}};
    struct error *error = search_all(&search);
    *paths = search.paths;
    *count = search.count;
    return error_wrap(error, "read the plugin directory");
}
