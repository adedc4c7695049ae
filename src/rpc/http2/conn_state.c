/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State changes that every file of a connection may request: output pending, connection to be
 * closed.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "rpc/http2/conn.h"

void
conn_mark_dirty(struct conn *conn)
{
    loop_want_flush(conn->loop, &conn->output);
}

void
conn_reset(struct conn *conn, const char *why)
{
    conn->is_reset = true;
    conn_kill(conn, "%s", why);
}

void
conn_kill(struct conn *conn, const char *format, ...)
{
    if (conn->is_dead)
        return;
    conn->is_dead = true;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&conn->why_dead, format, arguments) < 0)
        memory_exhausted();
    va_end(arguments);
    conn_mark_dirty(conn);
}
