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

const char *
protocol_trouble(const char *text, struct arena *arena)
{
    struct protocol_range other = {1, 1};
    char end;
    /* Nine digits are always a number. NOLINTNEXTLINE(cert-err34-c) */
    if (text && (sscanf(text, "%9u-%9u%c", &other.oldest, &other.newest, &end) != 2 ||
                 other.oldest > other.newest))
        return arena_print(arena,
                           "says that it speaks \"%.20s\" with other nodes, which this one "
                           "(skycap " SKYCAP_VERSION ") does not understand",
                           text);
    bool is_older = other.newest < protocol_own.oldest;
    if (!is_older && other.oldest <= protocol_own.newest)
        return NULL;
    return arena_print(
        arena,
        "speaks version %u to %u with other nodes, and this one (skycap " SKYCAP_VERSION
        ") version %u to %u: upgrade %s, through each version between "
        "them (docs/upgrade.md)",
        other.oldest, other.newest, protocol_own.oldest, protocol_own.newest,
        is_older ? "that node" : "this one");
}

struct error *
protocol_check(const char *node_id, const char *text)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *trouble = protocol_trouble(text, &arena);
    return trouble ? error_new(CODE_UNAVAILABLE, "node \"%s\" %s", node_id, trouble) : NULL;
}
