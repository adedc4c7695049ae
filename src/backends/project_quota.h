/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of directories by project quotas, if the file system is mounted with them (xfs and ext4:
 * `prjquota`). Every limited directory is a project of its own; its number is an attribute of the
 * directory.
 */
#ifndef BACKENDS_PROJECT_QUOTA_H
#define BACKENDS_PROJECT_QUOTA_H

#include "backends/backend.h"

/* Whether limits can be set below this directory. */
bool project_quota_works(int directory);

/*
 * Makes an empty directory a project: everything created in it belongs to the project. `*project`
 * is the number; a directory that is a project keeps its number.
 */
MUST_CHECK struct error *project_quota_assign(int directory, uint32_t *project);

/* 0: no limit. */
MUST_CHECK struct error *project_quota_limit(int directory, uint32_t project, uint64_t size_bytes);

MUST_CHECK struct error *project_quota_usage(int directory, uint32_t project,
                                             struct data_usage *usage);

/* The number of the directory's project, 0 if it has none. */
uint32_t project_quota_find(int directory);

#endif
