/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to a server: see client.h. */
#include "cli/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "message/message_field.h"
#include "message/message_json.h"

#define SYSTEM_SOCKET "/run/skycap/csi.sock"
#define MAKE_RUN_SOCKET "run/csi.sock"
#define NS_PER_SECOND UINT64_C(1000000000)

/* ---- flags ---- */

struct option
client_output_flag(struct client_flags *flags)
{
    return (struct option){"output",       'o',
                           "FORMAT",       OPTION_TEXT,
                           &flags->output, "output format, text or json; default text"};
}

void
client_list_flags(struct client_flags *f, struct option table[CLIENT_FLAG_COUNT])
{
    const struct option flags[CLIENT_FLAG_COUNT] = {
        {"endpoint", 0, "ADDR", OPTION_TEXT, &f->endpoint,
         "the server; default $CSI_ENDPOINT, run/csi.sock if you own it, or "
         "unix://" SYSTEM_SOCKET},
        client_output_flag(f),
        {"timeout", 0, "SECONDS", OPTION_NUMBER, &f->timeout_s,
         f->timeout_s ? "time limit for the command; 0: none; default 5" /* of probe */
                      : "time limit for the command; default 0: none"},
        {"tls-ca", 0, "FILE", OPTION_TEXT, &f->tls.ca_file,
         "PEM certificates of the authorities trusted to sign the server's"},
        {"tls-cert", 0, "FILE", OPTION_TEXT, &f->tls.certificate_file, "client certificate, PEM"},
        {"tls-key", 0, "FILE", OPTION_TEXT, &f->tls.key_file, "its private key, PEM"},
        {"tls-name", 0, "NAME", OPTION_TEXT, &f->tls_name,
         "name required in the server's certificate; default: the host of its address"},
    };
    memcpy(table, flags, sizeof flags);
}

/*
 * `make run` creates its socket in the checkout. A socket that belongs to another user is not
 * trusted.
 */
static const char *
default_endpoint(void)
{
    const char *endpoint = getenv("CSI_ENDPOINT");
    struct stat there;
    if (endpoint && endpoint[0])
        return endpoint;
    if (stat(MAKE_RUN_SOCKET, &there) == 0 && S_ISSOCK(there.st_mode) && there.st_uid == geteuid())
        return "unix:" MAKE_RUN_SOCKET;
    return "unix://" SYSTEM_SOCKET;
}

/* ---- opening ---- */

static struct error *
open_tls(struct client *client)
{
    const struct tls_options *tls = &client->flags.tls;
    if (!tls->ca_file && !tls->certificate_file && !tls->key_file)
        return NULL;
    if (!tls->ca_file || !tls->certificate_file || !tls->key_file)
        return error_new(CODE_INVALID_ARGUMENT, "--tls-ca, --tls-cert and --tls-key go together");
    return tls_context_open(tls, &client->tls);
}

void
client_init(struct client *client)
{
    client->log = (struct log){.level = LOG_WARN, .fd = STDERR_FILENO};
    arena_init(&client->arena, NULL, 0, SIZE_MAX);
    client->started_ns = clock_now_ns();
}

struct error *
client_open_channel(struct client *client)
{
    if (client->channel)
        return NULL;
    if (!client->flags.endpoint)
        client->flags.endpoint = default_endpoint();
    struct error *error = open_tls(client);
    if (!error)
        error = runtime_open(&(struct runtime_options){.log = &client->log}, &client->runtime);
    struct channel_options options = {.tls = client->tls,
                                      .tls_name = client->flags.tls_name,
                                      .max_message_bytes = CLIENT_MAX_MESSAGE_BYTES};
    if (!error)
        error = channel_open(client->runtime, client->flags.endpoint, &options, &client->channel);
    return error;
}

void
client_close(struct client *client)
{
    channel_close(client->channel);
    runtime_close(client->runtime);
    tls_context_close(client->tls);
    arena_clear(&client->arena);
}

/* ---- calls ---- */

/* What is left of the command's time limit; 0: there is none. */
static uint64_t
time_left_ns(const struct client *client)
{
    uint64_t all_ns = client->flags.timeout_s * NS_PER_SECOND;
    uint64_t used_ns = clock_now_ns() - client->started_ns;
    if (!all_ns)
        return 0;
    return used_ns < all_ns ? all_ns - used_ns : 1;
}

bool
client_has_time(const struct client *client)
{
    return time_left_ns(client) != 1;
}

/* `limit_ns` 0: only the command's limit counts. */
static struct call_options
options_of(const struct client *client, uint64_t limit_ns)
{
    uint64_t left_ns = time_left_ns(client);
    if (limit_ns && (!left_ns || limit_ns < left_ns))
        left_ns = limit_ns;
    return (struct call_options){.timeout_ns = left_ns, .metadata = client->metadata};
}

/* Adds a hint where the error does not say what to do. */
static struct error *
explain(const struct client *client, struct error *error)
{
    const char *endpoint = client->flags.endpoint;
    if (error && error->code == CODE_UNAVAILABLE && !error->from_peer)
        return error_wrap(error, "no answer from %s (is `skycap serve` running there?)", endpoint);
    if (error && error->code == CODE_UNIMPLEMENTED && client->unimplemented) {
        error_free(error);
        return error_new(CODE_UNIMPLEMENTED, "the server at %s %s", endpoint,
                         client->unimplemented);
    }
    return error;
}

struct error *
client_ask_within(struct client *client, uint64_t timeout_ms, const char *method,
                  const void *request, void *reply)
{
    struct error *error = client_open_channel(client);
    if (error)
        return error;
    struct call_options options = options_of(client, timeout_ms * 1000000);
    client->exit_code = EXIT_FAILED;
    return explain(client, channel_call(client->channel, service_find_method(method), request,
                                        &options, &client->arena, reply));
}

struct error *
client_ask(struct client *client, const char *method, const void *request, void *reply)
{
    return client_ask_within(client, 0, method, request, reply);
}

/* Opens the call and sends its only request. */
static struct error *
open_call(struct client *client, const char *method, const void *request, struct client_call **call)
{
    struct error *error = client_open_channel(client);
    if (error)
        return error;
    struct call_options options = options_of(client, 0);
    client->exit_code = EXIT_FAILED;
    error = client_call_open(client->channel, service_find_method(method), &options, call);
    if (error)
        return explain(client, error);
    /* If the call has already ended, receiving from it says why. */
    error_free(client_call_send(*call, request));
    client_call_close_send(*call);
    return NULL;
}

static struct error *
receive(struct client_call *call, struct arena *arena, void *reply)
{
    ProtobufCMessage *message;
    struct error *error = client_call_recv(call, arena, &message);
    if (!error)
        error = client_call_finish(call);
    if (!error && !message)
        error = error_new(CODE_INTERNAL, "the server has sent no answer");
    if (!error)
        *(ProtobufCMessage **)reply = message;
    return error;
}

static const char *
find_trailer(const struct client_call *call, const char *key, struct arena *arena)
{
    const struct metadata *trailers = client_call_trailers(call);
    for (const struct metadata_entry *entry = trailers->first; entry; entry = entry->next)
        if (strcmp(entry->key, key) == 0)
            return arena_string(arena, entry->value);
    return "";
}

struct error *
client_ask_trailer(struct client *client, const char *method, const void *request, void *reply,
                   const char *key, const char **trailer)
{
    struct client_call *call;
    *trailer = "";
    struct error *error = open_call(client, method, request, &call);
    if (error)
        return error;
    error = receive(call, &client->arena, reply);
    if (!error)
        *trailer = find_trailer(call, key, &client->arena);
    client_call_free(call);
    return explain(client, error);
}

static struct error *
take_all(struct client_call *call, struct error *(*take)(void *context, const void *message),
         void *context)
{
    for (;;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        ProtobufCMessage *message;
        struct error *error = client_call_recv(call, &arena, &message);
        if (!error && !message)
            return client_call_finish(call);
        if (!error)
            error = take(context, message);
        if (error)
            return error;
    }
}

struct error *
client_ask_stream(struct client *client, const char *method, const void *request,
                  struct error *(*take)(void *context, const void *message), void *context)
{
    struct client_call *call;
    struct error *error = open_call(client, method, request, &call);
    if (error)
        return error;
    error = take_all(call, take, context);
    client_call_free(call);
    return explain(client, error);
}

/* ---- lists ---- */

static char **
token_of(const ProtobufCMessage *message, const char *name)
{
    return message_field_value(message, message_field_find(message->descriptor, name));
}

static void
append_items(ProtobufCMessage *all, const ProtobufCMessage *page, struct arena *arena)
{
    const ProtobufCFieldDescriptor *field = &all->descriptor->fields[0];
    void ***items = message_field_value(all, field), ***more = message_field_value(page, field);
    size_t *count = message_field_quantifier(all, field);
    size_t more_count = *(size_t *)message_field_quantifier(page, field);
    void **joined = arena_alloc(arena, (*count + more_count + 1) * sizeof *joined);
    if (*count)
        memcpy(joined, *items, *count * sizeof *joined);
    if (more_count)
        memcpy(joined + *count, *more, more_count * sizeof *joined);
    *items = joined;
    *count += more_count;
}

/* Pages name the same ones again and again. */
static void
note_missing(struct client *client, const char *names)
{
    if (!names[0] || (client->missing && strstr(client->missing, names)))
        return;
    client->missing =
        client->missing ? arena_print(&client->arena, "%s, %s", client->missing, names) : names;
}

struct error *
client_ask_pages(struct client *client, const char *method, void *request, void *reply)
{
    ProtobufCMessage *all = NULL, *page = NULL;
    char **token = token_of(request, "starting_token");
    const char *missing;
    do {
        struct error *error =
            client_ask_trailer(client, method, request, &page, "skycap-degraded", &missing);
        if (error)
            return error;
        note_missing(client, missing);
        if (all)
            append_items(all, page, &client->arena);
        else
            all = page;
        *token = *token_of(page, "next_token");
    } while ((*token)[0]);
    *token_of(all, "next_token") = *token;
    *(ProtobufCMessage **)reply = all;
    return NULL;
}

void
client_warn_of_missing(const struct client *client)
{
    fflush(stdout);
    if (client->missing)
        fprintf(stderr,
                "skycap: warning: no answer from %s: the list may lack what is there, or show it "
                "as it was before\n",
                client->missing);
}

void
client_print_json(const void *message, unsigned flags)
{
    struct buffer text AUTO(buffer_clear) = {0};
    message_json_print(message, flags, &text);
    printf("%s\n", buffer_text(&text));
    fflush(stdout);
}
