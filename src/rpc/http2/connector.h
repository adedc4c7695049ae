/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects a socket to an address: looks the name up, tries its addresses in turn, each for a part
 * of the time, and gives up after a timeout. Loop thread only.
 */
#ifndef RPC_HTTP2_CONNECTOR_H
#define RPC_HTTP2_CONNECTOR_H

#include <uv.h>

#include "base/error.h"
#include "rpc/http2/address.h"
#include "rpc/loop/loop.h"

struct connector_attempt;

struct connector {
    struct loop *loop;
    struct connector_attempt *attempt; /* NULL: idle */
    /*
     * Called once per connector_start, unless connector_stop comes first. Passes a connected
     * descriptor, or -1 and an error that the callee owns.
     */
    void (*done)(struct connector *connector, int fd, struct error *error);
};

void connector_start(struct connector *connector, const struct address *address,
                     uint64_t timeout_ns);
void connector_stop(struct connector *connector);

#endif
