/* SPDX-License-Identifier: Apache-2.0 */
/* I/O limits as parameters: see io_limits.h. */
#include "volumes/io_limits.h"

#include <string.h>

#include "base/size_text.h"

const char *const io_limits_keys[IO_LIMITS_COUNT] = {
    "read-bytes-per-second",
    "write-bytes-per-second",
    "read-operations-per-second",
    "write-operations-per-second",
};

struct error *
io_limits_read(const char *text, int64_t *out)
{
    *out = 0;
    if (!text || strcmp(text, "unlimited") == 0)
        return NULL;
    struct error *error = size_text_parse(text, out);
    if (!error && *out == 0)
        error = error_new(CODE_INVALID_ARGUMENT, "0 would stop it; say \"unlimited\" for no limit");
    return error;
}

bool
io_limits_are_set(const struct text_map *parameters)
{
    for (size_t i = 0; i < IO_LIMITS_COUNT; i++)
        if (text_map_find(parameters, io_limits_keys[i]))
            return true;
    return false;
}
