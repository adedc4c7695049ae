/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin prints after its handshake: see host_stdio.h. */
#include "velero/host_stdio.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "google/protobuf/empty.pb-c.h"
#include "proto/goplugin.pb-c.h"
#include "velero/host_log.h"

#define MESSAGE_BYTES (8u << 20) /* decoded; the channel limits what is received */

struct host_stdio {
    struct client_call *call;
    struct host_log output, errors;
    pthread_t thread;
};

/* False: the stream has ended. Why does not matter: many plugins have no such stream. */
static bool
receive(struct host_stdio *stdio)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, MESSAGE_BYTES);
    Plugin__StdioData *data;
    struct error *error AUTO(error_cleanup) = client_call_recv(stdio->call, &arena, &data);
    if (error || !data)
        return false;
    bool is_errors = data->channel == PLUGIN__STDIO_DATA__CHANNEL__STDERR;
    host_log_take(is_errors ? &stdio->errors : &stdio->output, data->data.data, data->data.len);
    return true;
}

static void *
receive_all(void *argument)
{
    struct host_stdio *stdio = argument;
    while (receive(stdio))
        ;
    host_log_end(&stdio->output);
    host_log_end(&stdio->errors);
    return NULL;
}

struct error *
host_stdio_open(struct channel *channel, const struct log *log, const char *plugin,
                struct host_stdio **out)
{
    Google__Protobuf__Empty request = GOOGLE__PROTOBUF__EMPTY__INIT;
    struct host_stdio *stdio = memory_zeroed(sizeof *stdio);
    const struct method *method = service_find_method("plugin.GRPCStdio/StreamStdio");
    host_log_init(&stdio->output, log, plugin);
    host_log_init(&stdio->errors, log, plugin);
    struct error *error =
        client_call_open(channel, method, &(struct call_options){0}, &stdio->call);
    if (error) {
        free(stdio);
        return error;
    }
    /* A call that has ended already ends the thread. */
    error_free(client_call_send(stdio->call, &request.base));
    client_call_close_send(stdio->call);
    int failed = pthread_create(&stdio->thread, NULL, receive_all, stdio);
    if (failed) {
        client_call_free(stdio->call);
        free(stdio);
        return error_from_errno(failed, "start a thread");
    }
    *out = stdio;
    return NULL;
}

void
host_stdio_close(struct host_stdio *stdio)
{
    if (!stdio)
        return;
    client_call_cancel(stdio->call);
    pthread_join(stdio->thread, NULL);
    client_call_free(stdio->call);
    free(stdio);
}
