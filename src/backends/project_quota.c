/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Project quotas: see project_quota.h. A number without a limit and without usage is free. The
 * kernel has no call that reserves one, so the caller assigns one directory at a time and sets its
 * limit before the next.
 */
#include "backends/project_quota.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Lower numbers are left to the administrator. */
#define FIRST_PROJECT 0x40000000u
#define MOST_TRIES 1000u
#define QUOTA_BLOCK 1024u

static int
quota_control(int directory, unsigned command, uint32_t project, void *argument)
{
    return (int)syscall(SYS_quotactl_fd, directory, QCMD(command, PRJQUOTA), project, argument);
}

bool
project_quota_works(int directory)
{
    struct if_dqinfo info;
    return quota_control(directory, Q_GETINFO, 0, &info) == 0;
}

uint32_t
project_quota_find(int directory)
{
    struct fsxattr attributes;
    return ioctl(directory, FS_IOC_FSGETXATTR, &attributes) == 0 ? attributes.fsx_projid : 0;
}

static bool
is_free(int directory, uint32_t project)
{
    struct if_dqblk quota = {0};
    if (quota_control(directory, Q_GETQUOTA, project, &quota) != 0)
        return errno == ENOENT || errno == ESRCH;
    return !quota.dqb_bhardlimit && !quota.dqb_curspace && !quota.dqb_curinodes;
}

struct error *
project_quota_assign(int directory, uint32_t *project)
{
    struct fsxattr attributes;
    struct stat status;
    if (ioctl(directory, FS_IOC_FSGETXATTR, &attributes) != 0 || fstat(directory, &status) != 0)
        return error_from_errno(errno, "read the project of a directory");
    *project = attributes.fsx_projid;
    if (*project)
        return NULL;
    for (uint32_t tries = 0; tries < MOST_TRIES; tries++) {
        *project = FIRST_PROJECT + (((uint32_t)status.st_ino + tries) & (FIRST_PROJECT - 1));
        if (!is_free(directory, *project))
            continue;
        attributes.fsx_projid = *project;
        attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
        if (ioctl(directory, FS_IOC_FSSETXATTR, &attributes) != 0)
            return error_from_errno(errno, "make a directory the project %u", *project);
        return NULL;
    }
    return error_new(CODE_RESOURCE_EXHAUSTED, "there is no free project number");
}

struct error *
project_quota_limit(int directory, uint32_t project, uint64_t size_bytes)
{
    struct if_dqblk quota = {.dqb_bhardlimit = (size_bytes + QUOTA_BLOCK - 1) / QUOTA_BLOCK,
                             .dqb_valid = QIF_BLIMITS};
    if (quota_control(directory, Q_SETQUOTA, project, &quota) != 0)
        return error_from_errno(errno, "limit the project %u to %llu bytes", project,
                                (unsigned long long)size_bytes);
    return NULL;
}

struct error *
project_quota_usage(int directory, uint32_t project, struct data_usage *usage)
{
    struct if_dqblk quota = {0};
    if (quota_control(directory, Q_GETQUOTA, project, &quota) != 0)
        return error_from_errno(errno, "read the use of the project %u", project);
    usage->total_bytes = quota.dqb_bhardlimit * QUOTA_BLOCK;
    usage->used_bytes = quota.dqb_curspace;
    usage->total_inodes = quota.dqb_ihardlimit;
    usage->used_inodes = quota.dqb_curinodes;
    return NULL;
}
