/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of open descriptors: see descriptors.h. */
#include "base/descriptors.h"

#include <sys/resource.h>

#define MOST ((rlim_t)1 << 20)
#define DEFAULT_LIMIT 1024

size_t
descriptors_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : DEFAULT_LIMIT;
}

void
descriptors_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    rlim_t wanted = limit.rlim_max < MOST ? limit.rlim_max : MOST;
    if (wanted <= limit.rlim_cur)
        return;
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}
