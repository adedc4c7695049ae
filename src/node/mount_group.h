/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mount_group: the files of a volume belong to a group, as a pod's fsGroup asks. */
#ifndef NODE_MOUNT_GROUP_H
#define NODE_MOUNT_GROUP_H

#include "base/error.h"

/* INVALID_ARGUMENT: the text is no group's number. */
MUST_CHECK struct error *mount_group_check(const char *group);

/* See tree_give; `group` is its number as text. INVALID_ARGUMENT: it is none. */
MUST_CHECK struct error *mount_group_apply(const char *directory, const char *group);

#endif
