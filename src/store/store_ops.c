/* SPDX-License-Identifier: Apache-2.0 */
/* What the stores have in common: see store_ops.h. */
#include "store/store_ops.h"

#include <inttypes.h>
#include <string.h>

struct store_entry
store_copy_entry(struct arena *arena, const char *key, size_t key_size, const void *value,
                 size_t value_size, uint64_t revision)
{
    return (struct store_entry){
        .key = arena_copy(arena, key, key_size),
        .value = (const uint8_t *)arena_copy(arena, value, value_size),
        .value_size = value_size,
        .revision = revision,
    };
}

void
store_append_entry(struct arena *arena, struct store_list *list, size_t *capacity,
                   struct store_entry entry)
{
    if (list->count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 16;
        struct store_entry *larger = arena_alloc(arena, *capacity * sizeof *larger);
        if (list->count)
            memcpy(larger, list->entries, list->count * sizeof *larger);
        list->entries = larger;
    }
    list->entries[list->count++] = entry;
}

struct error *
store_error_not_found(const char *key)
{
    return error_new(CODE_NOT_FOUND, "the store has no \"%s\"", key);
}

bool
store_is_refused(const struct error *error)
{
    static const char *const signs[] = {"certificate verify failed", "peer presented the name",
                                        "does not accept our certificate",
                                        "TLS: the peer ended the connection: alert"};
    for (size_t i = 0; i < COUNT_OF(signs); i++)
        if (strstr(error->message, signs[i]))
            return true;
    return false;
}

struct error *
store_check_expected(const struct store_change *change, uint64_t found)
{
    if (change->expected == STORE_ANY || change->expected == found)
        return NULL;
    if (found == STORE_ABSENT)
        return error_new(CODE_ABORTED, "\"%s\" has gone meanwhile", change->key);
    if (change->expected == STORE_ABSENT)
        return error_new(CODE_ABORTED, "\"%s\" is there already, of revision %" PRIu64, change->key,
                         found);
    return error_new(CODE_ABORTED,
                     "\"%s\" has changed meanwhile: revision %" PRIu64 ", not %" PRIu64,
                     change->key, found, change->expected);
}
