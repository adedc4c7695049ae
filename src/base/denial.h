/* SPDX-License-Identifier: Apache-2.0 */
/* Why the kernel denies something to a process that runs as root. */
#ifndef BASE_DENIAL_H
#define BASE_DENIAL_H

#include "base/error.h"

/*
 * If `failed` is EACCES or EPERM and the process is root, appends the likely reason to the message:
 * SELinux, AppArmor, a missing capability or a filter of system calls, and where to look. Takes and
 * returns the error; its code stays.
 */
MUST_CHECK struct error *denial_explain(struct error *error, int failed);

#endif
