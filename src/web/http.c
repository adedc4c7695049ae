/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP/1.1 server: see http.h. */
#include "web/http.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "rpc/http2/socket.h"

#define MAX_CONNECTIONS 16
#define MAX_REQUEST_BYTES 8192
#define REQUEST_SECONDS 5
#define STACK_BYTES (128u * 1024)
#define RETRY_MS 100

struct http {
    struct http_options options;
    struct listeners listeners;
    int stop_fd;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t one_less;
    unsigned connections;
};

struct request {
    struct http *http;
    int fd;
};

/* ---- one request ---- */

static const char *
reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 503:
        return "Service Unavailable";
    default:
        return "Error";
    }
}

static void
send_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return;
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void
answer(int fd, int status, const char *content_type, const struct buffer *body, bool head_only)
{
    struct buffer out AUTO(buffer_clear) = {0};
    buffer_print(&out,
                 "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                 "Connection: close\r\n%s\r\n",
                 status, reason(status), content_type, body->size,
                 status == 405 ? "Allow: GET, HEAD\r\n" : "");
    if (!head_only)
        buffer_append(&out, body->bytes, body->size);
    send_all(fd, out.bytes, out.size);
}

static void
answer_text(int fd, int status)
{
    struct buffer body AUTO(buffer_clear) = {0};
    buffer_print(&body, "%d %s\n", status, reason(status));
    answer(fd, status, "text/plain; charset=utf-8", &body, false);
}

/* Reads up to the empty line. False: too long, too slow, or disconnected. */
static bool
read_head(int fd, char *head)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t end = now.tv_sec + REQUEST_SECONDS;
    size_t size = 0;
    while (size < MAX_REQUEST_BYTES && now.tv_sec <= end) {
        ssize_t got = recv(fd, head + size, MAX_REQUEST_BYTES - size, 0);
        if (got <= 0)
            return false;
        size += (size_t)got;
        head[size] = '\0';
        if (strstr(head, "\r\n\r\n") || strstr(head, "\n\n"))
            return true;
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    return false;
}

static const struct http_page *
find_page(const struct http *http, const char *path)
{
    size_t size = strcspn(path, "?");
    for (size_t i = 0; i < http->options.page_count; i++) {
        const struct http_page *page = &http->options.pages[i];
        if (strlen(page->path) == size && memcmp(page->path, path, size) == 0)
            return page;
    }
    return NULL;
}

static void
serve(const struct http *http, int fd)
{
    char head[MAX_REQUEST_BYTES + 1];
    char method[8], path[256];
    if (!read_head(fd, head) || sscanf(head, "%7s %255s", method, path) != 2) {
        answer_text(fd, 400);
        return;
    }
    bool head_only = strcmp(method, "HEAD") == 0;
    if (!head_only && strcmp(method, "GET") != 0) {
        answer_text(fd, 405);
        return;
    }
    const struct http_page *page = find_page(http, path);
    if (!page) {
        answer_text(fd, 404);
        return;
    }
    struct buffer body AUTO(buffer_clear) = {0};
    int status = page->print(page->context, &body);
    answer(fd, status, page->content_type, &body, head_only);
}

/* ---- connections ---- */

static void *
serve_connection(void *argument)
{
    struct request request = *(struct request *)argument;
    free(argument);
    serve(request.http, request.fd);
    shutdown(request.fd, SHUT_WR);
    close(request.fd);
    pthread_mutex_lock(&request.http->lock);
    request.http->connections--;
    pthread_cond_signal(&request.http->one_less);
    pthread_mutex_unlock(&request.http->lock);
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
wait_for_slot(struct http *http)
{
    pthread_mutex_lock(&http->lock);
    while (http->connections >= MAX_CONNECTIONS)
        pthread_cond_wait(&http->one_less, &http->lock);
    http->connections++;
    pthread_mutex_unlock(&http->lock);
}

static void
serve_on_thread(struct http *http, int fd)
{
    struct timeval limit = {.tv_sec = REQUEST_SECONDS};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    wait_for_slot(http);
    struct request *request = memory_new(sizeof *request);
    *request = (struct request){http, fd};
    pthread_t thread;
    if (!start_thread(&thread, serve_connection, request, true))
        serve_connection(request);
}

/* Without free descriptors, the socket stays readable: a pause avoids a busy loop. */
static void
accept_connection(struct http *http, int listening)
{
    struct pollfd stop = {http->stop_fd, POLLIN, 0};
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
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
    if (http->stop_fd < 0 || !start_thread(&http->thread, accept_until_stopped, http, false))
        memory_exhausted();
    *out = http;
    return NULL;
}

unsigned
http_port(const struct http *http)
{
    return http->listeners.items[0].address.port;
}

void
http_close(struct http *http)
{
    if (!http)
        return;
    uint64_t one = 1;
    ssize_t ignored = write(http->stop_fd, &one, sizeof one);
    (void)ignored;
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
