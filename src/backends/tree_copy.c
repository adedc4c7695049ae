/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying trees: see tree.h. A directory is entered, its entries are made, and its subdirectories
 * are queued. When all of them are done, the directory gets its own mode, owner, attributes and
 * times, so that neither a default access list nor a set-group-id bit nor making the entries
 * changes anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backends/tree.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/tree_walk.h"

#define ATTRIBUTES_BYTES (64u << 10) /* the kernel's maximum for a list and for a value */

struct tree_copying {
    struct copy_job *job;
    struct tree_walk walk; /* through the source */
    int to;
    char *names; /* buffers for attributes */
    char *value;
};

/* An entry that is being copied. */
struct entry {
    const char *directory; /* its path */
    const char *name;
    int from; /* the open directories of both sides */
    int to;
    struct stat status;
};

/* Security labels belong to the host, and properties of btrfs mean nothing elsewhere. */
static bool
may_be_lost(const char *name)
{
    return !strcmp(name, "security.selinux") || !strncmp(name, "btrfs.", strlen("btrfs."));
}

static struct error *
copy_attributes(struct tree_copying *copying, int from, int to)
{
    ssize_t size = flistxattr(from, copying->names, ATTRIBUTES_BYTES);
    if (size < 0 && errno == EOPNOTSUPP)
        return NULL;
    if (size < 0)
        return error_from_errno(errno, "list extended attributes");
    for (const char *name = copying->names; name < copying->names + size;
         name += strlen(name) + 1) {
        ssize_t length = fgetxattr(from, name, copying->value, ATTRIBUTES_BYTES);
        if (length < 0 && errno == ENODATA)
            continue;
        if (length < 0)
            return error_from_errno(errno, "read the extended attribute %s", name);
        if (fsetxattr(to, name, copying->value, (size_t)length, 0) != 0 && !may_be_lost(name))
            return error_from_errno(errno, "set the extended attribute %s", name);
    }
    return NULL;
}

/* The owner first: changing it removes the set-user-id bit and capabilities. */
static struct error *
copy_metadata(struct tree_copying *copying, int from, int to)
{
    struct stat wanted, actual;
    if (fstat(from, &wanted) != 0 || fstat(to, &actual) != 0)
        return error_from_errno(errno, "read owner and mode");
    bool is_owner = wanted.st_uid == actual.st_uid && wanted.st_gid == actual.st_gid;
    if (!is_owner && fchown(to, wanted.st_uid, wanted.st_gid) != 0)
        return error_from_errno(errno, "set the owner");
    if (fchmod(to, wanted.st_mode & 07777) != 0)
        return error_from_errno(errno, "set the mode");
    struct error *error = copy_attributes(copying, from, to);
    if (error)
        return error;
    const struct timespec times[] = {wanted.st_atim, wanted.st_mtim};
    if (futimens(to, times) != 0)
        return error_from_errno(errno, "set the times");
    return NULL;
}

static struct error *
copy_regular(struct tree_copying *copying, const struct entry *entry)
{
    int from AUTO(files_close) = files_open_below(entry->from, entry->name, O_RDONLY | O_NONBLOCK);
    if (from < 0 && (errno == ENOENT || errno == ELOOP))
        return NULL; /* replaced meanwhile */
    if (from < 0)
        return error_from_errno(errno, "open");
    int to AUTO(files_close) =
        openat(entry->to, entry->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return error_from_errno(errno, "make the copy");
    struct error *error = file_copy(copying->job, from, to);
    return error ? error : copy_metadata(copying, from, to);
}

static struct error *
copy_other(const struct entry *entry)
{
    char target[PATH_MAX];
    const struct stat *status = &entry->status;
    if (S_ISLNK(status->st_mode)) {
        ssize_t size = readlinkat(entry->from, entry->name, target, sizeof target - 1);
        if (size < 0)
            return errno == ENOENT || errno == EINVAL ? NULL : error_from_errno(errno, "read");
        target[size] = 0;
        if (symlinkat(target, entry->to, entry->name) != 0)
            return error_from_errno(errno, "make the symbolic link");
    } else if (mknodat(entry->to, entry->name, status->st_mode & S_IFMT, status->st_rdev) != 0) {
        return error_from_errno(errno, "make the node");
    }
    if ((status->st_uid != geteuid() || status->st_gid != getegid()) &&
        fchownat(entry->to, entry->name, status->st_uid, status->st_gid, AT_SYMLINK_NOFOLLOW) != 0)
        return error_from_errno(errno, "set the owner");
    if (!S_ISLNK(status->st_mode) &&
        fchmodat(entry->to, entry->name, status->st_mode & 07777, 0) != 0)
        return error_from_errno(errno, "set the mode");
    const struct timespec times[] = {status->st_atim, status->st_mtim};
    if (utimensat(entry->to, entry->name, times, AT_SYMLINK_NOFOLLOW) != 0)
        return error_from_errno(errno, "set the times");
    return NULL;
}

/* Makes a hard link if the file has been copied under another name, and sets `*done`. */
static struct error *
copy_link(struct tree_copying *copying, const struct entry *entry, bool *done)
{
    const char *first =
        tree_walk_find_link(&copying->walk, &entry->status, entry->directory, entry->name);
    *done = first != NULL;
    if (!first)
        return NULL;
    if (linkat(copying->to, first, entry->to, entry->name, 0) != 0)
        return error_from_errno(errno, "make another name of %s", first);
    return NULL;
}

/* The time is set last: a file that has it is complete. */
static bool
is_whole(const struct stat *there, const struct stat *wanted)
{
    return S_ISREG(there->st_mode) && there->st_mode == wanted->st_mode &&
           there->st_size == wanted->st_size && there->st_uid == wanted->st_uid &&
           there->st_gid == wanted->st_gid && there->st_mtim.tv_sec == wanted->st_mtim.tv_sec &&
           there->st_mtim.tv_nsec == wanted->st_mtim.tv_nsec;
}

/*
 * Removes what an earlier attempt has left, unless it is right. Files with several names are always
 * made again, which is simpler.
 */
static struct error *
make_way(struct tree_copying *copying, const struct entry *entry, bool *done)
{
    struct stat there;
    const struct stat *wanted = &entry->status;
    *done = false;
    if (fstatat(entry->to, entry->name, &there, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? NULL : error_from_errno(errno, "look at the copy");
    if (S_ISDIR(there.st_mode) && S_ISDIR(wanted->st_mode))
        return NULL;
    if (wanted->st_nlink == 1 && is_whole(&there, wanted)) {
        *done = true;
        return copy_job_advance(copying->job, (uint64_t)wanted->st_blocks * 512);
    }
    if (S_ISDIR(there.st_mode))
        return tree_remove(entry->to, entry->name);
    if (unlinkat(entry->to, entry->name, 0) != 0)
        return error_from_errno(errno, "remove what an earlier attempt has left");
    return NULL;
}

static struct error *
copy_entry(struct tree_copying *copying, struct entry *entry)
{
    if (fstatat(entry->from, entry->name, &entry->status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? NULL : error_from_errno(errno, "look at it");
    bool done = false;
    struct error *error = copying->job->goes_on ? make_way(copying, entry, &done) : NULL;
    if (error || done)
        return error;
    if (S_ISDIR(entry->status.st_mode)) {
        bool is_there = copying->job->goes_on;
        if (mkdirat(entry->to, entry->name, 0700) != 0 && !(is_there && errno == EEXIST))
            return error_from_errno(errno, "make the directory");
        tree_walk_push(&copying->walk, entry->directory, entry->name, false);
        return NULL;
    }
    if (entry->status.st_nlink > 1) {
        error = copy_link(copying, entry, &done);
        if (error || done)
            return error;
    }
    return S_ISREG(entry->status.st_mode) ? copy_regular(copying, entry) : copy_other(entry);
}

static struct error *
enter(struct tree_copying *copying, const char *path, DIR *directory, int to)
{
    struct error *error = NULL;
    struct entry entry = {.directory = path, .from = dirfd(directory), .to = to};
    while (!error && (entry.name = tree_walk_read(directory, &error)))
        error = error_wrap(copy_entry(copying, &entry), "%s", entry.name);
    return error ? error : copy_job_advance(copying->job, 0);
}

static struct error *
take_step(struct tree_copying *copying, const struct tree_step *step)
{
    DIR *directory = NULL;
    struct error *error = tree_walk_open(&copying->walk, step->path, &directory);
    if (error || !directory)
        return error;
    int to AUTO(files_close) = files_open_below(copying->to, step->path, O_RDONLY | O_DIRECTORY);
    if (to < 0)
        error = error_from_errno(errno, "open the copy of %s", step->path);
    else if (step->is_leaving)
        error = copy_metadata(copying, dirfd(directory), to);
    else {
        tree_walk_push(&copying->walk, ".", step->path, true);
        error = enter(copying, step->path, directory, to);
    }
    closedir(directory);
    return error_wrap(error, "%s", step->path);
}

struct error *
tree_copy(struct copy_job *job, int from, int to)
{
    char *names AUTO(memory_cleanup) = memory_new(ATTRIBUTES_BYTES);
    char *value AUTO(memory_cleanup) = memory_new(ATTRIBUTES_BYTES);
    struct tree_copying copying = {
        .job = job, .walk = {.top = from}, .to = to, .names = names, .value = value};
    struct error *error = NULL;
    struct tree_step *step;
    tree_walk_push(&copying.walk, ".", ".", false);
    while (!error && (step = tree_walk_pop(&copying.walk))) {
        error = take_step(&copying, step);
        free(step);
    }
    tree_walk_clear(&copying.walk);
    return error_wrap(error, "copy the tree");
}
