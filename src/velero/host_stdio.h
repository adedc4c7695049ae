/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plugin prints after its handshake. One that is built on go-plugin sends it over its
 * connection, and would block if nobody received it.
 */
#ifndef VELERO_HOST_STDIO_H
#define VELERO_HOST_STDIO_H

#include "base/error.h"
#include "base/log.h"
#include "rpc/client/channel.h"

struct host_stdio;

/* A thread passes on to the log what comes, until it is closed. Plugins may send nothing at all. */
MUST_CHECK struct error *host_stdio_open(struct channel *channel, const struct log *log,
                                         const char *plugin, struct host_stdio **out);

/* Before the channel is closed. NULL is ignored. */
void host_stdio_close(struct host_stdio *stdio);

#endif
