/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mount_group: see mount_group.h. */
#include "node/mount_group.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "backends/tree.h"
#include "base/files.h"

static struct error *
read_group(const char *text, gid_t *out)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (errno || *end || !isdigit((unsigned char)text[0]) || number >= (gid_t)-1)
        return error_new(CODE_INVALID_ARGUMENT, "volume_mount_group \"%s\" is not a group number",
                         text);
    *out = (gid_t)number;
    return NULL;
}

struct error *
mount_group_check(const char *text)
{
    gid_t ignored;
    return read_group(text, &ignored);
}

struct error *
mount_group_apply(const char *directory, const char *text)
{
    gid_t group;
    struct error *error = read_group(text, &group);
    if (error)
        return error;
    int fd AUTO(files_close) = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_from_errno(errno, "open %s", directory);
    return error_wrap(tree_give(fd, group), "give %s to its mount group", directory);
}
