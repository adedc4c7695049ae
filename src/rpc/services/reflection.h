/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc.reflection, v1 and v1alpha, from the descriptors that the program was built with. Makes
 * `grpcurl list` and `describe` work.
 */
#ifndef RPC_SERVICES_REFLECTION_H
#define RPC_SERVICES_REFLECTION_H

#include "rpc/server/server.h"

void reflection_add(struct server *server);

#endif
