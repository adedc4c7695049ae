/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded size of a tree volume: see btrfs_account.h. */
#include "backends/btrfs_account.h"

#include <errno.h>
#include <sys/xattr.h>

#define SIZE_ATTRIBUTE "user.skycap.size"

struct btrfs_account
btrfs_account_read(int holder)
{
    struct btrfs_account account = {0};
    if (fgetxattr(holder, SIZE_ATTRIBUTE, &account, sizeof account) != sizeof account)
        return (struct btrfs_account){0};
    return account;
}

struct error *
btrfs_account_write(int holder, const struct btrfs_account *account)
{
    if (fsetxattr(holder, SIZE_ATTRIBUTE, account, sizeof *account, 0) != 0)
        return error_from_errno(errno, "write down the size");
    return NULL;
}

uint64_t
btrfs_account_limit(const struct btrfs_account *account)
{
    return account->size_bytes ? account->size_bytes + account->extra_bytes : UINT64_MAX;
}
