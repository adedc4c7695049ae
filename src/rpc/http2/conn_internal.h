/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a connection share: conn.c, conn_session.c, conn_write.c, stream.c; nobody else includes it. */
#ifndef RPC_HTTP2_CONN_INTERNAL_H
#define RPC_HTTP2_CONN_INTERNAL_H

#include "rpc/http2/conn.h"

/* nghttp2 hands over a DATA frame: its bytes are taken from the stream's queue without a copy. */
int conn_write_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                         size_t length, nghttp2_data_source *source, void *argument);

/* Writes what the session has to say. True: all of it has been written. False: the socket takes no more
   now, or conn->write_errno is set. */
bool conn_write_all(struct conn *conn);

/* Tells a peer behind TLS that the end is meant, and nobody has cut the connection. */
void conn_write_goodbye(struct conn *conn);

/* Frees what waits to be written. */
void conn_write_drop(struct conn *conn);

/* Makes the session, and says first what the peer must know. */
void conn_session_open(struct conn *conn, const struct conn_options *options);

/* Bytes have been fed to the session: gives the connection's window back. */
void conn_session_consume(struct conn *conn, int32_t window_used_before);

void conn_session_reset(struct conn *conn, int32_t id, uint32_t http2_error);

/* All its streams end, because the connection does. The session itself is freed by whoever frees the connection. */
void conn_session_end(struct conn *conn, const char *why);

/* Submits the answer to the ping that was received last. */
void conn_write_ack(struct conn *conn);

void conn_adopt_stream(struct conn *conn, struct stream *stream, int32_t id);

#endif
