/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a request, as a server reads it: header fields come one by one, then the head is judged as a whole.
 *
 * These checks replace nghttp2's own, which are switched off for servers because they refuse the forms of :authority that real gRPC
 * clients send over unix sockets. Everything else that HTTP/2 demands of a request is demanded here.
 */
#ifndef RPC_GRPC_REQUEST_H
#define RPC_GRPC_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "rpc/grpc/framing.h"
#include "rpc/grpc/metadata.h"
#include "rpc/http2/field_block.h"

struct request_head {
    const char *method; /* NULL: not sent */
    const char *path;
    const char *scheme;
    const char *authority;
    const char *content_type;
    const char *malformed; /* what breaks HTTP/2's rules: the stream is reset with PROTOCOL_ERROR */
    bool saw_regular_field;
    bool in_trailers;
    bool has_timeout;
    bool bad_timeout;
    uint64_t timeout_ns;
    int64_t content_length; /* -1: not sent */
    enum message_encoding encoding;
    struct metadata metadata; /* every regular field, in order */
};

void request_init(struct request_head *head);

/* Those of the head are referred to: their texts live as long as it does. Nothing is kept of trailers. */
void request_read_fields(struct request_head *head, struct arena *arena, const struct field *fields,
                         size_t count);

/* When the head is complete: finds what is missing (see `malformed`). */
void request_finish(struct request_head *head);

/* 0: a gRPC request. Otherwise the HTTP status to answer: 405, 415. */
int request_http_status(const struct request_head *head);

#endif
