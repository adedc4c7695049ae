/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mount_group: the files of a volume belong to a group, as requested by a pod's fsGroup. */
#ifndef NODE_MOUNT_GROUP_H
#define NODE_MOUNT_GROUP_H

#include "base/error.h"

/* INVALID_ARGUMENT: the text is not a group number. */
MUST_CHECK struct error *mount_group_check(const char *group);

/* See tree_give; `group` is a number as text. INVALID_ARGUMENT: it is not. */
MUST_CHECK struct error *mount_group_apply(const char *directory, const char *group);

#endif
