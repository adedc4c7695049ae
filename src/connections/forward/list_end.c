/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that never end: see list_end.h. */
#include "connections/forward/list_end.h"

#include "base/hash.h"

void
list_end_init(struct list_end *out, const char *connection, const char *token)
{
    *out = (struct list_end){.connection = connection, .kept = hash_text(token), .keep_at = 1};
}

struct error *
list_end_never(const struct list_end *end)
{
    return error_new(CODE_INTERNAL,
                     "the list of connection \"%s\" does not end: its driver repeats pages, or "
                     "gives ever more of them",
                     end->connection);
}

struct error *
list_end_check(struct list_end *end, const char *token)
{
    uint64_t hash = hash_text(token);
    if (!token[0])
        return NULL;
    if (hash == end->kept || ++end->pages == LIST_END_MAX_PAGES)
        return list_end_never(end);
    if (end->pages == end->keep_at) {
        end->kept = hash;
        end->keep_at *= 2;
    }
    return NULL;
}
