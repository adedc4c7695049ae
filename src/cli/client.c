/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that ask a server: see client.h. */
#include "cli/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "message/message_json.h"

#define SYSTEM_SOCKET "/run/skycap/csi.sock"
#define MAKE_RUN_SOCKET "run/csi.sock"
#define NS_PER_SECOND UINT64_C(1000000000)

/* ---- flags ---- */

void
client_flag_table(struct client_flags *f, struct option table[CLIENT_FLAG_COUNT])
{
    const struct option flags[CLIENT_FLAG_COUNT] = {
        {"endpoint", 0, "ADDR", OPTION_TEXT, &f->endpoint,
         "the server; default $CSI_ENDPOINT, run/csi.sock if you own it, or "
         "unix://" SYSTEM_SOCKET},
        {"output", 'o', "FORMAT", OPTION_TEXT, &f->output,
         "output format, text or json; default text"},
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
 * `make run` leaves its socket in the checkout. One that somebody else has put into a directory is
 * not trusted.
 */
const char *
client_default_endpoint(void)
{
    const char *endpoint = getenv("CSI_ENDPOINT");
    struct stat there;
    if (endpoint && endpoint[0])
        return endpoint;
    if (stat(MAKE_RUN_SOCKET, &there) == 0 && S_ISSOCK(there.st_mode) && there.st_uid == geteuid())
        return "unix:" MAKE_RUN_SOCKET;
    return "unix://" SYSTEM_SOCKET;
}

static struct error *
read_output(struct client *client)
{
    const char *output = client->flags.output;
    client->as_json = output && strcmp(output, "json") == 0;
    if (client->as_json || !output || strcmp(output, "text") == 0)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "--output: \"%s\" is neither text nor json", output);
}

static struct error *
check_words(const struct client *client, const struct client_usage *usage)
{
    if (client->word_count >= usage->least_words && client->word_count <= usage->most_words)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "%s; usage: %s",
                     client->word_count < usage->least_words ? "something is missing"
                                                             : "these are too many arguments",
                     usage->usage);
}

struct error *
client_read_flags(struct client *client, const struct client_usage *usage, int count,
                  char **arguments, enum exit_code *exit_code)
{
    client->exit_code = exit_code;
    size_t all = usage->own_count + CLIENT_FLAG_COUNT;
    struct option *table AUTO(memory_cleanup) = memory_new(all * sizeof *table);
    if (usage->own_count)
        memcpy(table, usage->own, usage->own_count * sizeof *table);
    client_flag_table(&client->flags, table + usage->own_count);
    const struct options options = {usage->usage, usage->summary, table, all};
    int rest;
    struct error *error = options_parse(&options, count, arguments, &rest, &client->has_helped);
    if (error || client->has_helped)
        return error;
    client->words = arguments + rest;
    client->word_count = count - rest;
    error = check_words(client, usage);
    return error ? error : read_output(client);
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

struct error *
client_connect(struct client *client)
{
    client->log = (struct log){.level = LOG_WARN, .fd = STDERR_FILENO};
    arena_init(&client->arena, NULL, 0, SIZE_MAX);
    client->started_ns = clock_now_ns();
    if (!client->flags.endpoint)
        client->flags.endpoint = client_default_endpoint();
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

struct error *
client_open(struct client *client, const struct client_usage *usage, int count, char **arguments,
            enum exit_code *exit_code)
{
    struct error *error = client_read_flags(client, usage, count, arguments, exit_code);
    return error || client->has_helped ? error : client_connect(client);
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

/* What is left of the command's time; 0: it has no end. */
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

/* `limit_ns` 0: there is no other limit than the command's. */
static struct call_options
options_of(const struct client *client, uint64_t limit_ns)
{
    uint64_t left_ns = time_left_ns(client);
    if (limit_ns && (!left_ns || limit_ns < left_ns))
        left_ns = limit_ns;
    return (struct call_options){.timeout_ns = left_ns, .metadata = client->metadata};
}

/* A server's words are for people already; only that there is none needs a hint. */
static struct error *
explain(const struct client *client, struct error *error)
{
    if (!error || error->code != CODE_UNAVAILABLE || error->from_peer)
        return error;
    return error_wrap(error, "no answer from %s (is `skycap serve` running there?)",
                      client->flags.endpoint);
}

struct error *
client_ask_within(struct client *client, uint64_t timeout_ms, const char *method,
                  const void *request, void *reply)
{
    struct call_options options = options_of(client, timeout_ms * 1000000);
    *client->exit_code = EXIT_FAILED;
    return explain(client, channel_call(client->channel, service_find_method(method), request,
                                        &options, &client->arena, reply));
}

struct error *
client_ask(struct client *client, const char *method, const void *request, void *reply)
{
    return client_ask_within(client, 0, method, request, reply);
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
    struct call_options options = options_of(client, 0);
    struct client_call *call;
    *client->exit_code = EXIT_FAILED;
    *trailer = "";
    struct error *error =
        client_call_open(client->channel, service_find_method(method), &options, &call);
    if (error)
        return explain(client, error);
    /* A call that has ended already says why when it is asked for its answer. */
    error_free(client_call_send(call, request));
    client_call_close_send(call);
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
    struct call_options options = options_of(client, 0);
    struct client_call *call;
    *client->exit_code = EXIT_FAILED;
    struct error *error =
        client_call_open(client->channel, service_find_method(method), &options, &call);
    if (error)
        return explain(client, error);
    /* A call that has ended already says why when it is asked for messages. */
    error_free(client_call_send(call, request));
    client_call_close_send(call);
    error = take_all(call, take, context);
    client_call_free(call);
    return explain(client, error);
}

void *
client_join(struct client *client, void *first, size_t first_count, void *second,
            size_t second_count)
{
    if (!first_count)
        return second;
    void **all = arena_alloc(&client->arena, (first_count + second_count) * sizeof *all);
    memcpy(all, first, first_count * sizeof *all);
    if (second_count)
        memcpy(all + first_count, second, second_count * sizeof *all);
    return all;
}

void
client_print_json(const void *message, unsigned flags)
{
    struct buffer text AUTO(buffer_clear) = {0};
    message_json_print(message, flags, &text);
    printf("%s\n", buffer_text(&text));
    fflush(stdout);
}
