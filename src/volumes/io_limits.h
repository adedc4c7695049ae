/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a volume that limit I/O: bytes and operations per second, for reading and for
 * writing. node/cgroup.h enforces them.
 */
#ifndef VOLUMES_IO_LIMITS_H
#define VOLUMES_IO_LIMITS_H

#include "base/error.h"
#include "base/text_map.h"

/* Values are numbers such as 500 or 20Mi, or "unlimited". */
#define IO_LIMITS_COUNT 4
extern const char *const io_limits_keys[IO_LIMITS_COUNT];

/* 0: unlimited, also for NULL. INVALID_ARGUMENT: the text is not a limit. */
MUST_CHECK struct error *io_limits_read(const char *text, int64_t *out);

bool io_limits_are_set(const struct text_map *parameters);

#endif
