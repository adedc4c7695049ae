/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP/1.1 server: see http.h. */
#include "web/http.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "rpc/http2/socket.h"
#include "web/http_host.h"
#include "web/http_wire.h"

#define MAX_CONNECTIONS 80
#define PIECE_MS 5000
#define STACK_BYTES (256u * 1024)
#define RETRY_MS 100

struct http {
    struct http_options options;
    struct listeners listeners;
    int stop_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t one_less;
    bool is_stopping;
    struct connection *oldest;
    unsigned connections;
    unsigned pages;   /* of them, those in a handler that is not for monitoring */
    unsigned streams; /* of them, those that stream */
};

struct connection {
    struct http *http;
    struct http_wire wire;
    struct connection *next; /* a younger one */
    bool is_page;            /* it is among http.pages */
    bool is_dropped;
};

struct http_stream {
    const struct http_wire *wire;
};

/* ---- limits ---- */

/* False: there are as many as there may be. */
static bool
begin_stream(struct http *http)
{
    pthread_mutex_lock(&http->lock);
    bool is_free = http->streams < HTTP_MAX_STREAMS;
    http->streams += is_free;
    pthread_mutex_unlock(&http->lock);
    return is_free;
}

static void
end_stream(struct http *http)
{
    pthread_mutex_lock(&http->lock);
    http->streams--;
    pthread_mutex_unlock(&http->lock);
}

/* False: there are as many as there may be. */
static bool
begin_page(struct connection *connection)
{
    struct http *http = connection->http;
    pthread_mutex_lock(&http->lock);
    connection->is_page = http->pages < HTTP_MAX_PAGES;
    http->pages += connection->is_page;
    pthread_mutex_unlock(&http->lock);
    return connection->is_page;
}

static void
end_page(struct connection *connection)
{
    struct http *http = connection->http;
    pthread_mutex_lock(&http->lock);
    http->pages -= connection->is_page;
    connection->is_page = false;
    pthread_mutex_unlock(&http->lock);
}

/*
 * A client that sends or reads slowly must not keep others out: the one that has been there for
 * longest goes. Requests of the page stay, since there are never many of them. With the lock held.
 */
static void
drop_oldest(struct http *http)
{
    struct connection *one = http->oldest;
    while (one && (one->is_page || one->is_dropped))
        one = one->next;
    if (!one)
        return;
    one->is_dropped = true;
    shutdown(one->wire.fd, SHUT_RDWR);
}

/* ---- streams ---- */

bool
http_stream_send(struct http_stream *stream, const void *bytes, size_t size)
{
    return http_wire_send(stream->wire, bytes, size, PIECE_MS);
}

bool
http_stream_wait(struct http_stream *stream, int fd, int timeout_ms)
{
    return http_wire_wait(stream->wire, fd, timeout_ms);
}

static void
run_stream(struct http *http, const struct http_wire *wire, struct http_answer *answer)
{
    struct http_stream stream = {wire};
    if (!begin_stream(http)) {
        answer->stream = NULL;
        http_answer_text(answer, 503, "too many event streams are open");
        http_wire_answer(wire, answer, false);
        return;
    }
    if (http_wire_answer(wire, answer, true))
        answer->stream(answer->stream_context, &stream);
    end_stream(http);
}

/* ---- one request ---- */

static const struct http_page *
find_page(const struct http *http, const char *path)
{
    for (size_t i = 0; i < http->options.page_count; i++) {
        const struct http_page *page = &http->options.pages[i];
        size_t size = strlen(page->path);
        if (strcmp(page->path, path) == 0 ||
            (page->path[size - 1] == '/' && strncmp(page->path, path, size) == 0))
            return page;
    }
    return NULL;
}

/* Checks what does not depend on the page. False: `answer` refuses the request. */
static bool
may_serve(const struct http *http, const struct http_request *request, const struct http_page *page,
          struct http_answer *answer)
{
    const struct http_options *options = &http->options;
    bool is_post = request->method == HTTP_POST;
    if (request->host && !http_host_is_known(request->host, options->hosts, options->host_count))
        http_answer_text(answer, 421,
                         "Host must be an IP address, localhost or a name given by --http-host");
    else if (!page)
        http_answer_text(answer, 404, "");
    else if (request->method == HTTP_OTHER || (is_post && !page->takes_posts)) {
        http_answer_text(answer, 405, "");
        buffer_print(&answer->fields, "Allow: GET, HEAD%s\r\n", page->takes_posts ? ", POST" : "");
    } else
        return true;
    return false;
}

/* The answer to a request that could not be read. */
static int
status_of(const struct error *error)
{
    if (error->code == CODE_OUT_OF_RANGE)
        return 413;
    return error->code == CODE_UNIMPLEMENTED ? 501 : 400;
}

static void
send_answer(struct http *http, const struct http_wire *wire, const struct http_request *request,
            struct http_answer *answer)
{
    bool is_head = request->method == HTTP_HEAD;
    if (answer->stream && !is_head)
        run_stream(http, wire, answer);
    else
        http_wire_answer(wire, answer, is_head);
}

static void
serve_page(struct connection *connection, const struct http_request *request)
{
    struct http *http = connection->http;
    const struct http_page *page = find_page(http, request->path);
    struct http_answer answer = {0};
    if (page && !page->is_monitoring && !begin_page(connection))
        http_answer_text(&answer, 503, "too many requests at a time");
    else if (may_serve(http, request, page, &answer))
        page->serve(page->context, request, &answer);
    send_answer(http, &connection->wire, request, &answer);
    end_page(connection);
    buffer_clear(&answer.body);
    buffer_clear(&answer.fields);
}

static void
serve(struct connection *connection)
{
    struct http_wire *wire = &connection->wire;
    struct http_request request;
    struct error *error AUTO(error_cleanup) = http_wire_read(wire, &request);
    if (!error) {
        serve_page(connection, &request);
    } else if (error->code != CODE_UNAVAILABLE) {
        struct http_answer answer = {0};
        http_answer_text(&answer, status_of(error), error->message);
        http_wire_answer(wire, &answer, false);
        buffer_clear(&answer.body);
    }
}

/* ---- connections ---- */

/* False: the server ends. */
static bool
add_connection(struct http *http, struct connection *connection)
{
    pthread_mutex_lock(&http->lock);
    while (http->connections >= MAX_CONNECTIONS && !http->is_stopping) {
        drop_oldest(http);
        pthread_cond_wait(&http->one_less, &http->lock);
    }
    bool goes_on = !http->is_stopping;
    struct connection **last = &http->oldest;
    while (*last)
        last = &(*last)->next;
    if (goes_on)
        *last = connection;
    http->connections += goes_on;
    pthread_mutex_unlock(&http->lock);
    return goes_on;
}

static void
free_connection(struct connection *connection)
{
    close(connection->wire.fd);
    buffer_clear(&connection->wire.body);
    free(connection);
}

/* Before its descriptor is closed: another connection might get the same. */
static void
remove_connection(struct http *http, struct connection *connection)
{
    pthread_mutex_lock(&http->lock);
    struct connection **place = &http->oldest;
    while (*place != connection)
        place = &(*place)->next;
    *place = connection->next;
    pthread_mutex_unlock(&http->lock);
}

/* The server may be freed when this is the last one. */
static void
end_connection(struct connection *connection)
{
    struct http *http = connection->http;
    remove_connection(http, connection);
    free_connection(connection);
    pthread_mutex_lock(&http->lock);
    http->connections--;
    pthread_cond_signal(&http->one_less);
    pthread_mutex_unlock(&http->lock);
}

static void *
serve_connection(void *argument)
{
    struct connection *connection = argument;
    serve(connection);
    http_wire_end(&connection->wire);
    end_connection(connection);
    return NULL;
}

static bool
start_thread(pthread_t *thread, void *(*run)(void *), void *argument, bool detached)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (detached)
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(thread, &attributes, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static void
serve_on_thread(struct http *http, int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct connection *connection = memory_zeroed(sizeof *connection);
    connection->http = http;
    connection->wire.fd = fd;
    connection->wire.stop_fd = http->stop_fd;
    pthread_t thread;
    if (!add_connection(http, connection))
        free_connection(connection);
    else if (!start_thread(&thread, serve_connection, connection, true))
        serve_connection(connection);
}

/* Without free descriptors, the socket stays readable: a pause avoids a busy loop. */
static void
accept_connection(struct http *http, int listening)
{
    struct pollfd stop = {http->stop_fd, POLLIN, 0};
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        serve_on_thread(http, fd);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        poll(&stop, 1, RETRY_MS);
}

static void *
accept_until_stopped(void *argument)
{
    struct http *http = argument;
    size_t count = http->listeners.count;
    struct pollfd watched[SOCKET_MAX_LISTENERS + 1] = {{http->stop_fd, POLLIN, 0}};
    for (size_t i = 0; i < count; i++)
        watched[1 + i] = (struct pollfd){http->listeners.items[i].fd, POLLIN, 0};
    for (;;) {
        if (poll(watched, 1 + count, -1) < 0) {
            if (errno != EINTR)
                return NULL;
            continue;
        }
        if (watched[0].revents)
            return NULL;
        for (size_t i = 1; i <= count; i++) {
            if (watched[i].revents)
                accept_connection(http, watched[i].fd);
        }
    }
}

/* ---- life ---- */

struct error *
http_open(const struct http_options *options, struct http **out)
{
    struct address address;
    struct listeners listeners;
    struct error *error = address_parse(options->address, &address);
    if (!error && address_is_local(&address))
        error = error_new(CODE_INVALID_ARGUMENT, "HTTP needs HOST:PORT, not %s", options->address);
    if (!error)
        error = error_wrap(socket_listen_tcp(&address, options->log, &listeners), "HTTP");
    if (error)
        return error;
    struct http *http = memory_zeroed(sizeof *http);
    http->options = *options;
    http->listeners = listeners;
    http->stop_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&http->lock, NULL);
    pthread_cond_init(&http->one_less, NULL);
    *out = http; /* handlers may use it from the first request on */
    if (http->stop_fd < 0 || !start_thread(&http->thread, accept_until_stopped, http, false))
        memory_exhausted();
    return NULL;
}

unsigned
http_port(const struct http *http)
{
    return http->listeners.items[0].address.port;
}

bool
http_is_loopback(const struct http *http)
{
    for (size_t i = 0; i < http->listeners.count; i++)
        if (!http_host_is_loopback(http->listeners.items[i].address.host))
            return false;
    return true;
}

static void
stop_all(struct http *http)
{
    uint64_t one = 1;
    ssize_t ignored = write(http->stop_fd, &one, sizeof one);
    (void)ignored;
    pthread_mutex_lock(&http->lock);
    http->is_stopping = true;
    pthread_cond_broadcast(&http->one_less);
    pthread_mutex_unlock(&http->lock);
}

void
http_close(struct http *http)
{
    if (!http)
        return;
    stop_all(http);
    pthread_join(http->thread, NULL);
    pthread_mutex_lock(&http->lock);
    while (http->connections)
        pthread_cond_wait(&http->one_less, &http->lock);
    pthread_mutex_unlock(&http->lock);
    socket_close_listeners(&http->listeners);
    close(http->stop_fd);
    pthread_cond_destroy(&http->one_less);
    pthread_mutex_destroy(&http->lock);
    free(http);
}
