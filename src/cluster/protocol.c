/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes understand each other: see protocol.h. */
#include "cluster/protocol.h"

#include <stdio.h>

#include "base/version.h"

void
protocol_print(const struct protocol_range *range, char out[PROTOCOL_TEXT_SIZE])
{
    snprintf(out, PROTOCOL_TEXT_SIZE, "%u-%u", range->oldest, range->newest);
}

struct error *
protocol_check(const char *node_id, const char *text)
{
    struct protocol_range other = {1, 1};
    char end;
    /* Nine digits are always a number. NOLINTNEXTLINE(cert-err34-c) */
    if (text && (sscanf(text, "%9u-%9u%c", &other.oldest, &other.newest, &end) != 2 ||
                 other.oldest > other.newest))
        return error_new(CODE_UNAVAILABLE,
                         "node \"%s\" says that it speaks \"%.20s\" with other nodes, which this "
                         "one (skycap " SKYCAP_VERSION ") does not understand",
                         node_id, text);
    bool is_older = other.newest < protocol_own.oldest;
    if (!is_older && other.oldest <= protocol_own.newest)
        return NULL;
    return error_new(
        CODE_UNAVAILABLE,
        "node \"%s\" speaks version %u to %u with other nodes, and this one (skycap " SKYCAP_VERSION
        ") version %u to %u: upgrade %s, through each version between "
        "them (docs/upgrade.md)",
        node_id, other.oldest, other.newest, protocol_own.oldest, protocol_own.newest,
        is_older ? "that node" : "this one");
}
