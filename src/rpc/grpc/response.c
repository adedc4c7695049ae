/* SPDX-License-Identifier: Apache-2.0 */
/* A server's response: see response.h. */
#include "rpc/grpc/response.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/memory.h"
#include "rpc/grpc/grpc_text.h"

void
response_clear(struct response *response)
{
    buffer_clear(&response->message);
    buffer_clear(&response->details);
    *response = (struct response){0};
}

static bool
equals(const char *name, size_t name_size, const char *wanted)
{
    return name_size == strlen(wanted) && memcmp(name, wanted, name_size) == 0;
}

static bool
read_grpc_field(struct response *response, const struct field *field)
{
    if (equals(field->name, field->name_size, "grpc-status")) {
        int number = grpc_text_parse_number(field->value, field->value_size, CODE_COUNT);
        response->saw_status = true;
        response->is_invalid_status = number >= CODE_COUNT;
        response->code = response->is_invalid_status ? CODE_UNKNOWN : (enum code)number;
    } else if (equals(field->name, field->name_size, "grpc-message")) {
        buffer_clear(&response->message);
        grpc_text_decode_message(field->value, field->value_size, &response->message);
    } else if (equals(field->name, field->name_size, "grpc-status-details-bin")) {
        buffer_clear(&response->details);
        if (!base64_decode(field->value, field->value_size, &response->details))
            buffer_clear(&response->details);
    } else if (equals(field->name, field->name_size, "grpc-encoding")) {
        response->encoding = equals(field->value, field->value_size, "identity") ? ENCODING_IDENTITY
                             : equals(field->value, field->value_size, "gzip")   ? ENCODING_GZIP
                                                                                 : ENCODING_UNKNOWN;
    } else if (equals(field->name, field->name_size, "content-type")) {
        response->is_grpc = grpc_text_is_grpc_content_type(field->value, field->value_size);
    } else {
        return equals(field->name, field->name_size, "grpc-accept-encoding");
    }
    return true;
}

void
response_add_field(struct response *response, struct arena *arena, const struct field *field)
{
    if (equals(field->name, field->name_size, ":status")) {
        response->http_status = grpc_text_parse_number(field->value, field->value_size, 0);
        return;
    }
    bool interim =
        !response->saw_header && response->http_status >= 100 && response->http_status < 200;
    if (interim || read_grpc_field(response, field))
        return;
    metadata_add_bytes(response->saw_header ? &response->trailers : &response->headers, arena,
                       field->name, field->name_size, field->value, field->value_size);
}

/* A value that is not base64 is left encoded: the response is usable without it. */
static void
decode_binary(struct metadata *metadata, struct arena *arena)
{
    error_free(metadata_decode_binary(metadata, arena));
}

bool
response_end_block(struct response *response, struct arena *arena)
{
    if (!response->saw_header && response->http_status >= 100 && response->http_status < 200)
        return false;
    decode_binary(response->saw_header ? &response->trailers : &response->headers, arena);
    response->saw_header = true;
    return true;
}

static struct error *
status_error(const struct response *response)
{
    if (response->code == CODE_OK)
        return NULL;
    if (response->is_invalid_status && !response->message.size)
        return error_new(CODE_UNKNOWN, "the server sent an invalid grpc-status");
    struct error *error =
        error_new(response->code, "%.*s", (int)response->message.size,
                  response->message.size ? (const char *)response->message.bytes : "");
    error->from_peer = true;
    if (response->details.size) {
        error->details = memory_new(response->details.size);
        memcpy(error->details, response->details.bytes, response->details.size);
        error->details_size = response->details.size;
    }
    return error;
}

struct error *
response_status(const struct response *response, uint32_t http2_error, const char *why)
{
    if (response->saw_status)
        return status_error(response);
    if (response->saw_header && response->http_status != 200)
        return error_new(grpc_text_code_of_http_status(response->http_status),
                         "the server answered with HTTP status %d and no grpc-status",
                         response->http_status);
    if (response->saw_header && !response->is_grpc)
        return error_new(CODE_UNKNOWN, "the server's response is not gRPC, by its content-type");
    if (why)
        return error_new(grpc_text_code_of_rst(http2_error), "the server ended the stream: %s",
                         why);
    return error_new(CODE_INTERNAL, "the server ended the stream without a grpc-status");
}
