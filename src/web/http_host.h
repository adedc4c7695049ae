/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that a request may call this server by. A page from elsewhere whose name is made to
 * point here (DNS rebinding) sends its own name, and is refused. Addresses cannot be rebound.
 */
#ifndef WEB_HTTP_HOST_H
#define WEB_HTTP_HOST_H

#include <stdbool.h>
#include <stddef.h>

/* Is "HOST" or "HOST:PORT" an IP address, localhost, or one of the names? */
bool http_host_is_known(const char *host, const char *const *names, size_t count);

/* Is the Origin of a request the server itself, as Host names it? */
bool http_host_is_origin(const char *host, const char *origin);

/* Does the numeric address belong to the loopback? */
bool http_host_is_loopback(const char *address);

#endif
