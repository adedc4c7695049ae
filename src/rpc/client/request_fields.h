/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the header fields of an outgoing request, either our own or forwarded for another client.
 */
#ifndef RPC_CLIENT_REQUEST_FIELDS_H
#define RPC_CLIENT_REQUEST_FIELDS_H

#include <nghttp2/nghttp2.h>

#include "rpc/client/channel_internal.h"

/* nghttp2 copies the array, but not the text. */
struct request_fields {
    struct arena *arena;
    nghttp2_nv *items;
    size_t count;
    nghttp2_nv inline_items[24]; /* used as `items` if large enough */
};

/*
 * Adds :method, :scheme, :path and :authority, and reserves room for gRPC's fields and `more`
 * others. Text that must be allocated lives in the arena.
 */
void request_fields_begin(struct request_fields *fields, struct arena *arena,
                          const struct channel *channel, const char *path, size_t more);

/* Adds te, content-type and user-agent. */
void request_fields_add_grpc(struct request_fields *fields);

/* Adds grpc-timeout with the time left until the deadline; nothing if `deadline_at` is 0. */
void request_fields_add_timeout(struct request_fields *fields, uint64_t deadline_at);

/* Encodes -bin values. */
void request_fields_add_metadata(struct request_fields *fields, const struct metadata *metadata);

/* Adds a field unchanged, as another client sent it. */
void request_fields_add_raw(struct request_fields *fields, const struct metadata_entry *entry);

#endif
