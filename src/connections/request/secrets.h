/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets. A key `NAME.KEY` is a secret for the connection NAME alone, which sees it as KEY; other
 * keys are for every driver whose connection's file allows it.
 */
#ifndef CONNECTIONS_REQUEST_SECRETS_H
#define CONNECTIONS_REQUEST_SECRETS_H

#include "connections/config/connection.h"

/* Removes the secrets that the driver must not see from a request. Never waits. */
void secrets_translate_in(const struct connection_set *set, const struct connection *connection,
                          ProtobufCMessage *request, struct arena *arena);

/* The secrets whose key names the connection; the keys stay as they are. */
struct text_map secrets_of(const struct connection_set *set, const struct connection *connection,
                           const struct text_map *secrets, struct arena *arena);

#endif
