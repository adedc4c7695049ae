/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any header fields are a request or a malformed one; of a request, everything that the rest of the
 * server relies on is there. The input is lines "name: value"; an empty one begins the trailers.
 */
#include <nghttp2/nghttp2.h>
#include <string.h>

#include "input.h"
#include "require.h"
#include "rpc/grpc/request.h"

static bool
is_text(const char *text)
{
    return nghttp2_check_header_value((const uint8_t *)text, strlen(text));
}

static void
check_metadata(const struct metadata *metadata)
{
    size_t count = 0;
    const struct metadata_entry *entry = metadata->first;
    for (; entry; entry = entry->next, count++) {
        REQUIRE(entry->key_size == strlen(entry->key) && entry->key[0] != ':');
        REQUIRE(entry->value_size == strlen(entry->value) && is_text(entry->value));
        REQUIRE(entry->next || entry == metadata->last);
    }
    REQUIRE(count == metadata->count);
}

static void
check_good(const struct request_header *header)
{
    REQUIRE(header->method && is_text(header->method));
    REQUIRE(header->scheme && is_text(header->scheme));
    REQUIRE(header->path && (header->path[0] == '/' || strcmp(header->path, "*") == 0));
    REQUIRE(header->content_length >= -1);
    REQUIRE(!header->bad_timeout || header->has_timeout);
    int status = request_http_status(header);
    REQUIRE(status == 0 || status == 405 || status == 415);
    REQUIRE(status != 0 || strcmp(header->method, "POST") == 0);
}

static void
check_header(struct request_header *header)
{
    request_finish(header);
    check_metadata(&header->metadata);
    if (!header->malformed)
        check_good(header);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct arena arena AUTO(arena_clear);
    struct request_header header;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    request_init(&header);
    while (input.size) {
        struct input line;
        size_t name_size;
        line.bytes = input_until(&input, '\n', &line.size);
        if (!line.size) {
            check_header(&header);
            header.in_trailers = true;
            continue;
        }
        const uint8_t *name = line.bytes;
        name_size = line.size > 1 && memmem(name, line.size, ": ", 2)
                        ? (size_t)((const uint8_t *)memmem(name, line.size, ": ", 2) - name)
                        : line.size;
        size_t skipped = name_size + 2 < line.size ? name_size + 2 : line.size;
        struct field field = {arena_copy(&arena, name, name_size), name_size,
                              arena_copy(&arena, name + skipped, line.size - skipped),
                              line.size - skipped};
        request_read_fields(&header, &arena, &field, 1);
    }
    check_header(&header);
    return 0;
}
