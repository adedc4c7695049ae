/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of JSON-RPC that arrive in pieces: see json_rpc.h. Each byte is scanned once, then the
 * whole reply is parsed once.
 */
#include <string.h>

#include "oim/json_rpc.h"

void
json_rpc_reply_clear(struct json_rpc_reply *reply)
{
    json_value_free(reply->root);
    *reply = (struct json_rpc_reply){0};
}

void
json_rpc_reader_clear(struct json_rpc_reader *reader)
{
    buffer_clear(&reader->bytes);
    *reader = (struct json_rpc_reader){0};
}

static bool
is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static void
see_text(struct json_rpc_reader *reader, uint8_t byte)
{
    if (reader->is_escaped)
        reader->is_escaped = false;
    else if (byte == '\\')
        reader->is_escaped = true;
    else if (byte == '"')
        reader->is_in_text = false;
}

/* False: not the start of a reply. The parser checks which bracket closes which. */
static bool
see(struct json_rpc_reader *reader, uint8_t byte)
{
    if (!reader->depth && byte != '{')
        return is_space(byte);
    if (reader->is_in_text) {
        see_text(reader, byte);
        return true;
    }
    if (byte == '"')
        reader->is_in_text = true;
    else if (byte == '{' || byte == '[')
        reader->depth++;
    else if (byte == '}' || byte == ']')
        reader->is_whole = --reader->depth == 0;
    return true;
}

struct error *
json_rpc_reader_add(struct json_rpc_reader *reader, const void *bytes, size_t size)
{
    if (size > JSON_RPC_MAX_REPLY - reader->bytes.size)
        return error_new(CODE_INTERNAL, "a reply has more than %zu bytes", JSON_RPC_MAX_REPLY);
    buffer_append(&reader->bytes, bytes, size);
    while (!reader->is_whole && reader->seen < reader->bytes.size)
        if (!see(reader, reader->bytes.bytes[reader->seen++]))
            return error_new(CODE_INTERNAL, "a reply is not a JSON object");
    return NULL;
}

/* An error without an id belongs to the only request in progress. */
static bool
is_reply_to(const struct json_value *root, int64_t id, bool has_error)
{
    const struct json_value *given = json_value_member(root, "id");
    int64_t number;
    if (json_value_number(given, &number))
        return number == id;
    return has_error && (!given || json_value_is_null(given));
}

static struct error *
understand(struct json_rpc_reply *reply, int64_t id)
{
    const struct json_value *error = json_value_member(reply->root, "error");
    reply->result = json_value_member(reply->root, "result");
    if (!is_reply_to(reply->root, id, error))
        return error_new(CODE_INTERNAL, "a reply has the id of another request");
    if (!error == !reply->result)
        return error_new(CODE_INTERNAL, "a reply must have either a result or an error");
    if (!error)
        return NULL;
    reply->message = json_value_text(json_value_member(error, "message"));
    if (!reply->message)
        reply->message = "";
    if (!json_value_number(json_value_member(error, "code"), &reply->code) || !reply->code)
        return error_new(CODE_INTERNAL, "a reply has an error without a code");
    return NULL;
}

/* Rejects anything after the reply. */
static struct error *
parse(const struct json_rpc_reader *reader, struct json_value **out)
{
    for (size_t i = reader->seen; i < reader->bytes.size; i++)
        if (!is_space(reader->bytes.bytes[i]))
            return error_new(CODE_INTERNAL, "there is something after a reply");
    struct error *error = json_value_parse(reader->bytes.bytes, reader->seen, out);
    if (error)
        error->code = CODE_INTERNAL;
    return error_wrap(error, "a reply");
}

struct error *
json_rpc_reader_take(struct json_rpc_reader *reader, int64_t id, struct json_rpc_reply *out)
{
    *out = (struct json_rpc_reply){0};
    struct error *error = parse(reader, &out->root);
    json_rpc_reader_clear(reader);
    if (!error)
        error = understand(out, id);
    if (error)
        json_rpc_reply_clear(out);
    return error;
}
