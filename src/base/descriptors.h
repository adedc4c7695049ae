/* SPDX-License-Identifier: Apache-2.0 */
/* How many files, sockets and pipes the process may have open. */
#ifndef BASE_DESCRIPTORS_H
#define BASE_DESCRIPTORS_H

#include <stddef.h>

/* The limit in force. */
size_t descriptors_limit(void);

/*
 * Raises the soft limit, 1024 by default, to the hard one. Not beyond a million: some programs that
 * inherit the limit try to close every number below it.
 */
void descriptors_raise_limit(void);

#endif
