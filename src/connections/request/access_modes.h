/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access modes. An orchestrator that sees SINGLE_NODE_MULTI_WRITER among the capabilities, because
 * one connection has it, sends SINGLE_NODE_MULTI_WRITER or SINGLE_NODE_SINGLE_WRITER instead of
 * SINGLE_NODE_WRITER. A driver without the capability need not know these modes: it gets
 * SINGLE_NODE_WRITER.
 */
#ifndef CONNECTIONS_REQUEST_ACCESS_MODES_H
#define CONNECTIONS_REQUEST_ACCESS_MODES_H

#include "connections/config/connection.h"
#include "message/service.h"

/* Changes volume_capability and volume_capabilities of a request. Never waits. */
void access_modes_translate_in(const struct connection *connection, const struct method *method,
                               ProtobufCMessage *request, struct arena *arena);

#endif
