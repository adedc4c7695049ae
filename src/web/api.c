/* SPDX-License-Identifier: Apache-2.0 */
/* The API of the web page: see api.h. This file: who may ask what, and the answers' form. */
#include "web/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "web/api_internal.h"
#include "web/assets.h"
#include "web/http_host.h"

#define PREFIX "/api/v1/"
#define JSON "application/json; charset=utf-8"
#define LEAST_TOKEN 16
#define MOST_TOKEN 256
#define MAX_REPLY_BYTES ((size_t)64 << 20)
#define BEARER "Bearer "

struct route {
    const char *path; /* after PREFIX */
    enum http_method method;
    api_handler *handle;
};

static const struct route routes[] = {
    {"overview", HTTP_GET, api_show_overview},
    {"nodes", HTTP_GET, api_list_nodes},
    {"volumes", HTTP_GET, api_list_volumes},
    {"snapshots", HTTP_GET, api_list_snapshots},
    {"volume", HTTP_GET, api_show_volume},
    {"snapshot", HTTP_GET, api_show_snapshot},
    {"operations", HTTP_GET, api_list_operations},
    {"connections", HTTP_GET, api_list_connections},
    {"repositories", HTTP_GET, api_list_repositories},
    {"exports", HTTP_GET, api_list_exports},
    {"latencies", HTTP_GET, api_list_latencies},
    {"volumes", HTTP_POST, api_create_volume},
    {"volumes/delete", HTTP_POST, api_delete_volume},
    {"snapshots", HTTP_POST, api_create_snapshot},
    {"snapshots/delete", HTTP_POST, api_delete_snapshot},
    {"moves", HTTP_POST, api_move_volume},
    {"operations/cancel", HTTP_POST, api_cancel_operation},
};

/* ---- errors ---- */

static int
status_of(enum code code)
{
    switch (code) {
    case CODE_INVALID_ARGUMENT:
    case CODE_OUT_OF_RANGE:
        return 400;
    case CODE_UNAUTHENTICATED:
        return 401;
    case CODE_PERMISSION_DENIED:
        return 403;
    case CODE_NOT_FOUND:
        return 404;
    case CODE_ALREADY_EXISTS:
    case CODE_ABORTED:
    case CODE_FAILED_PRECONDITION:
        return 409;
    case CODE_RESOURCE_EXHAUSTED:
        return 507;
    case CODE_UNIMPLEMENTED:
        return 501;
    case CODE_UNAVAILABLE:
        return 503;
    case CODE_DEADLINE_EXCEEDED:
        return 504;
    default:
        return 500;
    }
}

static void
answer_error(struct http_answer *answer, int status, const struct error *error)
{
    struct json_writer out = {&answer->body, false};
    buffer_clear(&answer->body);
    answer->status = status;
    answer->content_type = JSON;
    json_writer_begin(&out, NULL, '{');
    json_writer_begin(&out, "error", '{');
    json_writer_text(&out, "code", error_code_name(error->code));
    json_writer_text(&out, "message", error->message);
    json_writer_end(&out, '}');
    json_writer_end(&out, '}');
}

/* ---- who may ask ---- */

/* Takes the same time wherever the texts differ. */
static bool
is_same(const char *given, const char *token)
{
    size_t size = strlen(token), given_size = strlen(given);
    volatile unsigned char difference = size != given_size;
    for (size_t i = 0; i < size; i++)
        difference |=
            (unsigned char)token[i] ^ (unsigned char)given[given_size ? i % given_size : 0];
    return !difference;
}

/* A token that is wrong is an error wherever it is sent. */
static struct error *
check_token(struct api_request *request)
{
    const char *token = request->api->options.token, *given = request->http->authorization;
    if (!given || !token)
        return NULL;
    if (strncasecmp(given, BEARER, strlen(BEARER)) != 0 || !is_same(given + strlen(BEARER), token))
        return error_new(CODE_UNAUTHENTICATED, "the token is wrong");
    request->may_change = true;
    return NULL;
}

/*
 * Browsers tell which site's page makes them ask, also where they send no Origin. Another site
 * could read nothing, but hold all streams of events.
 */
static struct error *
check_site(const struct http_request *http)
{
    const char *site = http->fetch_site;
    if (!site || (strcmp(site, "cross-site") != 0 && strcmp(site, "same-site") != 0))
        return NULL;
    return error_new(CODE_PERMISSION_DENIED, "the request comes from the page of another site");
}

static struct error *
check_change(const struct api_request *request)
{
    const struct http_request *http = request->http;
    if (!request->api->options.token)
        return error_new(CODE_PERMISSION_DENIED,
                         "the page is read-only: the server was started without --http-token-file");
    if (http->origin && !(http->host && http_host_is_origin(http->host, http->origin)))
        return error_new(CODE_PERMISSION_DENIED, "the request comes from the page of another site");
    if (!request->may_change)
        return error_new(CODE_UNAUTHENTICATED, "changes need the token of --http-token-file");
    return NULL;
}

static struct error *
check_access(struct api_request *request)
{
    struct error *error = check_site(request->http);
    if (!error)
        error = check_token(request);
    if (error)
        return error;
    if (request->http->method == HTTP_POST)
        return check_change(request);
    if (atomic_load(&request->api->place) != API_ON_LOOPBACK && !request->may_change)
        return error_new(CODE_UNAUTHENTICATED, "this needs the token of --http-token-file");
    return NULL;
}

/* ---- the body of a POST ---- */

static bool
is_json(const char *content_type)
{
    size_t size = content_type ? strcspn(content_type, "; \t") : 0;
    return size == strlen("application/json") &&
           strncasecmp(content_type, "application/json", size) == 0;
}

static struct error *
read_body(const struct http_request *http, struct json_value **out)
{
    if (!is_json(http->content_type))
        return error_new(CODE_INVALID_ARGUMENT, "the Content-Type must be application/json");
    struct error *error = json_value_parse(http->body, http->body_size, out);
    if (error || json_value_is_object(*out))
        return error;
    return error_new(CODE_INVALID_ARGUMENT, "the body is not a JSON object");
}

/* ---- requests ---- */

static const struct route *
find_route(const char *path, enum http_method method)
{
    for (size_t i = 0; i < COUNT_OF(routes); i++)
        if (routes[i].method == method && strcmp(routes[i].path, path) == 0)
            return &routes[i];
    return NULL;
}

/* A change that takes longer than the page waits has not failed. Takes the error. */
static struct error *
explain_silence(struct error *error)
{
    if (!error || error->code != CODE_DEADLINE_EXCEEDED)
        return error;
    error_free(error);
    return error_new(CODE_DEADLINE_EXCEEDED,
                     "it is not done yet, and may go on: look later whether it is, or repeat it");
}

static struct error *
handle(struct api_request *request, const struct route *route)
{
    struct json_value *body AUTO(json_value_cleanup) = NULL;
    struct error *error = NULL;
    if (route->method == HTTP_POST)
        error = read_body(request->http, &body);
    if (error)
        return error;
    request->body = body;
    request->answer->content_type = JSON;
    json_writer_begin(&request->out, NULL, '{');
    error = route->handle(request);
    json_writer_end(&request->out, '}');
    return route->method == HTTP_POST ? explain_silence(error) : error;
}

static struct error *
run(struct api_request *request, const char *path)
{
    bool is_post = request->http->method == HTTP_POST;
    const struct route *route = find_route(path, is_post ? HTTP_POST : HTTP_GET);
    struct error *error = check_access(request);
    if (error)
        return error;
    if (!atomic_load(&request->api->is_ready))
        return error_new(CODE_UNAVAILABLE, "the server is starting or ending");
    if (!is_post && strcmp(path, "events") == 0) {
        api_events_serve(request->api->events, request->answer);
        return NULL;
    }
    return route ? handle(request, route)
                 : error_new(CODE_NOT_FOUND, "there is no such path in the API");
}

static void
serve_api(struct api *api, const struct http_request *http, struct http_answer *answer)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct api_request request = {
        .api = api,
        .http = http,
        .answer = answer,
        .arena = &arena,
        .out = {&answer->body, false},
    };
    answer->status = 200;
    struct error *error AUTO(error_cleanup) = run(&request, http->path + strlen(PREFIX));
    if (!error)
        return;
    bool is_other_type = error->code == CODE_INVALID_ARGUMENT && http->method == HTTP_POST &&
                         !is_json(http->content_type);
    answer_error(answer, is_other_type ? 415 : status_of(error->code), error);
    if (error->code == CODE_UNAUTHENTICATED)
        buffer_append_text(&answer->fields, "WWW-Authenticate: Bearer\r\n");
}

void
api_serve(void *context, const struct http_request *request, struct http_answer *answer)
{
    struct api *api = context;
    int place = atomic_load(&api->place);
    if (place == API_NOWHERE)
        http_answer_text(answer, 503, "the server is starting");
    else if (place == API_ELSEWHERE && !api->options.token)
        http_answer_text(answer, 403,
                         "the page is served on the loopback only, unless the server is started "
                         "with --http-token-file");
    else if (strncmp(request->path, PREFIX, strlen(PREFIX)) == 0)
        serve_api(api, request, answer);
    else if (request->method == HTTP_POST)
        http_answer_text(answer, 405, "");
    else
        assets_serve(request, answer);
}

/* ---- life ---- */

struct error *
api_open(const struct api_options *options, struct api **out)
{
    struct channel_options channel = {.max_message_bytes = MAX_REPLY_BYTES, .max_backoff_ms = 1000};
    struct api *api = memory_zeroed(sizeof *api);
    api->options = *options;
    api->started_ms = clock_unix_ms();
    struct error *error =
        channel_open(options->runtime, options->endpoint, &channel, &api->channel);
    if (error) {
        free(api);
        return error;
    }
    api->events = api_events_new(api);
    *out = api;
    return NULL;
}

void
api_set_place(struct api *api, bool is_loopback)
{
    atomic_store(&api->place, is_loopback ? API_ON_LOOPBACK : API_ELSEWHERE);
}

void
api_begin(struct api *api)
{
    atomic_store(&api->is_ready, true);
}

void
api_stop(struct api *api)
{
    if (!api)
        return;
    atomic_store(&api->is_ready, false);
    api_events_stop(api->events);
}

void
api_close(struct api *api)
{
    if (!api)
        return;
    api_stop(api);
    api_events_free(api->events);
    channel_close(api->channel);
    free(api);
}

/* ---- the token ---- */

static struct error *
check_token_file(const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return error_from_errno(errno, "%s", path);
    if (found.st_mode & 077)
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s can be read by others: give it to its owner alone, chmod 600", path);
    return NULL;
}

struct error *
api_read_token(const char *path, char **out)
{
    struct buffer text AUTO(buffer_clear) = {0};
    struct error *error = check_token_file(path);
    if (!error)
        error = files_read_all(path, 2 * MOST_TOKEN, &text);
    if (error)
        return error;
    size_t size = text.size;
    char *token = memory_zeroed(size + 1);
    if (size)
        memcpy(token, text.bytes, size);
    explicit_bzero(text.bytes, text.size);
    while (size && strchr(" \t\r\n", token[size - 1]))
        token[--size] = '\0';
    bool is_good = size >= LEAST_TOKEN && size <= MOST_TOKEN;
    for (size_t i = 0; i < size; i++)
        is_good = is_good && token[i] > ' ' && token[i] < 0x7f;
    if (is_good) {
        *out = token;
        return NULL;
    }
    explicit_bzero(token, size);
    free(token);
    return error_new(CODE_INVALID_ARGUMENT,
                     "%s must have one line of %d to %d letters, digits or signs without blanks",
                     path, LEAST_TOKEN, MOST_TOKEN);
}
