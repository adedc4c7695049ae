/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server answers, read field by field, and the gRPC status that it amounts to, also when the server (or something on the way that is
 * no gRPC server at all) does not behave.
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
    int http_status; /* of the block that is being read */
    bool saw_head;   /* a block that is no 1xx has come */
    bool is_grpc;    /* content-type says so */
    bool saw_status;
    bool is_garbled; /* the status is no number of a status */
    enum code code;
    struct buffer message; /* decoded grpc-message */
    struct buffer details;
    enum message_encoding encoding;
    struct metadata headers;
    struct metadata trailers;
};

void response_clear(struct response *response);

/* What is needed of the field is copied. */
void response_add_field(struct response *response, struct arena *arena, const struct field *field);

/* A block is complete: its -bin values are decoded. False: it was an interim one (1xx), and the real one is still to come. */
bool response_end_block(struct response *response, struct arena *arena);

/* The status once the stream has ended: of the trailers if they were regular, else what HTTP/2 says. NULL: OK. */
MUST_CHECK struct error *response_status(const struct response *response, uint32_t http2_error,
                                         const char *why);

#endif
