/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects a server's response field by field and maps it to a gRPC status. Copes with servers that
 * misbehave, and with intermediaries that do not speak gRPC.
 */
#ifndef RPC_GRPC_RESPONSE_H
#define RPC_GRPC_RESPONSE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "rpc/grpc/framing.h"
#include "rpc/grpc/metadata.h"
#include "rpc/http2/field_block.h"

struct response {
    int http_status; /* of the block being read */
    bool saw_header; /* a final (not 1xx) header block has been read */
    bool is_grpc;    /* by its content-type */
    bool saw_status;
    bool is_invalid_status; /* grpc-status is not a known status number */
    enum code code;
    struct buffer message; /* decoded grpc-message */
    struct buffer details;
    enum message_encoding encoding;
    struct metadata headers;
    struct metadata trailers;
};

void response_clear(struct response *response);

/* Copies what it needs of the field. */
void response_add_field(struct response *response, struct arena *arena, const struct field *field);

/*
 * Ends a header block and decodes its -bin values. Returns false after an interim (1xx) block: the
 * final headers are still to come.
 */
bool response_end_block(struct response *response, struct arena *arena);

/*
 * Returns the status of a stream that has ended: from the trailers, or else from the HTTP/2 error.
 * NULL means OK.
 */
MUST_CHECK struct error *response_status(const struct response *response, uint32_t http2_error,
                                         const char *why);

#endif
