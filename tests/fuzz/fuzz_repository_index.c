/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the contents of an index object: what is accepted is the same when written again. */
#include <string.h>

#include "repository/index_object.h"
#include "require.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer index = {0}, again = {0};
    struct error *error = NULL;
    size_t at = 0;
    bool found = true;
    buffer_append(&index, data, size);
    while (!error && found) {
        struct index_pack pack;
        error = index_next(&index, &at, &pack, &found);
        REQUIRE(at <= size);
        if (error || !found)
            continue;
        for (uint32_t i = 0; i < pack.count; i++) {
            struct pack_entry entry = index_entry(&pack, i);
            REQUIRE(entry.raw && entry.offset + entry.stored <= pack.size);
        }
        index_append(&again, &pack);
    }
    REQUIRE(again.size == at && (!at || !memcmp(again.bytes, data, at)));
    error_free(error);
    buffer_clear(&index);
    buffer_clear(&again);
    return 0;
}
