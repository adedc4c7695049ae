/* SPDX-License-Identifier: Apache-2.0 */
/* Where to listen or connect, as users, orchestrators and registries write it. */
#ifndef RPC_HTTP2_ADDRESS_H
#define RPC_HTTP2_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/error.h"

/* Room for anything that address_print gives. */
#define ADDRESS_TEXT_SIZE 288

enum address_kind { ADDRESS_UNIX, ADDRESS_UNIX_ABSTRACT, ADDRESS_TCP };

struct address {
    enum address_kind kind;
    /* Of a unix socket: its path, or the name of an abstract one without the NUL in front. */
    char path[108];
    size_t path_size;
    /* Of TCP: a name or an address, without brackets; empty to listen on all interfaces. */
    char host[256];
    uint16_t port;
};

/*
 * Accepts
 *     unix:relative/path   unix:/path   unix:///path   /path   unix-abstract:name
 *     host:port   1.2.3.4:80   [::1]:80   :80   tcp://host:port   dns:host:port   dns:///host:port
 *     ipv4:1.2.3.4:80   ipv6:[::1]:80   ipv4:///1.2.3.4:80   tcp4://1.2.3.4:80   tcp6://[::1]:80
 *
 * unix://run/x.sock is /run/x.sock: gRPC refuses it, but manifests of CSI drivers are written that
 * way. The forms with a 4 or a 6 refuse an address of the other family, and mean 0.0.0.0 or [::]
 * without a host; a name is taken as it is (OIM registers ipv4:///some-name:8999). Port 0 is
 * allowed. Everything else is INVALID_ARGUMENT and leaves `out` alone.
 */
MUST_CHECK struct error *address_parse(const char *text, struct address *out);

/* The one canonical text, which address_parse turns into the same address. */
void address_print(const struct address *address, char *out, size_t size);

/* Does it stay on this machine by its nature (a unix socket)? */
bool address_is_local(const struct address *address);

#endif
