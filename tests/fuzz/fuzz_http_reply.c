/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the reply of an S3 server: a head is taken whole or not at all, and a chunked body
 * means the same however it is cut.
 */
#include <string.h>

#include "repository/http_reply.h"
#include "require.h"

#define LIMIT 4096u

/* The body, taken in two parts. Returns how many bytes were used; `*is_good` is false on error. */
static size_t
take(const uint8_t *bytes, size_t size, size_t cut, struct buffer *body, bool *is_good)
{
    struct http_chunked chunked = {0};
    size_t used = 0, more = 0;
    struct error *error = http_chunked_take(&chunked, bytes, cut, LIMIT, body, &used);
    if (!error && used == cut)
        error = http_chunked_take(&chunked, bytes + cut, size - cut, LIMIT, body, &more);
    REQUIRE(used <= cut && more <= size - cut && body->size <= LIMIT);
    REQUIRE(error || used + more == size || chunked.state == HTTP_CHUNK_DONE);
    *is_good = !error;
    error_free(error);
    return used + more;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_reply reply;
    size_t used = 0;
    struct error *error = http_reply_parse(data, size, &reply, &used);
    REQUIRE(used <= size && used <= HTTP_HEAD_MAX);
    if (!error && used)
        REQUIRE(reply.status <= 999 && !(reply.is_chunked && reply.has_length));
    error_free(error);
    data += used;
    size -= used;
    struct buffer whole = {0}, parts = {0};
    bool is_good, is_good_too;
    size_t first = take(data, size, size, &whole, &is_good);
    size_t second = take(data, size, size ? data[0] % size : 0, &parts, &is_good_too);
    REQUIRE(is_good == is_good_too && first == second);
    REQUIRE(!is_good || (whole.size == parts.size &&
                         (!whole.size || !memcmp(whole.bytes, parts.bytes, whole.size))));
    buffer_clear(&whole);
    buffer_clear(&parts);
    return 0;
}
