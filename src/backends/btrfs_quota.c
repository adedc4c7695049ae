/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of btrfs subvolumes: see btrfs_quota.h. */
#include "backends/btrfs_quota.h"

#include <btrfsutil.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backends/btrfs_account.h"
#include "backends/btrfs_family.h"
#include "backends/btrfs_items.h"
#include "backends/btrfs_subvolume.h"
#include "base/files.h"

/* Newer than Debian's headers. */
#define QUOTA_CTL_ENABLE_SIMPLE 4

/* Others share a volume's data if it is charged for this part of its size more than its files. */
#define KEPT_PART 16u

static enum btrfs_quota_kind
find_kind(const struct btrfs_quota *quota)
{
    char path[128], mode[16] = "";
    if (access(quota->directory, F_OK) != 0)
        return BTRFS_QUOTA_NONE;
    snprintf(path, sizeof path, "%s/mode", quota->directory);
    bool is_simple = files_read_line(path, mode, sizeof mode) == 0 && !strcmp(mode, "squota");
    return is_simple ? BTRFS_QUOTA_SIMPLE : BTRFS_QUOTA_CLASSIC;
}

static int
switch_on(int root, uint64_t command)
{
    struct btrfs_ioctl_quota_ctl_args arguments = {.cmd = command};
    return ioctl(root, BTRFS_IOC_QUOTA_CTL, &arguments);
}

static struct error *
find_figures(struct btrfs_quota *quota, int root)
{
    struct btrfs_ioctl_fs_info_args info = {0};
    if (ioctl(root, BTRFS_IOC_FS_INFO, &info) != 0)
        return error_from_errno(errno, "ask btrfs for its id");
    const uint8_t *id = info.fsid;
    snprintf(quota->directory, sizeof quota->directory,
             "/sys/fs/btrfs/%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x/"
             "qgroups",
             id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11],
             id[12], id[13], id[14], id[15]);
    return NULL;
}

static struct error *
find_id(int subvolume, uint64_t *id)
{
    if (btrfs_util_subvolume_id_fd(subvolume, id) != BTRFS_UTIL_OK)
        return error_from_errno(errno, "ask for the id of a subvolume");
    return NULL;
}

static void
take_parent(void *context, const struct btrfs_ioctl_search_header *header, const void *item)
{
    (void)item;
    if (header->type == BTRFS_QGROUP_RELATION_KEY && header->offset > header->objectid)
        *(bool *)context = true;
}

/* Whether the administrator has put the data directory's subvolume into a group. */
static struct error *
find_parents(struct btrfs_quota *quota, int root)
{
    struct btrfs_range range = {.tree = BTRFS_QUOTA_TREE_OBJECTID};
    uint64_t id = 0;
    if (quota->kind == BTRFS_QUOTA_NONE)
        return NULL;
    struct error *error = find_id(root, &id);
    if (error)
        return error;
    range.min = (struct btrfs_key){id, BTRFS_QGROUP_RELATION_KEY, 0};
    range.max = (struct btrfs_key){id, BTRFS_QGROUP_RELATION_KEY, UINT64_MAX};
    return btrfs_items_each(root, range, take_parent, &quota->is_nested);
}

static void
tell(enum btrfs_quota_kind kind, const char *why_none, const struct log *log)
{
    if (kind == BTRFS_QUOTA_NONE)
        log_warn(log, "the sizes of tree volumes are not enforced: btrfs quotas are off",
                 LOG_TEXT("why", why_none));
    if (kind == BTRFS_QUOTA_CLASSIC)
        log_warn(log, "btrfs has classic quotas here: they get slow with many clones of one "
                      "volume; kernels from 6.7 on have simple ones");
}

struct error *
btrfs_quota_open(struct btrfs_quota *quota, int root, bool may_switch_on, const struct log *log)
{
    const char *why_none = "the file system is not skycap's own, and switching them on was not "
                           "allowed; `btrfs quota enable --simple` does it";
    struct error *error = find_figures(quota, root);
    if (error)
        return error;
    quota->root = root;
    quota->kind = find_kind(quota);
    if (quota->kind == BTRFS_QUOTA_NONE && may_switch_on) {
        if (switch_on(root, QUOTA_CTL_ENABLE_SIMPLE) != 0 &&
            switch_on(root, BTRFS_QUOTA_CTL_ENABLE) != 0)
            why_none = strerror(errno);
        quota->kind = find_kind(quota);
    }
    tell(quota->kind, why_none, log);
    return find_parents(quota, root);
}

/*
 * Uses the root's descriptor: the kernel charges what it records for this to the subvolume of the
 * ioctl, and a full one has no room for it.
 */
static struct error *
set_limit(const struct btrfs_quota *quota, int subvolume, const struct btrfs_account *account)
{
    struct btrfs_ioctl_qgroup_limit_args arguments = {
        .lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = btrfs_account_limit(account)}};
    uint64_t id;
    if (quota->kind == BTRFS_QUOTA_NONE)
        return NULL;
    struct error *error = find_id(subvolume, &id);
    if (error)
        return error;
    arguments.qgroupid = id;
    if (ioctl(quota->root, BTRFS_IOC_QGROUP_LIMIT, &arguments) != 0)
        return error_from_errno(errno, "limit a subvolume to %llu bytes",
                                (unsigned long long)account->size_bytes);
    return quota->kind == BTRFS_QUOTA_SIMPLE
               ? btrfs_family_limit(quota->root, id, btrfs_account_limit(account))
               : NULL;
}

static struct error *
change_account(const struct btrfs_quota *quota, int holder, int subvolume,
               const struct btrfs_account *account)
{
    struct error *error = btrfs_account_write(holder, account);
    return error ? error : set_limit(quota, subvolume, account);
}

struct error *
btrfs_quota_set_size(const struct btrfs_quota *quota, int holder, int subvolume,
                     uint64_t size_bytes)
{
    struct error *error = NULL;
    pthread_mutex_lock(&quota->accounts->lock);
    struct btrfs_account account = btrfs_account_read(holder);
    bool has_none = !account.size_bytes && !size_bytes;
    account.size_bytes = size_bytes;
    if (!has_none)
        error = change_account(quota, holder, subvolume, &account);
    pthread_mutex_unlock(&quota->accounts->lock);
    return error;
}

/*
 * A limit that is set with the creation keeps the subvolume out of the groups of its directory.
 * With classic quotas, a clone always gets the limit of its source.
 */
static bool
limits_at_once(const struct btrfs_quota *quota, bool is_clone)
{
    bool is_possible =
        quota->kind == BTRFS_QUOTA_SIMPLE || (quota->kind == BTRFS_QUOTA_CLASSIC && !is_clone);
    return is_possible && !quota->is_nested;
}

bool
btrfs_quota_limits_clones(const struct btrfs_quota *quota)
{
    return quota->kind == BTRFS_QUOTA_NONE || limits_at_once(quota, true);
}

static struct error *
limit_made(const struct btrfs_quota *quota, int holder, const char *name,
           const struct btrfs_account *account)
{
    int tree AUTO(files_close) = files_open_directory(holder, name);
    if (tree < 0)
        return error_from_errno(errno, "open a new subvolume");
    return set_limit(quota, tree, account);
}

struct error *
btrfs_quota_make_tree(const struct btrfs_quota *quota, int holder, const char *name, int source,
                      uint64_t size_bytes)
{
    bool is_clone = source >= 0;
    bool needs_limit = size_bytes || (is_clone && quota->kind == BTRFS_QUOTA_CLASSIC);
    struct btrfs_account account = btrfs_account_read(holder);
    account.size_bytes = size_bytes;
    account.is_shared |= is_clone;
    struct error *error = is_clone || size_bytes ? btrfs_account_write(holder, &account) : NULL;
    if (error)
        return error;
    struct btrfs_new_subvolume wanted = {
        .parent = holder,
        .name = name,
        .source = source,
        .is_limited = size_bytes && limits_at_once(quota, is_clone),
        .limit_bytes = btrfs_account_limit(&account),
    };
    int failed = btrfs_subvolume_make(&wanted);
    if (failed && failed != EEXIST)
        return error_from_errno(failed, is_clone ? "take a snapshot" : "make a subvolume");
    bool is_done = !needs_limit || (wanted.is_limited && !failed);
    return is_done ? NULL : limit_made(quota, holder, name, &account);
}

/* One of the kernel's figures about a subvolume or a group. */
static struct error *
read_figure(const struct btrfs_quota *quota, uint64_t account, const char *name, uint64_t *out)
{
    char path[192], line[32];
    snprintf(path, sizeof path, "%s/%llu_%llu/%s", quota->directory,
             (unsigned long long)(account >> 48),
             (unsigned long long)(account & ((UINT64_C(1) << 48) - 1)), name);
    int failed = files_read_line(path, line, sizeof line);
    if (failed)
        return error_from_errno(failed, "read %s", path);
    *out = strtoull(line, NULL, 10);
    return NULL;
}

/* The bytes that a subvolume is charged for, and its id. */
static struct error *
read_charged(const struct btrfs_quota *quota, int subvolume, uint64_t *id, uint64_t *bytes)
{
    struct error *error = find_id(subvolume, id);
    return error ? error : read_figure(quota, *id, "referenced", bytes);
}

bool
btrfs_quota_has_size(const struct btrfs_quota *quota, int holder, int subvolume,
                     uint64_t size_bytes)
{
    struct btrfs_account account = btrfs_account_read(holder);
    uint64_t id, limit = 0;
    if (account.size_bytes != size_bytes)
        return false;
    if (!size_bytes || quota->kind == BTRFS_QUOTA_NONE)
        return true;
    struct error *error AUTO(error_cleanup) = find_id(subvolume, &id);
    if (!error)
        error = read_figure(quota, id, "max_referenced", &limit);
    return !error && limit == btrfs_account_limit(&account);
}

static struct error *
note_sharing(const struct btrfs_quota *quota, int holder, int subvolume, uint64_t charged)
{
    struct btrfs_account account = btrfs_account_read(holder);
    quota->accounts->sharings++;
    if (account.is_shared && account.extra_bytes == charged)
        return NULL;
    account.is_shared = 1;
    account.extra_bytes = charged;
    return change_account(quota, holder, subvolume, &account);
}

struct error *
btrfs_quota_note_sharing(const struct btrfs_quota *quota, int holder, int subvolume)
{
    uint64_t id, charged = 0;
    if (quota->kind != BTRFS_QUOTA_SIMPLE)
        return NULL;
    struct error *error = read_charged(quota, subvolume, &id, &charged);
    if (error)
        return error;
    pthread_mutex_lock(&quota->accounts->lock);
    error = note_sharing(quota, holder, subvolume, charged);
    pthread_mutex_unlock(&quota->accounts->lock);
    return error;
}

bool
btrfs_quota_has_allowance(int holder)
{
    struct btrfs_account account = btrfs_account_read(holder);
    return account.size_bytes && account.extra_bytes;
}

/* Compressed data has other sizes in its files than on the disk. */
static bool
is_compressed(int subvolume)
{
    return fgetxattr(subvolume, "btrfs.compression", NULL, 0) > 0;
}

/* The allowance beyond its size of a volume that is charged for more than its size. */
static struct error *
find_allowance(const struct btrfs_account *account, int subvolume, uint64_t charged, bool is_shared,
               uint64_t *out)
{
    uint64_t inodes, live;
    struct error *error = btrfs_items_count_inodes(subvolume, UINT64_MAX, &inodes, &live);
    bool is_over = live > account->size_bytes && !is_compressed(subvolume);
    bool is_kept = is_shared || charged > live + account->size_bytes / KEPT_PART;
    bool has_room = account->extra_bytes + account->size_bytes > charged;
    *out = account->extra_bytes;
    if (is_over || !is_kept)
        *out = is_shared ? charged - account->size_bytes : 0;
    else if (!has_room)
        *out = charged;
    return error;
}

/*
 * Does nothing if the account has changed meanwhile or a snapshot was taken: the next review does
 * it.
 */
static struct error *
replace_account(const struct btrfs_quota *quota, int holder, int subvolume,
                const struct btrfs_account *old, uint64_t extra_bytes, size_t sharings)
{
    struct error *error = NULL;
    pthread_mutex_lock(&quota->accounts->lock);
    struct btrfs_account account = btrfs_account_read(holder);
    bool is_same = memcmp(&account, old, sizeof account) == 0;
    account.extra_bytes = extra_bytes;
    if (is_same && quota->accounts->sharings == sharings)
        error = change_account(quota, holder, subvolume, &account);
    pthread_mutex_unlock(&quota->accounts->lock);
    return error;
}

struct error *
btrfs_quota_review(const struct btrfs_quota *quota, int holder, int subvolume,
                   struct btrfs_sharing_state state)
{
    struct btrfs_account account = btrfs_account_read(holder);
    uint64_t id, charged = 0, extra = state.is_shared ? account.extra_bytes : 0;
    if (!account.size_bytes)
        return NULL;
    struct error *error = read_charged(quota, subvolume, &id, &charged);
    if (!error && charged > account.size_bytes)
        error = find_allowance(&account, subvolume, charged, state.is_shared, &extra);
    if (error || extra == account.extra_bytes)
        return error;
    return replace_account(quota, holder, subvolume, &account, extra, state.sharings);
}

size_t
btrfs_quota_count_sharings(const struct btrfs_quota *quota)
{
    pthread_mutex_lock(&quota->accounts->lock);
    size_t sharings = quota->accounts->sharings;
    pthread_mutex_unlock(&quota->accounts->lock);
    return sharings;
}

/* For a volume with nested subvolumes. */
static struct error *
read_family(const struct btrfs_quota *quota, uint64_t id, struct btrfs_quota_usage *out)
{
    uint64_t all = 0, group = btrfs_family_of(id);
    struct error *error = read_figure(quota, group, "referenced", &all);
    if (error)
        return error_forgive(error, CODE_NOT_FOUND);
    out->nested_bytes = all > out->used_bytes ? all - out->used_bytes : 0;
    return read_figure(quota, group, "rsv_data", &out->reserved_bytes);
}

struct error *
btrfs_quota_read(const struct btrfs_quota *quota, int holder, int subvolume,
                 struct btrfs_quota_usage *out)
{
    struct btrfs_account account = btrfs_account_read(holder);
    uint64_t id;
    *out = (struct btrfs_quota_usage){0};
    if (quota->kind == BTRFS_QUOTA_NONE)
        return NULL;
    out->size_bytes = account.size_bytes;
    out->is_exact = quota->kind == BTRFS_QUOTA_CLASSIC || !account.is_shared;
    struct error *error = read_charged(quota, subvolume, &id, &out->used_bytes);
    if (!error)
        error = read_figure(quota, id, "rsv_data", &out->reserved_bytes);
    return error || quota->kind != BTRFS_QUOTA_SIMPLE ? error : read_family(quota, id, out);
}
