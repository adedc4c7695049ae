/* SPDX-License-Identifier: Apache-2.0 */
/* One mounted file system and the child process that freezes it, for freeze.c. */
#ifndef VOLUMES_FROZEN_MOUNT_H
#define VOLUMES_FROZEN_MOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* The longest time that a freeze lasts, whatever happens to this process. */
#define FROZEN_MOUNT_LONGEST_MS 10000

/* One mounted file system and the child that freezes it. */
struct frozen_mount {
    struct frozen_mount *next;
    char *key; /* of its row */
    char *path;
    int fd;
    int line;       /* the socket: the child reports on it, and waits for a byte or its end */
    pid_t child;    /* 0: none */
    bool has_told;  /* it is frozen, or freezing has failed */
    bool was_ended; /* by the time limit, or by somebody else */
};

/* Takes over `fd`, which is open on the mount point. */
struct frozen_mount *frozen_mount_new(const char *key, const char *path, int fd);
void frozen_mount_free(struct frozen_mount *mount);

/* Starts the child, which freezes at once and thaws at `over_ms` at the latest. */
MUST_CHECK struct error *frozen_mount_start(struct frozen_mount *mount, int64_t over_ms);

/*
 * Waits until it is frozen. FAILED_PRECONDITION: a write to it lasts too long. ABORTED: somebody
 * else has frozen it.
 */
MUST_CHECK struct error *frozen_mount_wait(struct frozen_mount *mount, int64_t over_ms);

/* Tells the child to thaw. */
void frozen_mount_thaw(const struct frozen_mount *mount);

/* Waits up to `wait_ms` for the child to end. False: it has not ended. */
bool frozen_mount_reap(struct frozen_mount *mount, int wait_ms);

/* Thaws what is mounted at the path. False: it was not frozen. */
bool frozen_mount_thaw_at(const char *path);

/* The time until then on the clock of timers_now; 0 if it is past. */
int frozen_mount_ms_until(int64_t time_ms);

#endif
