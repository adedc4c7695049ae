/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any header blocks of an answer amount to a status. The input is a byte that chooses how the
 * stream ends, then lines "name: value"; an empty line ends a block.
 */
#include <string.h>

#include "input.h"
#include "require.h"
#include "rpc/grpc/response.h"

static void
add_line(struct response *response, struct arena *arena, const struct input *line)
{
    const char *text = (const char *)line->bytes;
    const char *colon = memmem(text, line->size, ": ", 2);
    size_t name_size = colon ? (size_t)(colon - text) : line->size;
    size_t skipped = colon ? name_size + 2 : line->size;
    struct field field = {text, name_size, text + skipped, line->size - skipped};
    response_add_field(response, arena, &field);
}

static void
check_metadata(const struct metadata *metadata)
{
    size_t count = 0;
    const struct metadata_entry *entry = metadata->first;
    for (; entry; entry = entry->next, count++)
        REQUIRE(!entry->key[entry->key_size] && !entry->value[entry->value_size]);
    REQUIRE(count == metadata->count);
}

static void
check_status(const struct response *response, uint8_t end)
{
    const char *why = end & 1 ? "reset" : NULL;
    struct error *error AUTO(error_cleanup) = response_status(response, end >> 1, why);
    if (!error) {
        REQUIRE(response->saw_status && response->code == CODE_OK);
        return;
    }
    REQUIRE(error->code > CODE_OK && error->code < CODE_COUNT);
    REQUIRE(error->message);
    REQUIRE(!error->details == !error->details_size);
    REQUIRE(!response->saw_status || error->code == response->code);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct arena arena AUTO(arena_clear);
    struct response response = {0};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    uint8_t end = input_byte(&input);
    while (input.size) {
        struct input line;
        line.bytes = input_until(&input, '\n', &line.size);
        if (line.size)
            add_line(&response, &arena, &line);
        else
            REQUIRE(response_end_block(&response, &arena) == response.saw_header);
    }
    check_metadata(&response.headers);
    check_metadata(&response.trailers);
    check_status(&response, end);
    response_clear(&response);
    return 0;
}
