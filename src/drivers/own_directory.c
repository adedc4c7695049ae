/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of connections: see own_directory.h. */
#include "drivers/own_directory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

static bool
is_directory(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* The first alias that has a directory; NULL: none. */
static const char *
find_old_name(const struct driver_options *options, const char *parent, struct arena *arena)
{
    size_t count = options->aliases ? options->aliases->count : 0;
    for (size_t i = 0; i < count; i++)
        if (is_directory(arena_print(arena, "%s/%s", parent, options->aliases->items[i])))
            return options->aliases->items[i];
    return NULL;
}

struct error *
own_directory_find(const struct driver_options *options, struct arena *arena, const char **out)
{
    const char *parent = arena_print(arena, "%s/connections", options->data_directory);
    const char *own = arena_print(arena, "%s/%s", parent, options->connection);
    struct error *error = files_make_path(parent);
    if (error)
        return error;
    const char *old_name = is_directory(own) ? NULL : find_old_name(options, parent, arena);
    if (old_name && symlink(old_name, own) != 0)
        return error_from_errno(errno, "make the link %s", own);
    char *real AUTO(memory_cleanup) = realpath(own, NULL);
    *out = real ? arena_string(arena, real) : own;
    return NULL;
}
