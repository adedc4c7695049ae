/* SPDX-License-Identifier: Apache-2.0 */
/* The way to skycap: see plugin_link.h. */
#include "velero/plugin_link.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"

#define CONNECT_MS 3000
#define MAX_MESSAGE_BYTES ((size_t)16 << 20)
#define NS_PER_MS UINT64_C(1000000)

struct link {
    atomic_uint holders;
    struct runtime *runtime;
    struct arena arena; /* of the settings */
    struct plugin_settings settings;
    struct tls_context *tls; /* NULL: plaintext */
    struct channel *channel;
};

static struct error *
open_channel(struct link *link)
{
    const struct plugin_settings *settings = &link->settings;
    if (settings->tls_ca) {
        const struct tls_options files = {settings->tls_ca, settings->tls_cert, settings->tls_key};
        struct error *error = tls_context_open(&files, &link->tls);
        if (error)
            return error;
    }
    const struct channel_options options = {
        .tls = link->tls,
        .tls_name = settings->tls_name,
        .connect_timeout_ms = CONNECT_MS,
        .max_message_bytes = MAX_MESSAGE_BYTES,
    };
    return error_wrap(channel_open(link->runtime, settings->endpoint, &options, &link->channel),
                      "endpoint");
}

struct error *
link_open(struct runtime *runtime, const struct plugin_settings *settings, struct link **out)
{
    struct link *link = memory_zeroed(sizeof *link);
    link->runtime = runtime;
    link->holders = 1;
    arena_init(&link->arena, NULL, 0, SIZE_MAX);
    link->settings = plugin_settings_copy(settings, &link->arena);
    struct error *error = open_channel(link);
    if (error)
        link_release(link);
    else
        *out = link;
    return error;
}

struct link *
link_hold(struct link *link)
{
    atomic_fetch_add(&link->holders, 1);
    return link;
}

void
link_release(struct link *link)
{
    if (!link || atomic_fetch_sub(&link->holders, 1) != 1)
        return;
    if (link->channel)
        channel_close(link->channel);
    runtime_close_tls(link->runtime, link->tls);
    arena_clear(&link->arena);
    free(link);
}

void
link_cleanup(struct link **link)
{
    link_release(*link);
}

const struct plugin_settings *
link_settings(const struct link *link)
{
    return &link->settings;
}

struct error *
link_ask(struct link *link, struct call *call, const struct method *method, const void *request,
         uint64_t timeout_ms, void *reply)
{
    const struct call_options options = {.timeout_ns = timeout_ms * NS_PER_MS,
                                         .parent = call_as_parent(call)};
    struct error *error =
        channel_call(link->channel, method, request, &options, call_arena(call), reply);
    if (error && !error->from_peer)
        return error_wrap(error, "skycap at %s does not answer %s", link->settings.endpoint,
                          method->name);
    return error;
}
