/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in a directory: what is answered is durable, also if somebody else has put it before. */
#include <string.h>
#include <sys/syscall.h>

#define ENDS_PLACE "/dev/shm"
#include "repository/objects.h"
#include "repository_ends.h"

static unsigned synced_directories;

/* In the place of the C library's. */
int
fsync(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode))
        synced_directories++;
    return (int)syscall(SYS_fsync, fd);
}

static struct error *
put(const struct ends *ends, enum objects_put how)
{
    const struct object_name name = {.bytes = {1, 2, 3}};
    struct objects *objects = NULL;
    struct error *error = objects_open(&ends->options, false, &objects);
    if (!error)
        error = objects_put(objects, OBJECT_PACK, &name, "bytes", 5, how);
    if (!error)
        error = objects_sync(objects);
    objects_close(objects);
    return error;
}

/* A process that is killed between the rename and the sync of the directory has answered nothing. */
static void
test_a_repeated_put_is_durable(void)
{
    static const enum objects_put ways[] = {OBJECTS_NOW, OBJECTS_NOW, OBJECTS_SOON};
    struct ends ends;
    ends_make(&ends, false);
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        synced_directories = 0;
        CHECK(went_well(put(&ends, ways[i])));
        CHECK(synced_directories > 0);
    }
    ends_clear(&ends);
}

int
main(void)
{
    test_a_repeated_put_is_durable();
    return check_report("test_repository_directory");
}
