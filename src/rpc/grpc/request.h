/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header block of a request, on the server: reads the fields one by one, then validates the
 * block as a whole.
 *
 * This replaces nghttp2's validation, which is switched off for servers: it refuses forms of
 * :authority that real gRPC clients send over unix sockets. All other rules of HTTP/2 are enforced
 * here.
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

struct request_header {
    const char *method; /* NULL: not sent */
    const char *path;
    const char *scheme;
    const char *authority;
    const char *content_type;
    const char *malformed; /* the HTTP/2 rule that was broken: reset with PROTOCOL_ERROR */
    bool saw_regular_field;
    bool in_trailers;
    bool has_timeout;
    bool bad_timeout;
    uint64_t timeout_ns;
    int64_t content_length; /* -1: not sent */
    enum message_encoding encoding;
    struct metadata metadata; /* all regular fields, in order */
};

void request_init(struct request_header *header);

/*
 * Reads a block of fields. The header keeps pointers to their text, so the text must live as long
 * as the header. Trailers are checked, but nothing of them is kept.
 */
void request_read_fields(struct request_header *header, struct arena *arena,
                         const struct field *fields, size_t count);

/* Call after the last field: sets `malformed` if a required field is missing. */
void request_finish(struct request_header *header);

/* Returns 0 for a gRPC request, or the HTTP status to answer with: 405 or 415. */
int request_http_status(const struct request_header *header);

#endif
