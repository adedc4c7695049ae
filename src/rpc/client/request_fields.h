/* SPDX-License-Identifier: Apache-2.0 */
/* The header fields of a request that we send, of our own or on behalf of another client. */
#ifndef RPC_CLIENT_REQUEST_FIELDS_H
#define RPC_CLIENT_REQUEST_FIELDS_H

#include <nghttp2/nghttp2.h>

#include "rpc/client/channel_internal.h"

/* nghttp2 copies the list, but not its texts. */
struct request_fields {
    struct arena *arena;
    nghttp2_nv *items;
    size_t count;
    nghttp2_nv few[24]; /* the list, unless it is longer */
};

/* :method, :scheme, :path and :authority, with room for gRPC's own and `more` other fields. What has to be made for them lives in the arena. */
void request_fields_begin(struct request_fields *fields, struct arena *arena,
                          const struct channel *channel, const char *path, size_t more);

/* te, content-type, user-agent. */
void request_fields_add_grpc(struct request_fields *fields);

/* grpc-timeout with what is left of the time; 0: none. */
void request_fields_add_timeout(struct request_fields *fields, uint64_t deadline_at);

/* -bin values are encoded. */
void request_fields_add_metadata(struct request_fields *fields, const struct metadata *metadata);

/* As they came from another client. */
void request_fields_add_raw(struct request_fields *fields, const struct metadata_entry *entry);

#endif
