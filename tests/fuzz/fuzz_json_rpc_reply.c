/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, taken as what a JSON-RPC peer sends, in pieces whose size the first byte tells: they are refused, or not whole yet, or a reply with either a result or an error; and
 * the same when they come at once.
 */
#include <string.h>

#include "oim/json_rpc.h"
#include "require.h"

enum outcome { REFUSED, UNFINISHED, TAKEN };

static void
check_reply(const struct json_rpc_reply *reply)
{
    REQUIRE(reply->root && !reply->result == !!reply->code && !reply->result == !!reply->message);
    /* Questions of the wrong kind have answers. */
    int64_t number;
    const struct json_value *value = reply->result;
    for (size_t i = 0; i < json_value_count(value) && i < 4; i++)
        REQUIRE(json_value_item(value, i));
    REQUIRE(!json_value_item(value, json_value_count(value)));
    REQUIRE(!json_value_number(value, &number) || !json_value_text(value));
    REQUIRE(!json_value_member(value, "name") || !json_value_is_array(value));
}

/* Up to the end of the first reply; what comes in the same piece behind it is too early. */
static enum outcome
read_pieces(const uint8_t *data, size_t size, size_t piece, bool *has_rest)
{
    struct json_rpc_reader reader AUTO(json_rpc_reader_clear) = {0};
    struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0};
    struct error *error AUTO(error_cleanup) = NULL;
    size_t at = 0;
    while (!error && at < size && !reader.is_whole) {
        size_t now = piece < size - at ? piece : size - at;
        error = json_rpc_reader_add(&reader, data + at, now);
        at += now;
        REQUIRE(error || (reader.bytes.size == at && reader.seen <= at));
    }
    if (error)
        return REFUSED;
    if (!reader.is_whole)
        return UNFINISHED;
    *has_rest = reader.seen < size;
    error = json_rpc_reader_take(&reader, 7, &reply);
    REQUIRE(!reader.bytes.size && !error == !!reply.root);
    if (!error)
        check_reply(&reply);
    return error ? REFUSED : TAKEN;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool has_rest = false;
    if (!size)
        return 0;
    size_t piece = data[0] % 16 + 1u;
    enum outcome in_pieces = read_pieces(data + 1, size - 1, piece, &has_rest);
    enum outcome at_once = read_pieces(data + 1, size - 1, size, &has_rest);
    REQUIRE(in_pieces == at_once || has_rest);
    return 0;
}
