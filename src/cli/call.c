/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skycap call: calls any method that the program was built with, JSON in, JSON out. Needs no
 * reflection.
 *
 * Streaming: the argument may have several JSON values, one for each message; every reply is
 * printed.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/client.h"
#include "message/message_json.h"

#define DEFAULT_SECONDS 30
#define CONTROLLER_ID                                                                              \
    "controllerid" /* names the controller to which a registry forwards the call */

static struct client_flags flags = {.timeout_s = DEFAULT_SECONDS};
static struct text_list metadata_pairs;
static const char *controller;
static bool is_compact;
static const struct method *method;

/* ---- flags ---- */

static const struct option call_flags[] = {
    {"metadata", 0, "KEY=VALUE", OPTION_LIST, &metadata_pairs,
     "send this with the call; may be given several times"},
    {"controller", 0, "ID", OPTION_TEXT, &controller,
     "ADDRESS is a registry: have it forward the call to this controller"},
    {"timeout", 0, "SECONDS", OPTION_NUMBER, &flags.timeout_s,
     "time limit for the call; default 30"},
    {"compact", 0, NULL, OPTION_FLAG, &is_compact, "print each reply on one line"},
    {"tls-ca", 0, "FILE", OPTION_TEXT, &flags.tls.ca_file,
     "PEM certificates of the authorities trusted to sign the server's"},
    {"tls-cert", 0, "FILE", OPTION_TEXT, &flags.tls.certificate_file, "client certificate, PEM"},
    {"tls-key", 0, "FILE", OPTION_TEXT, &flags.tls.key_file, "its private key, PEM"},
    {"tls-name", 0, "NAME", OPTION_TEXT, &flags.tls_name,
     "name required in the server's certificate; default: the host of ADDRESS"},
    {0},
};

static struct error *
find_method(const char *name)
{
    method = service_find_method(name);
    if (method)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT,
                     "unknown method \"%s\": give it as package.Service/Method, like "
                     "csi.v1.Identity/Probe",
                     name);
}

static struct error *
read_metadata(struct arena *arena, struct metadata *metadata)
{
    for (size_t i = 0; i < metadata_pairs.count; i++) {
        const char *pair = metadata_pairs.items[i], *equals = strchr(pair, '=');
        if (!equals)
            return error_new(CODE_INVALID_ARGUMENT, "--metadata %s: give it as key=value", pair);
        char *key = arena_copy(arena, pair, (size_t)(equals - pair));
        struct error *error = metadata_add(metadata, arena, key, equals + 1, strlen(equals + 1));
        if (error)
            return error_wrap(error, "--metadata");
    }
    return NULL;
}

static struct error *
add_controller(struct arena *arena, struct metadata *metadata)
{
    if (!controller)
        return NULL;
    if (metadata_find(metadata, CONTROLLER_ID))
        return error_new(CODE_INVALID_ARGUMENT, "--controller and --metadata " CONTROLLER_ID
                                                "=... say the same: give one");
    return error_wrap(metadata_add(metadata, arena, CONTROLLER_ID, controller, strlen(controller)),
                      "--controller");
}

static struct error *
read_input(const char *json, struct buffer *text)
{
    if (strcmp(json, "-") != 0) {
        buffer_append_text(text, json);
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

/* The size of the first JSON value in the text. */
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

/* `*message` NULL: there is no other. */
static struct error *
next_message(const struct buffer *text, size_t *at, ProtobufCMessage **message)
{
    *message = NULL;
    *at = skip_space(text, *at);
    if (*at == text->size)
        return NULL;
    const char *value = (const char *)text->bytes + *at;
    size_t size = value_size(value, text->size - *at);
    *at += size;
    return message_json_parse(value, size, method->input, NULL, message);
}

static void
print_reply(const ProtobufCMessage *message)
{
    client_print_json(message, is_compact ? 0 : MESSAGE_JSON_PRETTY);
}

/* ---- calling ---- */

static void
free_message(ProtobufCMessage **message)
{
    if (*message)
        protobuf_c_message_free_unpacked(*message, NULL);
}

static struct error *
call_unary(struct client *client, const struct call_options *options, const struct buffer *text)
{
    ProtobufCMessage *request AUTO(free_message) = NULL;
    size_t at = 0;
    struct error *error = next_message(text, &at, &request);
    if (!error && (!request || skip_space(text, at) < text->size))
        error = error_new(CODE_INVALID_ARGUMENT, "%s takes exactly one message", method->path);
    if (error)
        return error;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, 2 * (size_t)CLIENT_MAX_MESSAGE_BYTES);
    ProtobufCMessage *reply;
    client->exit_code = EXIT_FAILED;
    error = channel_call(client->channel, method, request, options, &arena, &reply);
    if (!error)
        print_reply(reply);
    return error;
}

static struct error *
send_all(struct client_call *call, const struct buffer *text)
{
    size_t at = 0;
    for (;;) {
        ProtobufCMessage *message AUTO(free_message) = NULL;
        struct error *error = next_message(text, &at, &message);
        if (error || !message)
            return error;
        error = client_call_send(call, message);
        if (error) {
            /* The call has ended; its status says why. */
            error_free(error);
            return NULL;
        }
    }
}

static struct error *
print_all(struct client_call *call)
{
    for (;;) {
        struct arena arena AUTO(arena_clear);
        arena_init(&arena, NULL, 0, 2 * (size_t)CLIENT_MAX_MESSAGE_BYTES);
        ProtobufCMessage *message;
        struct error *error = client_call_recv(call, &arena, &message);
        if (error || !message)
            return error;
        print_reply(message);
    }
}

static struct error *
call_streaming(struct client *client, const struct call_options *options, const struct buffer *text)
{
    struct client_call *call;
    struct error *error = client_call_open(client->channel, method, options, &call);
    if (error)
        return error;
    error = send_all(call, text);
    if (!error) {
        client->exit_code = EXIT_FAILED;
        client_call_close_send(call);
        error = print_all(call);
    }
    if (!error)
        error = client_call_finish(call);
    client_call_free(call);
    return error;
}

static struct error *
call(struct client *client)
{
    struct buffer text AUTO(buffer_clear) = {0};
    struct metadata metadata = {0};
    client->flags = flags;
    client->flags.endpoint = client->words[0];
    struct error *error = find_method(client->words[1]);
    if (!error)
        error = client_open_channel(client);
    if (!error)
        error = read_metadata(&client->arena, &metadata);
    if (!error)
        error = add_controller(&client->arena, &metadata);
    if (!error)
        error = read_input(client->word_count > 2 ? client->words[2] : "{}", &text);
    if (error)
        return error;
    struct call_options options = {.metadata = &metadata,
                                   .timeout_ns = flags.timeout_s * UINT64_C(1000000000)};
    error = method->kind == METHOD_UNARY ? call_unary(client, &options, &text)
                                         : call_streaming(client, &options, &text);
    if (error && client->exit_code == EXIT_FAILED)
        error = error_wrap(error, "%s", error_code_name(error->code));
    return error;
}

const struct command call_command = {
    .name = "call",
    .summary = "call a method of any gRPC server, JSON in and out",
    .words = "ADDRESS METHOD [JSON]",
    .help = "Calls METHOD (such as csi.v1.Identity/Probe) of the gRPC server at ADDRESS "
            "(unix:///path, host:port)\nwith the request JSON ({} if absent; - reads standard "
            "input) and prints the reply as JSON.\nA streaming method takes several JSON values, "
            "one after the other.",
    .flags = call_flags,
    .more_flags = COMMAND_NO_FLAGS,
    .run = call,
};
