/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of JSON-RPC 2.0 on a unix socket, as SPDK speaks it: one connection, one request at a
 * time. Not safe from several threads.
 *
 * Input is not trusted: replies are bounded, may arrive in pieces, and must have the id of the
 * request. Neither requests nor replies are logged or quoted, because both may hold secrets.
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
    struct json_value *root; /* the whole reply */
    const struct json_value *result;
    int64_t code; /* of the peer's error; 0: none */
    const char *message;
};

/* For `struct json_rpc_reply reply AUTO(json_rpc_reply_clear) = {0}`. */
void json_rpc_reply_clear(struct json_rpc_reply *reply);

/* Finds the end of a reply that arrives in pieces. {0} is empty. */
struct json_rpc_reader {
    struct buffer bytes;
    size_t seen; /* of the bytes */
    size_t depth;
    bool is_in_text;
    bool is_escaped;
    bool is_whole;
};

/* Sets `is_whole` when the reply is complete. INTERNAL: not a JSON object, or too long. */
MUST_CHECK struct error *json_rpc_reader_add(struct json_rpc_reader *reader, const void *bytes,
                                             size_t size);

/* Empties the reader, also in case of an error. INTERNAL: not a valid reply to this id. */
MUST_CHECK struct error *json_rpc_reader_take(struct json_rpc_reader *reader, int64_t id,
                                              struct json_rpc_reply *out);
void json_rpc_reader_clear(struct json_rpc_reader *reader);

/* ---- the connection ---- */

struct json_rpc {
    int fd; /* -1: not connected */
    const char *socket;
    uint64_t deadline_ns; /* for all requests, CLOCK_MONOTONIC */
    int64_t last_id;
    struct json_rpc_reader reader;
};

/*
 * UNAVAILABLE: nothing listens there. The path must outlive `rpc`. Call json_rpc_close also after
 * an error; `struct json_rpc rpc AUTO(json_rpc_close) = {.fd = -1}` does.
 */
MUST_CHECK struct error *json_rpc_connect(struct json_rpc *rpc, const char *socket,
                                          uint64_t deadline_ns);

/*
 * `params` is the text of a JSON object, or NULL. An error of the peer is returned in the reply.
 * DEADLINE_EXCEEDED, UNAVAILABLE and INTERNAL close the connection; the peer may have executed the
 * request nevertheless.
 */
MUST_CHECK struct error *json_rpc_ask(struct json_rpc *rpc, const char *method, const char *params,
                                      struct json_rpc_reply *reply);

void json_rpc_close(struct json_rpc *rpc);

#endif
