/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way from the plugin to skycap. A link has settings and a channel, and is shared by all calls
 * that began with these settings. Any thread but the loop's.
 */
#ifndef VELERO_PLUGIN_LINK_H
#define VELERO_PLUGIN_LINK_H

#include "rpc/client/channel.h"
#include "rpc/server/call.h"
#include "velero/plugin_settings.h"

struct link;

/*
 * Loads the certificates; the first call connects. Copies the settings. The caller holds the link.
 */
MUST_CHECK struct error *link_open(struct runtime *runtime, const struct plugin_settings *settings,
                                   struct link **out);

struct link *link_hold(struct link *link);
/* The last holder closes it. NULL is ignored. */
void link_release(struct link *link);
/* For AUTO. */
void link_cleanup(struct link **link);

const struct plugin_settings *link_settings(const struct link *link);

/*
 * A call to skycap on behalf of `call`; the reply is in its arena. Ends after `timeout_ms`, or when
 * `call` does. An error because of an unreachable server names its address.
 */
MUST_CHECK struct error *link_ask(struct link *link, struct call *call, const struct method *method,
                                  const void *request, uint64_t timeout_ms, void *reply);

#endif
