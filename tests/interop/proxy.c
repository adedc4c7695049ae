/* SPDX-License-Identifier: Apache-2.0 */
/* Passes every call to another server: the transparent proxy alone. */
#include "rpc/proxy/proxy.h"
#include "flags.h"
#include "rpc/client/channel.h"

static struct error *
pass_on(struct call *call)
{
    rpc_proxy(call, call_context(call));
    return NULL;
}

int
main(int count, char **arguments)
{
    struct flags flags;
    struct log log;
    struct channel *channel;
    flags_read(&flags, count, arguments);
    if (!flags.to)
        flags_must(error_new(CODE_INVALID_ARGUMENT, "--to is missing"));
    struct tls_context *tls = flags_tls(&flags);
    struct runtime *runtime = flags_runtime(&flags, &log);
    flags_must(channel_open(runtime, flags.to,
                            &(struct channel_options){.tls = tls, .tls_name = flags.tls_name},
                            &channel));
    struct server *server = flags_server(&flags, runtime);
    server_set_fallback(server, &(struct fallback){pass_on, .on_loop = true, .context = channel});
    flags_serve(&flags, server, tls);
    server_free(server);
    channel_close(channel);
    runtime_close(runtime);
    tls_context_close(tls);
    return 0;
}
