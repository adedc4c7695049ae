/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that implement a connection (conn*.c, stream.c). No other file includes it.
 */
#ifndef RPC_HTTP2_CONN_INTERNAL_H
#define RPC_HTTP2_CONN_INTERNAL_H

#include "rpc/http2/conn.h"

/*
 * The send_data callback of nghttp2: takes the bytes of a DATA frame from the stream's queue
 * without a copy.
 */
int conn_write_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header,
                         size_t length, nghttp2_data_source *source, void *argument);

/*
 * Writes all pending output of the session. Returns false if the socket is full, or if the write
 * failed and conn->write_errno is set.
 */
bool conn_write_all(struct conn *conn);

/* Sends close_notify on a TLS connection, so that the peer can tell a close from a truncation. */
void conn_write_close_notify(struct conn *conn);

/* Frees the output that was not written. */
void conn_write_drop(struct conn *conn);

/* Creates the HTTP/2 session and submits its SETTINGS. */
void conn_session_open(struct conn *conn, const struct conn_options *options);

/* Call after feeding bytes to the session: returns them to the connection's window. */
void conn_session_consume(struct conn *conn, int32_t window_used_before);

void conn_session_reset(struct conn *conn, int32_t id, uint32_t http2_error);

/* Closes all streams of the connection. The caller frees the session itself. */
void conn_session_end(struct conn *conn, const char *why);

/* Submits the ack of the last ping received. */
void conn_write_ack(struct conn *conn);

void conn_add_stream(struct conn *conn, struct stream *stream, int32_t id);

#endif
