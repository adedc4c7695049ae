/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses to listen on or connect to, in the forms that users, orchestrators and registries
 * write.
 */
#ifndef RPC_HTTP2_ADDRESS_H
#define RPC_HTTP2_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/error.h"

/* Large enough for any output of address_print. */
#define ADDRESS_TEXT_SIZE 288

enum address_kind { ADDRESS_UNIX, ADDRESS_UNIX_ABSTRACT, ADDRESS_TCP };

struct address {
    enum address_kind kind;
    /* ADDRESS_UNIX: the path. ADDRESS_UNIX_ABSTRACT: the name, without the leading NUL. */
    char path[108];
    size_t path_size;
    /* ADDRESS_TCP: a name or an IP address without brackets; empty listens on all interfaces. */
    char host[256];
    uint16_t port;
};

/*
 * Accepts
 *     unix:relative/path   unix:/path   unix:///path   /path   unix-abstract:name
 *     host:port   1.2.3.4:80   [::1]:80   :80   tcp://host:port   dns:host:port   dns:///host:port
 *     ipv4:1.2.3.4:80   ipv6:[::1]:80   ipv4:///1.2.3.4:80   tcp4://1.2.3.4:80   tcp6://[::1]:80
 *     dns:host   dns:///host   dns://server/host:port   passthrough:///host:port
 *
 * After dns: the port may be missing and is 443 then, as in gRPC. The server is ignored: names are
 * looked up as this machine does it.
 *
 * unix://run/x.sock means /run/x.sock: gRPC refuses it, but manifests of CSI drivers use it. The
 * forms with a 4 or a 6 refuse an IP address of the other family; without a host they mean 0.0.0.0
 * or [::]. They accept any host name (OIM registers ipv4:///some-name:8999). Port 0 is allowed.
 * Everything else is INVALID_ARGUMENT and leaves `out` unchanged.
 */
MUST_CHECK struct error *address_parse(const char *text, struct address *out);

/* Prints the canonical form, which address_parse turns back into the same address. */
void address_print(const struct address *address, char *out, size_t size);

/* Is it a unix socket, which never leaves this machine? */
bool address_is_local(const struct address *address);

#endif
