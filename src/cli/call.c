/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap call: calls any method that the program was built with, JSON in, JSON out. No reflection
 * is needed: the messages are known.
 *
 * Streaming: each JSON value of the argument (they may stand one behind the other) is one message;
 * every reply is printed.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/client.h"
#include "message/message_json.h"

#define DEFAULT_SECONDS 30
#define CONTROLLER_ID "controllerid" /* tells a registry whom to pass the call on to */

struct settings {
    struct text_list metadata;
    const char *controller;
    struct client_flags *flags;
    bool compact;
    const struct method *method;
    const char *json;
};

/* ---- flags ---- */

static struct error *
find_method(const char *name, const struct method **method)
{
    *method = service_find_method(name);
    if (*method)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "unknown method \"%s\": give it as package.Service/Method, like "
                     "csi.v1.Identity/Probe",
                     name);
}

static struct error *
read_flags(struct settings *s, int count, char **arguments, bool *helped)
{
    const struct option table[] = {
        {"metadata", 0, "KEY=VALUE", OPTION_LIST, &s->metadata,
         "send this with the call; may be given several times"},
        {"controller", 0, "ID", OPTION_TEXT, &s->controller,
         "ADDRESS is a registry: have it forward the call to this controller"},
        {"timeout", 0, "SECONDS", OPTION_NUMBER, &s->flags->timeout_s,
         "time limit for the call; default 30"},
        {"compact", 0, NULL, OPTION_FLAG, &s->compact, "print each reply on one line"},
        {"tls-ca", 0, "FILE", OPTION_TEXT, &s->flags->tls.ca_file,
         "PEM certificates of the authorities trusted to sign the server's"},
        {"tls-cert", 0, "FILE", OPTION_TEXT, &s->flags->tls.certificate_file,
         "client certificate, PEM"},
        {"tls-key", 0, "FILE", OPTION_TEXT, &s->flags->tls.key_file, "its private key, PEM"},
        {"tls-name", 0, "NAME", OPTION_TEXT, &s->flags->tls_name,
         "name required in the server's certificate; default: the host of ADDRESS"},
    };
    const struct options options = {
        .usage = "skycap call [options] ADDRESS METHOD [JSON]",
        .summary = "Calls METHOD (such as csi.v1.Identity/Probe) of the gRPC server at ADDRESS "
                   "(unix:///path, host:port)\nwith the request JSON ({} if absent; - reads "
                   "standard input) and prints the reply as JSON.\nA streaming method takes "
                   "several JSON values, one after the other.",
        .table = table,
        .count = COUNT_OF(table),
    };
    int rest;
    struct error *error = options_parse(&options, count, arguments, &rest, helped);
    if (error || *helped)
        return error;
    if (count - rest < 2 || count - rest > 3)
        return error_new(CODE_INVALID_ARGUMENT,
                         "needs ADDRESS, METHOD and at most one JSON (see skycap call --help)");
    s->flags->endpoint = arguments[rest];
    s->json = count - rest == 3 ? arguments[rest + 2] : "{}";
    return find_method(arguments[rest + 1], &s->method);
}

static struct error *
read_metadata(const struct text_list *list, struct arena *arena, struct metadata *metadata)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        if (!equals)
            return error_new(CODE_INVALID_ARGUMENT, "--metadata %s: give it as key=value",
                             list->items[i]);
        char *key = arena_copy(arena, list->items[i], (size_t)(equals - list->items[i]));
        struct error *error = metadata_add(metadata, arena, key, equals + 1, strlen(equals + 1));
        if (error)
            return error_wrap(error, "--metadata");
    }
    return NULL;
}

static struct error *
add_controller(const char *id, struct arena *arena, struct metadata *metadata)
{
    if (!id)
        return NULL;
    if (metadata_find(metadata, CONTROLLER_ID))
        return error_new(CODE_INVALID_ARGUMENT, "--controller and --metadata " CONTROLLER_ID
                                                "=... say the same: give one");
    return error_wrap(metadata_add(metadata, arena, CONTROLLER_ID, id, strlen(id)), "--controller");
}

static struct error *
read_input(const struct settings *settings, struct buffer *text)
{
    if (strcmp(settings->json, "-") != 0) {
        buffer_append_text(text, settings->json);
        return NULL;
    }
    size_t got;
    do {
        got = fread(buffer_reserve(text, 65536), 1, 65536, stdin);
        text->size += got;
        if (text->size > MESSAGE_JSON_MAX_SIZE)
            return error_new(CODE_INVALID_ARGUMENT, "standard input is larger than %zu bytes",
                             MESSAGE_JSON_MAX_SIZE);
    } while (got);
    return NULL;
}

/* ---- messages ---- */

/* Where the JSON value that begins the text ends: values may stand one behind the other. */
static size_t
value_size(const char *text, size_t size)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (quoted) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                quoted = false;
        } else if (text[i] == '"') {
            quoted = true;
        } else if (text[i] == '{' || text[i] == '[') {
            depth++;
        } else if ((text[i] == '}' || text[i] == ']') && depth && --depth == 0) {
            return i + 1;
        }
    }
    return size;
}

static size_t
skip_space(const struct buffer *text, size_t at)
{
    while (at < text->size && isspace(text->bytes[at]))
        at++;
    return at;
}

/* The message that begins at *at; NULL in *message when there is none. */
static struct error *
next_message(const struct settings *settings, const struct buffer *text, size_t *at,
             ProtobufCMessage **message)
{
    *message = NULL;
    *at = skip_space(text, *at);
    if (*at == text->size)
        return NULL;
    const char *value = (const char *)text->bytes + *at;
    size_t size = value_size(value, text->size - *at);
    *at += size;
    return message_json_parse(value, size, settings->method->input, NULL, message);
}

static void
print_reply(const struct settings *settings, const ProtobufCMessage *message)
{
    struct buffer text AUTO(buffer_clear) = {0};
    message_json_print(message, settings->compact ? 0 : MESSAGE_JSON_PRETTY, &text);
    printf("%s\n", buffer_text(&text));
    fflush(stdout);
}

/* ---- calling ---- */

static void
free_message(ProtobufCMessage **message)
{
    if (*message)
        protobuf_c_message_free_unpacked(*message, NULL);
}

static struct error *
call_unary(const struct settings *settings, struct channel *channel,
           const struct call_options *options, const struct buffer *text, enum exit_code *exit_code)
{
    ProtobufCMessage *request AUTO(free_message) = NULL;
    size_t at = 0;
    struct error *error = next_message(settings, text, &at, &request);
    if (!error && (!request || skip_space(text, at) < text->size))
        error = error_new(CODE_INVALID_ARGUMENT, "%s takes exactly one message",
                          settings->method->path);
    if (error)
        return error;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, 2 * (size_t)CLIENT_MAX_MESSAGE_BYTES);
    ProtobufCMessage *reply;
    *exit_code = EXIT_FAILED;
    error = channel_call(channel, settings->method, request, options, &arena, &reply);
    if (!error) {
        *exit_code = EXIT_OK;
        print_reply(settings, reply);
    }
    return error;
}

static struct error *
send_all(const struct settings *settings, struct client_call *call, const struct buffer *text)
{
    size_t at = 0;
    for (;;) {
        ProtobufCMessage *message AUTO(free_message) = NULL;
        struct error *error = next_message(settings, text, &at, &message);
        if (error || !message)
            return error;
        error = client_call_send(call, message);
        if (error) {
            /* The call has ended; how, the status tells. */
            error_free(error);
            return NULL;
        }
    }
}

static struct error *
print_all(const struct settings *settings, struct client_call *call)
{
    for (;;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, 2 * (size_t)CLIENT_MAX_MESSAGE_BYTES);
        ProtobufCMessage *message;
        struct error *error = client_call_recv(call, &arena, &message);
        if (error || !message)
            return error;
        print_reply(settings, message);
    }
}

static struct error *
call_streaming(const struct settings *settings, struct channel *channel,
               const struct call_options *options, const struct buffer *text,
               enum exit_code *exit_code)
{
    struct client_call *call;
    struct error *error = client_call_open(channel, settings->method, options, &call);
    if (error)
        return error;
    error = send_all(settings, call, text);
    if (!error) {
        *exit_code = EXIT_FAILED;
        client_call_close_send(call);
        error = print_all(settings, call);
    }
    if (!error)
        error = client_call_finish(call);
    if (!error)
        *exit_code = EXIT_OK;
    client_call_free(call);
    return error;
}

static struct error *
call(const struct settings *settings, struct client *client, enum exit_code *exit_code)
{
    struct buffer text AUTO(buffer_clear) = {0};
    struct metadata metadata = {0};
    struct error *error = client_connect(client);
    if (!error)
        error = read_metadata(&settings->metadata, &client->arena, &metadata);
    if (!error)
        error = add_controller(settings->controller, &client->arena, &metadata);
    if (!error)
        error = read_input(settings, &text);
    if (error)
        return error;
    struct call_options options = {.metadata = &metadata,
                                   .timeout_ns = client->flags.timeout_s * UINT64_C(1000000000)};
    error = settings->method->kind == METHOD_UNARY
                ? call_unary(settings, client->channel, &options, &text, exit_code)
                : call_streaming(settings, client->channel, &options, &text, exit_code);
    if (error && *exit_code == EXIT_FAILED)
        error = error_wrap(error, "%s", error_code_name(error->code));
    return error;
}

static struct error *
run(int count, char **arguments, enum exit_code *exit_code)
{
    struct client client AUTO(client_close) = {.flags.timeout_s = DEFAULT_SECONDS};
    struct settings settings = {.flags = &client.flags};
    bool helped;
    struct error *error = read_flags(&settings, count, arguments, &helped);
    if (!error && !helped)
        error = call(&settings, &client, exit_code);
    options_free_list(&settings.metadata);
    return error;
}

const struct command call_command = {"call", "call a method of any gRPC server, JSON in and out",
                                     run};
