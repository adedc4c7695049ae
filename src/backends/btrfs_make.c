/* SPDX-License-Identifier: Apache-2.0 */
/* The btrfs back end: making, copying and changing trees and images. See btrfs.h. */
#include "backends/btrfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "backends/btrfs_subvolume.h"
#include "backends/copying.h"
#include "backends/layout.h"
#include "base/files.h"

#define COMPRESSION_ATTRIBUTE "btrfs.compression"
#define TREE_MODE 0755

/* ---- making ---- */

static struct error *
set_compression(int fd, const char *compression)
{
    if (!compression)
        return NULL;
    if (!strcmp(compression, "none")) {
        if (fremovexattr(fd, COMPRESSION_ATTRIBUTE) != 0 && errno != ENODATA)
            return error_from_errno(errno, "switch compression off");
        return NULL;
    }
    if (fsetxattr(fd, COMPRESSION_ATTRIBUTE, compression, strlen(compression), 0) != 0)
        return error_from_errno(errno, "set compression to %s", compression);
    return NULL;
}

static bool
is_nocow(int fd)
{
    unsigned flags = 0;
    return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && flags & FS_NOCOW_FL;
}

/* New files inherit it from their directory. */
static struct error *
set_nocow(int fd, bool nocow)
{
    unsigned flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0)
        return error_from_errno(errno, "read file flags");
    unsigned wanted = nocow ? flags | FS_NOCOW_FL : flags & ~(unsigned)FS_NOCOW_FL;
    if (wanted != flags && ioctl(fd, FS_IOC_SETFLAGS, &wanted) != 0)
        return error_from_errno(errno, "switch copy on write %s", nocow ? "off" : "on");
    return NULL;
}

/* Nocow first: the kernel refuses a file with both, and reports that. */
static struct error *
apply_properties(int fd, const struct data_settings *settings)
{
    struct error *error = set_nocow(fd, settings->nocow);
    return error ? error : set_compression(fd, settings->compression);
}

/* The size first: a full tree has no room for the properties. */
static struct error *
apply_to_tree(struct btrfs_backend *btrfs, int holder, int tree,
              const struct data_settings *settings)
{
    struct error *error = btrfs_quota_set_size(&btrfs->quota, holder, tree, settings->size_bytes);
    return error ? error : apply_properties(tree, settings);
}

/*
 * The directory's properties are set before the image is made in it: only an empty file can become
 * nocow.
 */
static struct error *
make_image(int disk, const struct data_settings *settings, int *out)
{
    struct error *error = apply_properties(disk, settings);
    if (error)
        return error;
    *out = openat(disk, "image", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *out < 0 ? error_from_errno(errno, "make an image") : NULL;
}

/* Makes an empty one, without limits. */
static struct error *
make_subvolume(int holder, const char *name, int *out)
{
    struct btrfs_new_subvolume wanted = {.parent = holder, .name = name, .source = -1};
    int failed = btrfs_subvolume_make(&wanted);
    if (failed && failed != EEXIST)
        return error_from_errno(failed, "make a subvolume");
    *out = files_open_directory(holder, name);
    return *out < 0 ? error_from_errno(errno, "open a new subvolume") : NULL;
}

/* Needed because of the umask; usually the mode is right already. */
static struct error *
set_mode(int tree)
{
    struct stat status;
    if (fstat(tree, &status) != 0 ||
        ((status.st_mode & 07777) != TREE_MODE && fchmod(tree, TREE_MODE) != 0))
        return error_from_errno(errno, "set the mode of a new subvolume");
    return NULL;
}

static struct error *
create_tree(struct btrfs_backend *btrfs, const struct data *data, int holder,
            const struct data_settings *settings)
{
    const char *name = layout_content(data);
    int tree AUTO(files_close) = -1;
    struct error *error =
        btrfs_quota_make_tree(&btrfs->quota, holder, name, -1, settings->size_bytes);
    if (error)
        return error;
    tree = files_open_directory(holder, name);
    if (tree < 0)
        return error_from_errno(errno, "open a new subvolume");
    error = set_mode(tree);
    return error ? error : apply_properties(tree, settings);
}

static struct error *
create_image(const struct data *data, int holder, const struct data_settings *settings)
{
    int disk AUTO(files_close) = -1;
    int image AUTO(files_close) = -1;
    struct error *error = make_subvolume(holder, layout_content(data), &disk);
    if (!error)
        error = make_image(disk, settings, &image);
    return error ? error : copying_grow_image(image, settings->size_bytes);
}

struct error *
btrfs_create(struct backend *backend, const struct data *data, const struct data_settings *settings)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    int holder AUTO(files_close) = -1;
    struct error *error = layout_make_holder(btrfs->base.root, data, &holder);
    if (!error)
        error = btrfs_put_note(holder, &settings->note);
    if (error)
        return error;
    return data->kind == KIND_TREE ? create_tree(btrfs, data, holder, settings)
                                   : create_image(data, holder, settings);
}

/* ---- copying ---- */

/* Takes one btrfs snapshot. If it exists, an interrupted copy has made it. */
static struct error *
take_snapshot(int source, int holder, const struct data *to)
{
    struct btrfs_new_subvolume wanted = {.parent = holder,
                                         .name = layout_content(to),
                                         .source = source,
                                         .is_read_only = to->role == ROLE_SNAPSHOT};
    int failed = btrfs_subvolume_make(&wanted);
    return failed && failed != EEXIST ? error_from_errno(failed, "take a snapshot") : NULL;
}

struct error *
btrfs_note_sharing(struct btrfs_backend *btrfs, const struct data *data, int tree)
{
    int holder AUTO(files_close) = -1;
    if (data->kind != KIND_TREE || data->role != ROLE_VOLUME)
        return NULL;
    struct error *error = layout_open_holder(btrfs->base.root, data, &holder);
    return error ? error : btrfs_quota_note_sharing(&btrfs->quota, holder, tree);
}

/*
 * Opening a clone costs more than reading the flags of its source, which are the same. Anything set
 * after the commit that made the clone needs another commit.
 */
static struct error *
clone_tree(struct btrfs_backend *btrfs, int source, const struct data *to, int holder,
           const struct data_settings *settings, bool *needs_commit)
{
    const char *name = layout_content(to);
    bool is_as_wanted = is_nocow(source) == settings->nocow && !settings->compression;
    *needs_commit = !is_as_wanted || !btrfs_quota_limits_clones(&btrfs->quota);
    struct error *error =
        btrfs_quota_make_tree(&btrfs->quota, holder, name, source, settings->size_bytes);
    if (error || is_as_wanted)
        return error;
    int tree AUTO(files_close) = files_open_directory(holder, name);
    if (tree < 0)
        return error_from_errno(errno, "open a new clone");
    return apply_properties(tree, settings);
}

static struct error *
copy_tree(struct btrfs_backend *btrfs, const struct data *from, int source, const struct data *to,
          int holder, const struct data_settings *settings, bool *needs_commit)
{
    bool is_restore = from->role == ROLE_SNAPSHOT && to->role == ROLE_VOLUME;
    struct error *error = is_restore ? btrfs_sharing_note_origin(holder, source) : NULL;
    if (!error)
        error = to->role == ROLE_SNAPSHOT
                    ? take_snapshot(source, holder, to)
                    : clone_tree(btrfs, source, to, holder, settings, needs_commit);
    return error ? error : btrfs_note_sharing(btrfs, from, source);
}

static struct error *
finish_image(struct btrfs_backend *btrfs, const struct data *to,
             const struct data_settings *settings, bool *needs_commit)
{
    int image AUTO(files_close) = -1;
    if (to->role == ROLE_SNAPSHOT)
        return NULL;
    struct error *error = layout_open_image(btrfs->base.root, to, O_RDWR, &image);
    if (!error)
        error = set_compression(image, settings->compression);
    if (!error)
        error = copying_is_smaller(image, settings->size_bytes, needs_commit);
    *needs_commit |= settings->compression != NULL;
    return error ? error : copying_grow_image(image, settings->size_bytes);
}

/*
 * Data with checksums cannot be shared with data without, so it is copied byte by byte. Incomplete
 * copies that a crash has left are discarded.
 */
static struct error *
copy_bytes(struct btrfs_backend *btrfs, int source, const struct data *to, int holder,
           const struct data_settings *settings, const struct progress *progress)
{
    int disk AUTO(files_close) = -1;
    int image AUTO(files_close) = -1;
    struct error *error = btrfs_delete_subvolume(btrfs, holder, layout_content(to));
    if (!error)
        error = make_subvolume(holder, layout_content(to), &disk);
    if (!error)
        error = make_image(disk, settings, &image);
    if (!error)
        error = copying_fill_image(source, image, settings->size_bytes, progress);
    if (error)
        error_free(btrfs_remove(&btrfs->base, to));
    return error;
}

/*
 * The same from a volume that may be written to meanwhile: copies from a snapshot of it, so that
 * the copy is of one instant. The snapshot has the new volume's handle and no row, so the sweep
 * removes it after a crash.
 */
static struct error *
copy_cut_bytes(struct btrfs_backend *btrfs, int source, const struct data *to, int holder,
               const struct data_settings *settings, const struct progress *progress)
{
    struct data cut = *to;
    int cut_holder AUTO(files_close) = -1;
    int image AUTO(files_close) = -1;
    cut.role = ROLE_SNAPSHOT;
    struct error *error = layout_make_holder(btrfs->base.root, &cut, &cut_holder);
    if (!error)
        error = take_snapshot(source, cut_holder, &cut);
    if (!error)
        error = layout_open_image(btrfs->base.root, &cut, O_RDONLY, &image);
    if (!error)
        error = copy_bytes(btrfs, image, to, holder, settings, progress);
    error_free(btrfs_remove(&btrfs->base, &cut)); /* the next start removes what stays */
    return error;
}

static struct error *
copy_image(struct btrfs_backend *btrfs, const struct data *from, int source, const struct data *to,
           int holder, const struct data_settings *settings, const struct progress *progress,
           bool *needs_commit)
{
    int image AUTO(files_close) = -1;
    struct error *error = layout_open_image(btrfs->base.root, from, O_RDONLY, &image);
    if (error)
        return error;
    *needs_commit = to->role == ROLE_VOLUME && is_nocow(image) != settings->nocow;
    if (*needs_commit)
        return from->role == ROLE_VOLUME
                   ? copy_cut_bytes(btrfs, source, to, holder, settings, progress)
                   : copy_bytes(btrfs, image, to, holder, settings, progress);
    error = take_snapshot(source, holder, to);
    return error ? error : finish_image(btrfs, to, settings, needs_commit);
}

struct error *
btrfs_copy(struct backend *backend, const struct data *from, const struct data *to,
           const struct data_settings *settings, const struct progress *progress)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    int source AUTO(files_close) = -1;
    int holder AUTO(files_close) = -1;
    struct error *error = layout_open_content(btrfs->base.root, from, &source);
    if (!error)
        error = layout_make_holder(btrfs->base.root, to, &holder);
    if (!error) /* before the snapshot, whose commit includes it */
        error = btrfs_put_note(holder, &settings->note);
    if (error)
        return error;
    bool needs_commit = false;
    error = from->kind == KIND_IMAGE
                ? copy_image(btrfs, from, source, to, holder, settings, progress, &needs_commit)
                : copy_tree(btrfs, from, source, to, holder, settings, &needs_commit);
    return error || !needs_commit ? error : btrfs_commit(btrfs);
}

/* ---- changing ---- */

static struct error *
apply_to_image(int image, const struct data_settings *settings)
{
    if (is_nocow(image) != settings->nocow)
        return error_new(CODE_FAILED_PRECONDITION, "whether an image is copied on write is decided "
                                                   "when it is made; make a copy that is not");
    struct error *error = set_compression(image, settings->compression);
    return error ? error : copying_grow_image(image, settings->size_bytes);
}

/* The tree, or the image, and its holder. */
static struct error *
open_both(struct backend *backend, const struct data *data, int flags, int *holder, int *content)
{
    struct error *error = layout_open_data(backend->root, data, flags, content);
    return error ? error : layout_open_holder(backend->root, data, holder);
}

struct error *
btrfs_change(struct backend *backend, const struct data *data, const struct data_settings *settings)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    int holder AUTO(files_close) = -1;
    int content AUTO(files_close) = -1;
    struct error *error = open_both(backend, data, O_RDWR, &holder, &content);
    if (!error)
        error = data->kind == KIND_TREE ? apply_to_tree(btrfs, holder, content, settings)
                                        : apply_to_image(content, settings);
    if (!error)
        error = btrfs_put_note(holder, &settings->note);
    return error ? error : btrfs_commit(btrfs);
}

/* NULL accepts any. */
static bool
has_compression(int fd, const char *wanted)
{
    char value[16] = "";
    ssize_t size = wanted ? fgetxattr(fd, COMPRESSION_ATTRIBUTE, value, sizeof value - 1) : 0;
    return !wanted || !strcmp(size > 0 ? value : "none", wanted);
}

struct error *
btrfs_differs(struct backend *backend, const struct data *data,
              const struct data_settings *settings, bool *differs)
{
    struct btrfs_backend *btrfs = btrfs_of(backend);
    int holder AUTO(files_close) = -1;
    int content AUTO(files_close) = -1;
    struct error *error = open_both(backend, data, O_RDONLY, &holder, &content);
    if (!error && data->kind == KIND_IMAGE)
        error = copying_is_smaller(content, settings->size_bytes, differs);
    else if (!error)
        *differs = is_nocow(content) != settings->nocow ||
                   !btrfs_quota_has_size(&btrfs->quota, holder, content, settings->size_bytes);
    *differs |= !error && !has_compression(content, settings->compression);
    return error;
}
