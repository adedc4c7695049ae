/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files of a host: see host_temporary.h.
 *
 * Each host locks a file in its directory for as long as it lives; a killed host loses the lock. So
 * a directory whose file can be locked has no owner any more.
 */
#include "velero/host_temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/tree.h"
#include "base/clock.h"
#include "base/files.h"

#define PREFIX "skycap-velero-"
#define LOCK "lock"
#define MAX_PARENT_BYTES 40
#define MIN_AGE_S 10
#define MAX_VISITED 10000 /* entries of the parent; more are not looked at */

static const char *
find_parent(void)
{
    const char *parent = getenv("TMPDIR");
    return parent && parent[0] == '/' && strlen(parent) <= MAX_PARENT_BYTES ? parent : "/tmp";
}

/* A directory that was made just now may not be locked yet. */
static bool
is_ours(int directory)
{
    struct stat status;
    return fstat(directory, &status) == 0 && S_ISDIR(status.st_mode) &&
           status.st_uid == geteuid() && !(status.st_mode & 077) &&
           clock_unix_ms() / 1000 - status.st_mtime >= MIN_AGE_S;
}

static void
log_failure(const struct log *log, const char *name, struct error *error)
{
    if (error)
        log_warn(log, "a temporary directory could not be removed", LOG_TEXT("directory", name),
                 LOG_TEXT("error", error->message));
    error_free(error);
}

static void
remove_if_left(int parent, const char *name, const struct log *log)
{
    int directory AUTO(files_close) = files_open_directory(parent, name);
    if (directory < 0 || !is_ours(directory))
        return;
    int lock AUTO(files_close) = openat(directory, LOCK, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        log_failure(log, name, tree_remove(parent, name));
}

static void
remove_left(const char *path, const struct log *log)
{
    DIR *parent = opendir(path);
    const struct dirent *entry;
    if (!parent)
        return;
    for (int i = 0; i < MAX_VISITED && (entry = readdir(parent)); i++)
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
            remove_if_left(dirfd(parent), entry->d_name, log);
    closedir(parent);
}

struct error *
host_temporary_make(struct host_temporary *out, const struct log *log)
{
    char lock[HOST_TEMPORARY_MAX_BYTES + 8];
    const char *parent = find_parent();
    remove_left(parent, log);
    *out = (struct host_temporary){.lock = -1};
    snprintf(out->path, sizeof out->path, "%s/" PREFIX "XXXXXX", parent);
    if (!mkdtemp(out->path)) {
        out->path[0] = '\0';
        return error_from_errno(errno, "make a directory in %s", parent);
    }
    snprintf(lock, sizeof lock, "%s/" LOCK, out->path);
    out->lock = open(lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out->lock < 0 || flock(out->lock, LOCK_EX | LOCK_NB) != 0)
        return error_from_errno(errno, "lock %s", lock);
    return NULL;
}

void
host_temporary_remove(struct host_temporary *temporary, const struct log *log)
{
    if (!temporary->path[0])
        return;
    log_failure(log, temporary->path, tree_remove(AT_FDCWD, temporary->path));
    files_close(&temporary->lock);
}
