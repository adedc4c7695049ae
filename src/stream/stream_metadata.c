/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata of files in a tree: see stream_metadata.h. What is open is changed by its descriptor,
 * anything else by its name in its directory.
 */
#include "stream/stream_metadata.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEFAULT_ACL "system.posix_acl_default"
#define SECOND_NS 1000000000L

/* What a command is about: a descriptor, or an entry if it is -1. */
struct subject {
    int fd;
    struct stream_entry entry;
};

static struct error *
find_subject(struct stream_tree *tree, const struct stream_command *command, struct subject *out)
{
    struct stream_text path = command->attributes[STREAM_A_PATH];
    out->fd = stream_tree_find_open(tree, path);
    return out->fd < 0 ? stream_tree_find(tree, path, &out->entry) : NULL;
}

static struct error *
fail(const struct stream_command *command, const char *what)
{
    struct stream_text path = command->attributes[STREAM_A_PATH];
    return error_from_errno(errno, "%s of \"%.*s\"", what, (int)path.size, path.bytes);
}

/* ---- extended attributes ---- */

/* There is no call for an entry of a directory; /proc makes a path of it. */
static void
print_path(const struct subject *subject, char *out, size_t size)
{
    snprintf(out, size, "/proc/self/fd/%d/%s", subject->entry.directory, subject->entry.name);
}

static void
copy_name(const struct stream_command *command, char out[STREAM_NAME_MAX + 1])
{
    struct stream_text name = command->attributes[STREAM_A_XATTR_NAME];
    memcpy(out, name.bytes, name.size);
    out[name.size] = 0;
}

static bool
may_be_lost(const char *name)
{
    return !strcmp(name, "security.selinux") || !strncmp(name, "btrfs.", strlen("btrfs."));
}

/* The tree knows which directories have a default access list. */
static void
look_again(struct stream_tree *tree, const char *name)
{
    if (!strcmp(name, DEFAULT_ACL))
        stream_tree_forget(tree);
}

struct error *
stream_metadata_set_xattr(struct stream_tree *tree, const struct stream_command *command)
{
    struct subject subject;
    struct stream_text value = command->attributes[STREAM_A_XATTR_DATA];
    char name[STREAM_NAME_MAX + 1], path[STREAM_NAME_MAX + 64];
    struct error *error = find_subject(tree, command, &subject);
    if (error)
        return error;
    copy_name(command, name);
    int result;
    if (subject.fd >= 0) {
        result = fsetxattr(subject.fd, name, value.bytes, value.size, 0);
    } else {
        print_path(&subject, path, sizeof path);
        result = lsetxattr(path, name, value.bytes, value.size, 0);
    }
    if (result != 0 && !may_be_lost(name))
        return error_wrap(fail(command, "set an extended attribute"), "%s", name);
    look_again(tree, name);
    return NULL;
}

struct error *
stream_metadata_remove_xattr(struct stream_tree *tree, const struct stream_command *command)
{
    struct subject subject;
    char name[STREAM_NAME_MAX + 1], path[STREAM_NAME_MAX + 64];
    struct error *error = find_subject(tree, command, &subject);
    if (error)
        return error;
    copy_name(command, name);
    int result;
    if (subject.fd >= 0) {
        result = fremovexattr(subject.fd, name);
    } else {
        print_path(&subject, path, sizeof path);
        result = lremovexattr(path, name);
    }
    if (result != 0 && errno != ENODATA && !may_be_lost(name))
        return error_wrap(fail(command, "remove an extended attribute"), "%s", name);
    look_again(tree, name);
    return NULL;
}

/* ---- mode, owner, times ---- */

static int
look_at(const struct subject *subject, struct stat *out)
{
    return subject->fd >= 0
               ? fstat(subject->fd, out)
               : fstatat(subject->entry.directory, subject->entry.name, out, AT_SYMLINK_NOFOLLOW);
}

static int
set_mode(const struct subject *subject, mode_t mode)
{
    return subject->fd >= 0
               ? fchmod(subject->fd, mode)
               : fchmodat(subject->entry.directory, subject->entry.name, mode, AT_SYMLINK_NOFOLLOW);
}

static int
set_owner(const struct subject *subject, uid_t user, gid_t group)
{
    return subject->fd >= 0 ? fchown(subject->fd, user, group)
                            : fchownat(subject->entry.directory, subject->entry.name, user, group,
                                       AT_SYMLINK_NOFOLLOW);
}

struct error *
stream_metadata_chmod(struct stream_tree *tree, const struct stream_command *command)
{
    struct subject subject;
    mode_t mode = (mode_t)stream_command_number(command, STREAM_A_MODE) & 07777;
    struct error *error = find_subject(tree, command, &subject);
    if (error)
        return error;
    return set_mode(&subject, mode) != 0 ? fail(command, "set the mode") : NULL;
}

/*
 * A change of the owner removes the set-user-id and set-group-id bits, and the kernel's streams do
 * not set them again if the mode is the same as before.
 */
struct error *
stream_metadata_chown(struct stream_tree *tree, const struct stream_command *command)
{
    struct subject subject;
    struct stat status;
    uint64_t user = stream_command_number(command, STREAM_A_UID);
    uint64_t group = stream_command_number(command, STREAM_A_GID);
    /* The largest number means "leave it". */
    if (user >= UINT32_MAX || group >= UINT32_MAX)
        return error_new(CODE_INVALID_ARGUMENT, "an owner of the stream is not valid");
    struct error *error = find_subject(tree, command, &subject);
    if (error)
        return error;
    if (look_at(&subject, &status) != 0)
        return fail(command, "read the owner");
    if (status.st_uid == user && status.st_gid == group)
        return NULL;
    if (set_owner(&subject, (uid_t)user, (gid_t)group) != 0)
        return fail(command, "set the owner");
    bool loses_bits = !S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode) &&
                      (status.st_mode & (S_ISUID | S_ISGID));
    if (loses_bits && set_mode(&subject, status.st_mode & 07777) != 0)
        return fail(command, "set the mode again");
    return NULL;
}

struct error *
stream_metadata_utimes(struct stream_tree *tree, const struct stream_command *command)
{
    struct subject subject;
    const struct timespec times[] = {stream_command_time(command, STREAM_A_ATIME),
                                     stream_command_time(command, STREAM_A_MTIME)};
    /* Larger numbers have a special meaning. */
    if (times[0].tv_nsec >= SECOND_NS || times[1].tv_nsec >= SECOND_NS)
        return error_new(CODE_INVALID_ARGUMENT, "a time of the stream is not valid");
    struct error *error = find_subject(tree, command, &subject);
    if (error)
        return error;
    int result = subject.fd >= 0 ? futimens(subject.fd, times)
                                 : utimensat(subject.entry.directory, subject.entry.name, times,
                                             AT_SYMLINK_NOFOLLOW);
    return result != 0 ? fail(command, "set the times") : NULL;
}
