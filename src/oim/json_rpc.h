/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of JSON-RPC 2.0 on a unix socket, as SPDK speaks it: one connection, one request at a
 * time. Not safe from several threads.
 *
 * Nothing that comes is trusted: replies are bounded, may come in any pieces, and must be to the
 * request that was sent. Neither requests nor replies are logged or quoted, because both may hold
 * secrets.
 */
#ifndef OIM_JSON_RPC_H
#define OIM_JSON_RPC_H

#include "base/buffer.h"
#include "base/error.h"
#include "message/json_value.h"

#define JSON_RPC_UNKNOWN_METHOD (-32601)
#define JSON_RPC_INVALID_PARAMS (-32602)
#define JSON_RPC_MAX_REPLY ((size_t)4 * 1024 * 1024)

/* ---- replies ---- */

struct json_rpc_reply {
    struct json_value *root; /* all of it */
    const struct json_value *result;
    int64_t code; /* of the peer's error; 0: there is none */
    const char *message;
};

/* For `struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0}`. */
void json_rpc_reply_clear(struct json_rpc_reply *reply);

/* Finds the end of a reply in bytes that come in pieces. Zero is empty. */
struct json_rpc_reader {
    struct buffer bytes;
    size_t seen; /* of the bytes */
    size_t depth;
    bool is_in_text;
    bool is_escaped;
    bool is_whole;
};

/* INTERNAL: these bytes are no reply, or too many. `is_whole` tells whether all of it is there. */
MUST_CHECK struct error *json_rpc_reader_add(struct json_rpc_reader *reader, const void *bytes,
                                             size_t size);

/*
 * INTERNAL: this is no reply to the request of that id. The reader is empty then, whatever was
 * wrong.
 */
MUST_CHECK struct error *json_rpc_reader_take(struct json_rpc_reader *reader, int64_t id,
                                              struct json_rpc_reply *out);
void json_rpc_reader_clear(struct json_rpc_reader *reader);

/* ---- the connection ---- */

struct json_rpc {
    int fd; /* -1: it was lost, or not made yet */
    const char *socket;
    uint64_t deadline_ns; /* of everything on it, CLOCK_MONOTONIC */
    int64_t last_id;
    struct json_rpc_reader reader;
};

/*
 * UNAVAILABLE: nobody is there. The path must outlive it. json_rpc_close also after an error, and
 * for `struct json_rpc rpc AUTO(json_rpc_close) = {.fd = -1}`.
 */
MUST_CHECK struct error *json_rpc_connect(struct json_rpc *rpc, const char *socket,
                                          uint64_t deadline_ns);

/*
 * `params` is the text of a JSON object, or NULL. What the peer refuses is no error but in the
 * reply. DEADLINE_EXCEEDED, UNAVAILABLE and INTERNAL leave the connection closed; whether the peer
 * has done it nobody knows then.
 */
MUST_CHECK struct error *json_rpc_ask(struct json_rpc *rpc, const char *method, const char *params,
                                      struct json_rpc_reply *reply);

void json_rpc_close(struct json_rpc *rpc);

#endif
