/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access modes. Orchestrators that see SINGLE_NODE_MULTI_WRITER among the capabilities, because one connection has it, say SINGLE_NODE_MULTI_WRITER and
 * SINGLE_NODE_SINGLE_WRITER where they would say SINGLE_NODE_WRITER otherwise. A driver that lacks the capability need not know these modes: it gets to see the
 * one that it knows.
 */
#ifndef CONNECTIONS_MODES_H
#define CONNECTIONS_MODES_H

#include "connections/connection.h"
#include "message/service.h"

/* Changes volume_capability and volume_capabilities of a request of CSI's; copies are in the arena. Never waits. */
void modes_translate_in(const struct connection *connection, const struct method *method,
                        ProtobufCMessage *request, struct arena *arena);

#endif
