/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ValidateVolumeCapabilities. The driver is asked with the parameters and access modes that it
 * knows. What it confirms is confirmed to the client in the client's own terms, because an
 * orchestrator compares the two.
 */
#ifndef CONNECTIONS_REQUEST_VALIDATION_H
#define CONNECTIONS_REQUEST_VALIDATION_H

#include "connections/config/connection.h"

/* A copy of the request before it is translated; NULL: it is of another method. */
const Csi__V1__ValidateVolumeCapabilitiesRequest *validation_keep(const ProtobufCMessage *request,
                                                                  struct arena *arena);

/* Leaves requests of other methods alone. */
void validation_translate_in(const struct connection *connection, ProtobufCMessage *request,
                             struct arena *arena);

/* `asked` is what validation_keep gave, `sent` the request that the driver has seen. */
void validation_translate_out(const Csi__V1__ValidateVolumeCapabilitiesRequest *asked,
                              const ProtobufCMessage *sent, ProtobufCMessage *reply,
                              struct arena *arena);

#endif
