/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in a bucket of S3-compatible storage. Every request is safe to repeat, and is repeated
 * for some seconds while the server cannot be reached or says that it is busy. Work that takes
 * longer, like an export, tries again by itself.
 */
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "repository/http_client.h"
#include "repository/key_file.h"
#include "repository/objects.h"
#include "repository/patience.h"
#include "repository/s3_list.h"
#include "repository/s3_sign.h"
#include "repository/s3_url.h"

#define IDLE_MAX 16u
#define RETRY_MS 15000u
#define LOOK_MS 50 /* how late a rest may notice the end of the program */
#define PAUSE_MIN_MS 100u
#define PAUSE_MAX_MS 5000u
#define TEXT_MAX (4u << 20) /* bytes of a list or an error */
#define LIST_KEYS 1000u

struct s3 {
    struct objects objects;
    struct s3_url url;
    struct s3_credentials credentials;
    char region[64];
    struct http_trust *trust;        /* NULL: plain HTTP */
    const atomic_bool *is_stopping;  /* as in the options */
    pthread_mutex_t lock;            /* of the connections that are not in use */
    atomic_uint_fast64_t failing_ms; /* since when every request has failed; 0: the last was good */
    struct http_client *idle[IDLE_MAX];
    unsigned idle_count;
};

/* One request, and what came back. */
struct request {
    const char *method;
    const char *path;
    const char *query;
    const char *fields; /* more fields, each with its line end; or "" */
    const uint8_t *bytes;
    size_t size;
    size_t limit; /* of the reply's body */
    struct http_reply reply;
    struct buffer body;
};

static struct s3 *
s3_of(struct objects *objects)
{
    return CONTAINER_OF(objects, struct s3, objects);
}

/* Whether nobody waits for the reply any more. */
static bool
is_over(const void *context)
{
    const struct s3 *s3 = context;
    return (s3->is_stopping && atomic_load(s3->is_stopping)) || patience_is_over();
}

/* ---- connections ---- */

static struct error *
take_connection(struct s3 *s3, struct http_client **out)
{
    pthread_mutex_lock(&s3->lock);
    *out = s3->idle_count ? s3->idle[--s3->idle_count] : NULL;
    pthread_mutex_unlock(&s3->lock);
    const struct http_watch watch = {is_over, s3};
    return *out ? NULL : http_client_open(s3->url.host, s3->url.port, s3->trust, &watch, out);
}

static void
give_back(struct s3 *s3, struct http_client *client, bool is_usable)
{
    pthread_mutex_lock(&s3->lock);
    if (is_usable && s3->idle_count < IDLE_MAX)
        s3->idle[s3->idle_count++] = STEAL(client);
    pthread_mutex_unlock(&s3->lock);
    http_client_close(client);
}

static void
close_idle(struct s3 *s3)
{
    pthread_mutex_lock(&s3->lock);
    while (s3->idle_count)
        http_client_close(s3->idle[--s3->idle_count]);
    pthread_mutex_unlock(&s3->lock);
}

/* ---- requests ---- */

/* Signed anew for each attempt, because a signature is good for some minutes only. */
static struct error *
print_head(const struct s3 *s3, const struct request *request, struct buffer *out)
{
    struct s3_request text = {.method = request->method,
                              .host = s3->url.authority,
                              .path = request->path,
                              .query = request->query,
                              .region = s3->region,
                              .bytes = request->bytes,
                              .size = request->size,
                              .time = clock_unix_ms() / 1000};
    buffer_print(out, "%s %s%s%s HTTP/1.1\r\n", request->method, request->path,
                 request->query[0] ? "?" : "", request->query);
    struct error *error = s3_sign(&s3->credentials, &text, out);
    buffer_print(out, "Content-Length: %zu\r\n%s\r\n", request->size, request->fields);
    return error;
}

static struct error *
try_once(struct s3 *s3, struct request *request)
{
    struct buffer head AUTO(buffer_clear) = {0};
    struct http_client *client = NULL;
    struct error *error = print_head(s3, request, &head);
    if (!error)
        error = take_connection(s3, &client);
    if (error)
        return error;
    struct http_exchange exchange = {
        .head = &head,
        .bytes = request->bytes,
        .size = request->size,
        .has_no_body = !strcmp(request->method, "HEAD"),
        .limit = request->limit > TEXT_MAX ? request->limit : TEXT_MAX,
        .body = &request->body,
        .watch = {is_over, s3},
    };
    error = http_client_exchange(client, &exchange);
    request->reply = exchange.reply;
    give_back(s3, client, exchange.is_usable);
    return error;
}

/* An error that may be gone at the next attempt. */
static struct error *
busy(const struct request *request)
{
    unsigned status = request->reply.status;
    char code[64];
    s3_error_code(request->body.bytes, request->body.size, code, sizeof code);
    if (status < 500 && status != 429 && status != 408 && strcmp(code, "RequestTimeout") != 0)
        return NULL;
    return error_new(CODE_UNAVAILABLE, "the server answers %u %s", status, code);
}

static void
rest(const struct s3 *s3, unsigned *pause_ms)
{
    const struct timespec step = {.tv_nsec = LOOK_MS * 1000000L};
    for (unsigned rested_ms = 0; rested_ms < *pause_ms && !is_over(s3); rested_ms += LOOK_MS)
        nanosleep(&step, NULL);
    *pause_ms = 2 * *pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : 2 * *pause_ms;
}

/* All requests together are patient once: otherwise each would wait, one after the other. */
static bool
has_failed_for_long(struct s3 *s3)
{
    uint_fast64_t since_ms = 0, now_ms = clock_now_ms();
    if (atomic_compare_exchange_strong(&s3->failing_ms, &since_ms, now_ms))
        return false;
    return now_ms > since_ms + RETRY_MS;
}

static struct error *
run(struct s3 *s3, struct request *request)
{
    unsigned pause_ms = PAUSE_MIN_MS;
    for (bool is_first = true;; is_first = false) {
        struct error *error = try_once(s3, request);
        if (!error)
            error = busy(request);
        if (!error || error->code != CODE_UNAVAILABLE) {
            atomic_store(&s3->failing_ms, 0);
            return error;
        }
        if (is_over(s3) || (has_failed_for_long(s3) && !is_first))
            return error_wrap(error, "the server of the bucket %s", s3->url.bucket);
        error_free(error);
        /* The server may have closed connections that were not in use. */
        close_idle(s3);
        if (!is_first)
            rest(s3, &pause_ms);
    }
}

/* The error for a reply that is none of success. */
static struct error *
refused(const struct s3 *s3, const struct request *request)
{
    unsigned status = request->reply.status;
    char code[64];
    s3_error_code(request->body.bytes, request->body.size, code, sizeof code);
    if (status == 404 && strcmp(code, "NoSuchBucket") != 0)
        return error_new(CODE_NOT_FOUND, "there is no such object");
    if (status == 404)
        return error_new(CODE_FAILED_PRECONDITION, "there is no bucket %s", s3->url.bucket);
    if (status == 416)
        return error_new(CODE_DATA_LOSS, "it is too short");
    if (status == 401 || status == 403)
        return error_new(CODE_PERMISSION_DENIED,
                         "the server refuses it (%u %s): check the credentials, the region and the "
                         "clock",
                         status, code);
    return error_new(CODE_FAILED_PRECONDITION, "the server refuses it (%u %s)", status, code);
}

static void
print_path(const struct s3 *s3, const char *key, char *out, size_t room)
{
    snprintf(out, room, "/%s/%s%s", s3->url.bucket, s3->url.prefix, key);
}

#define PATH_ROOM 768u

/* Runs a request about an object. The reply's body stays in `request`. */
static struct error *
run_for(struct s3 *s3, const char *key, struct request *request)
{
    char path[PATH_ROOM];
    print_path(s3, key, path, sizeof path);
    request->path = path;
    request->query = request->query ? request->query : "";
    request->fields = request->fields ? request->fields : "";
    struct error *error = run(s3, request);
    if (!error && request->reply.status / 100 != 2)
        error = refused(s3, request);
    request->path = NULL;
    return error;
}

/* ---- the operations ---- */

static struct error *
s3_put(struct objects *objects, const char *key, const uint8_t *bytes, size_t size,
       enum objects_put how)
{
    struct request request = {.method = "PUT", .bytes = bytes, .size = size};
    bool is_first = object_key_is_config(key) && how != OBJECTS_REPLACE;
    if (is_first)
        request.fields = "If-None-Match: *\r\n";
    struct error *error = run_for(s3_of(objects), key, &request);
    if (is_first && request.reply.status == 412) {
        error_free(error);
        error = NULL;
    }
    buffer_clear(&request.body);
    return error;
}

static struct error *
s3_sync(struct objects *objects)
{
    (void)objects;
    return NULL;
}

static struct error *
s3_get(struct objects *objects, const char *key, uint64_t offset, uint8_t *bytes, size_t size)
{
    char range[80];
    struct request request = {.method = "GET", .limit = size, .fields = range};
    if (!size)
        return NULL;
    snprintf(range, sizeof range, "Range: bytes=%llu-%llu\r\n", (unsigned long long)offset,
             (unsigned long long)(offset + size - 1));
    struct error *error = run_for(s3_of(objects), key, &request);
    if (!error && (request.body.size != size || (request.reply.status != 206 && offset)))
        error =
            error_new(CODE_DATA_LOSS, "the server gives %zu of %zu bytes", request.body.size, size);
    if (!error)
        memcpy(bytes, request.body.bytes, size);
    buffer_clear(&request.body);
    return error;
}

static struct error *
s3_size(struct objects *objects, const char *key, uint64_t *size, uint64_t *age_ms)
{
    struct request request = {.method = "HEAD"};
    struct error *error = run_for(s3_of(objects), key, &request);
    if (!error && !request.reply.has_length)
        error = error_new(CODE_UNAVAILABLE, "the server does not tell its size");
    int64_t age = request.reply.date - request.reply.modified;
    *size = request.reply.length;
    *age_ms = request.reply.modified && age > 0 ? (uint64_t)age * 1000 : 0;
    buffer_clear(&request.body);
    return error;
}

static struct error *
s3_delete(struct objects *objects, const char *key)
{
    struct request request = {.method = "DELETE"};
    struct error *error = run_for(s3_of(objects), key, &request);
    buffer_clear(&request.body);
    return error_forgive(error, CODE_NOT_FOUND);
}

/* ---- lists ---- */

struct naming {
    const char *start; /* of every key */
    objects_each *each;
    void *context;
};

static struct error *
name_object(const char *key, uint64_t size, void *context)
{
    struct naming *naming = context;
    struct object_name name;
    size_t skip = strlen(naming->start);
    if (strncmp(key, naming->start, skip) != 0 || !object_name_parse(key + skip, &name))
        return NULL; /* something else in the same bucket */
    return naming->each(&name, size, naming->context);
}

static void
print_query(const struct s3_list *list, const char *start, struct buffer *out)
{
    out->size = 0;
    if (list->is_truncated) {
        struct buffer token AUTO(buffer_clear) = {0};
        buffer_append(&token, list->token.bytes, list->token.size);
        buffer_append_text(out, "continuation-token=");
        s3_escape(out, buffer_text(&token));
        buffer_append_text(out, "&");
    }
    buffer_print(out, "list-type=2&max-keys=%u&prefix=", LIST_KEYS);
    s3_escape(out, start);
}

static struct error *
list_page(struct s3 *s3, struct naming *naming, struct s3_list *list)
{
    struct buffer query AUTO(buffer_clear) = {0};
    char path[PATH_ROOM];
    struct request request = {.method = "GET", .path = path, .fields = ""};
    snprintf(path, sizeof path, "/%s", s3->url.bucket);
    print_query(list, naming->start, &query);
    request.query = buffer_text(&query);
    struct error *error = run(s3, &request);
    if (!error && request.reply.status != 200)
        error = refused(s3, &request);
    if (!error)
        error = s3_list_parse(request.body.bytes, request.body.size, list, name_object, naming);
    buffer_clear(&request.body);
    return error;
}

static struct error *
s3_list_kind(struct objects *objects, enum object_kind kind, objects_each *each, void *context)
{
    struct s3 *s3 = s3_of(objects);
    char start[sizeof s3->url.prefix + 4];
    struct naming naming = {start, each, context};
    struct s3_list list = {0};
    snprintf(start, sizeof start, "%s%02x/", s3->url.prefix, (unsigned)kind);
    struct error *error;
    do
        error = list_page(s3, &naming, &list);
    while (!error && list.is_truncated);
    s3_list_clear(&list);
    return error_wrap(error, "list the objects of the bucket %s", s3->url.bucket);
}

/* ---- opening ---- */

static void
s3_close(struct objects *objects)
{
    struct s3 *s3 = s3_of(objects);
    close_idle(s3);
    http_trust_close(s3->trust);
    pthread_mutex_destroy(&s3->lock);
    OPENSSL_cleanse(&s3->credentials, sizeof s3->credentials);
    free(s3);
}

static const struct objects_ops s3_ops = {
    .put = s3_put,
    .sync = s3_sync,
    .get = s3_get,
    .size = s3_size,
    .list = s3_list_kind,
    .delete = s3_delete,
    .close = s3_close,
    .uploads = 3,
};

struct error *
objects_s3_open(const struct repository_options *options, struct objects **out)
{
    if (!options->credentials_file)
        return error_new(CODE_INVALID_ARGUMENT, "S3 needs a file with credentials");
    struct s3 *s3 = memory_zeroed(sizeof *s3);
    s3->objects.ops = &s3_ops;
    pthread_mutex_init(&s3->lock, NULL);
    s3->is_stopping = options->is_stopping;
    snprintf(s3->region, sizeof s3->region, "%s", options->region ? options->region : "us-east-1");
    struct error *error = s3_url_parse(options->url, options->uses_plain_http, &s3->url);
    if (!error)
        error = key_file_check_private(options->credentials_file);
    if (!error)
        error = s3_credentials_read(options->credentials_file, &s3->credentials);
    if (!error && !options->uses_plain_http)
        error = http_trust_open(options->authorities_file, &s3->trust);
    if (error)
        s3_close(&s3->objects);
    *out = error ? NULL : &s3->objects;
    return error;
}
