/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to an HTTP server: see http_client.h. */
#include "repository/http_client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"

#define ROOM 65536u
#define LOOK_MS 200 /* how late the end of a wait may be noticed */

struct http_trust {
    SSL_CTX *context;
};

struct http_client {
    int fd;
    SSL *ssl;         /* NULL: plain */
    uint8_t in[ROOM]; /* bytes of replies that were not taken yet */
    size_t begin, end;
    struct http_watch watch; /* of the exchange */
};

static struct error *
lost(const char *what)
{
    unsigned long code = ERR_get_error();
    char reason[160] = "";
    if (code)
        ERR_error_string_n(code, reason, sizeof reason);
    ERR_clear_error();
    const char *why = code                                      ? reason
                      : errno == EAGAIN || errno == EWOULDBLOCK ? "it does not answer"
                      : errno                                   ? strerrordesc_np(errno)
                              : "the server closed the connection";
    return error_new(CODE_UNAVAILABLE, "%s: %s", what, why);
}

/* ---- signals ---- */

/* A write to a connection that is gone must be an error, not SIGPIPE, whatever the program does. */
struct quiet {
    sigset_t before;
    bool was_pending;
};

static struct quiet
quiet_begin(void)
{
    struct quiet quiet;
    sigset_t pipe, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    quiet.was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &quiet.before);
    return quiet;
}

static void
quiet_end(const struct quiet *quiet)
{
    static const struct timespec at_once;
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!quiet->was_pending)
        sigtimedwait(&pipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

/* ---- trust ---- */

struct error *
http_trust_open(const char *authorities, struct http_trust **out)
{
    struct http_trust *trust = memory_zeroed(sizeof *trust);
    *out = NULL;
    trust->context = SSL_CTX_new(TLS_client_method());
    bool is_good = trust->context && SSL_CTX_set_min_proto_version(trust->context, TLS1_2_VERSION);
    if (is_good)
        is_good = authorities ? SSL_CTX_load_verify_file(trust->context, authorities)
                              : SSL_CTX_set_default_verify_paths(trust->context);
    if (!is_good) {
        ERR_clear_error();
        http_trust_close(trust);
        return error_new(CODE_INVALID_ARGUMENT, "cannot read the certificates to trust from %s",
                         authorities ? authorities : "the system");
    }
    SSL_CTX_set_verify(trust->context, SSL_VERIFY_PEER, NULL);
    /* A reply is complete by its length, so a missing goodbye does no harm. */
    SSL_CTX_set_options(trust->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    *out = trust;
    return NULL;
}

void
http_trust_close(struct http_trust *trust)
{
    if (!trust)
        return;
    SSL_CTX_free(trust->context);
    free(trust);
}

/* ---- waiting ---- */

/* Whether it may wait for longer, after a look at what it waits for since then. */
static bool
may_wait(const struct http_watch *watch, uint64_t since_ms)
{
    uint64_t waited_ms = clock_now_ms() - since_ms;
    return waited_ms < HTTP_OVER_MS ||
           (waited_ms < HTTP_WAIT_MS && !watch->is_over(watch->context));
}

/* Whether a byte could not be sent or received only because it takes time. */
static bool
is_waiting(const struct http_client *client, int result)
{
    if (!client->ssl)
        return errno == EAGAIN || errno == EWOULDBLOCK;
    int reason = SSL_get_error(client->ssl, result);
    return reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE;
}

/* ---- connecting ---- */

/* After a connect that takes longer than a look. */
static int
finish_connecting(int fd, const struct http_watch *watch)
{
    struct pollfd file = {.fd = fd, .events = POLLOUT};
    uint64_t since_ms = clock_now_ms();
    int errnum = ETIMEDOUT;
    socklen_t size = sizeof errnum;
    while (poll(&file, 1, LOOK_MS) <= 0 && may_wait(watch, since_ms)) {
    }
    if (file.revents && getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size) != 0)
        errnum = errno;
    errno = errnum;
    return errnum ? -1 : 0;
}

static int
connect_to(const struct addrinfo *address, const struct http_watch *watch)
{
    struct timeval wait = {.tv_usec = LOOK_MS * 1000};
    int yes = 1;
    int fd AUTO(files_close) =
        socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait); /* for connect, too */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0 &&
        (errno != EINPROGRESS || finish_connecting(fd, watch) != 0))
        return -1;
    return files_keep(&fd);
}

static struct error *
connect_any(const char *host, const char *port, const struct http_watch *watch, int *fd)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    *fd = -1; /* the caller closes it, also after an error */
    int result = getaddrinfo(host, port, &hints, &found);
    if (result)
        return error_new(CODE_UNAVAILABLE, "find %s: %s", host, gai_strerror(result));
    for (struct addrinfo *at = found; at && *fd < 0; at = at->ai_next)
        *fd = connect_to(at, watch);
    int errnum = errno;
    freeaddrinfo(found);
    if (*fd >= 0)
        return NULL;
    return error_new(CODE_UNAVAILABLE, "connect to %s:%s: %s", host, port, strerrordesc_np(errnum));
}

static struct error *
start_tls(struct http_client *client, const char *host, const struct http_trust *trust)
{
    client->ssl = SSL_new(trust->context);
    if (!client->ssl || !SSL_set_fd(client->ssl, client->fd) ||
        !SSL_set_tlsext_host_name(client->ssl, host) || !SSL_set1_host(client->ssl, host))
        return error_new(CODE_INTERNAL, "OpenSSL cannot begin a connection");
    uint64_t since_ms = clock_now_ms();
    int result;
    do
        errno = 0;
    while ((result = SSL_connect(client->ssl)) != 1 && is_waiting(client, result) &&
           may_wait(&client->watch, since_ms));
    if (result == 1)
        return NULL;
    long verified = SSL_get_verify_result(client->ssl);
    if (verified == X509_V_OK)
        return lost("begin TLS");
    ERR_clear_error();
    return error_new(CODE_FAILED_PRECONDITION, "the certificate of %s is not trusted: %s", host,
                     X509_verify_cert_error_string(verified));
}

struct error *
http_client_open(const char *host, const char *port, const struct http_trust *trust,
                 const struct http_watch *watch, struct http_client **out)
{
    struct http_client *client = memory_zeroed(sizeof *client);
    client->watch = *watch;
    struct quiet quiet = quiet_begin();
    struct error *error = connect_any(host, port, watch, &client->fd);
    if (!error && trust)
        error = start_tls(client, host, trust);
    quiet_end(&quiet);
    if (error)
        http_client_close(STEAL(client));
    *out = client;
    return error;
}

void
http_client_close(struct http_client *client)
{
    if (!client)
        return;
    SSL_free(client->ssl);
    files_close(&client->fd);
    free(client);
}

/* ---- bytes ---- */

static struct error *
send_all(struct http_client *client, const uint8_t *bytes, size_t size)
{
    uint64_t since_ms = clock_now_ms();
    while (size) {
        size_t part = size < (1u << 20) ? size : 1u << 20;
        errno = 0;
        ssize_t sent = client->ssl ? SSL_write(client->ssl, bytes, (int)part)
                                   : send(client->fd, bytes, part, MSG_NOSIGNAL);
        if (sent <= 0 && errno == EINTR)
            continue;
        if (sent <= 0 && is_waiting(client, (int)sent) && may_wait(&client->watch, since_ms))
            continue;
        if (sent <= 0)
            return lost("send");
        since_ms = clock_now_ms();
        bytes += sent;
        size -= (size_t)sent;
    }
    return NULL;
}

/* Reads more bytes of the reply behind those that were not taken. */
static struct error *
fill(struct http_client *client)
{
    if (client->begin) {
        memmove(client->in, client->in + client->begin, client->end - client->begin);
        client->end -= client->begin;
        client->begin = 0;
    }
    for (uint64_t since_ms = clock_now_ms();;) {
        size_t room = sizeof client->in - client->end;
        errno = 0;
        ssize_t got = client->ssl ? SSL_read(client->ssl, client->in + client->end, (int)room)
                                  : recv(client->fd, client->in + client->end, room, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && is_waiting(client, (int)got) && may_wait(&client->watch, since_ms))
            continue;
        if (got <= 0)
            return lost("receive");
        client->end += (size_t)got;
        return NULL;
    }
}

/* ---- replies ---- */

/* Replies 1xx announce the real one. */
static struct error *
read_head(struct http_client *client, struct http_reply *reply)
{
    struct error *error = NULL;
    for (unsigned heads = 0; heads < 8 && !error;) {
        size_t used = 0;
        error =
            http_reply_parse(client->in + client->begin, client->end - client->begin, reply, &used);
        if (!error && !used)
            error = fill(client);
        client->begin += used;
        heads += used > 0;
        if (!error && used && reply->status >= 200)
            return NULL;
    }
    return error ? error : error_new(CODE_UNAVAILABLE, "the server gives no reply");
}

static struct error *
read_length(struct http_client *client, struct http_exchange *exchange)
{
    uint64_t left = exchange->reply.length;
    struct error *error = NULL;
    if (left > exchange->limit)
        return error_new(CODE_UNAVAILABLE, "the server's reply has %llu bytes, more than asked for",
                         (unsigned long long)left);
    while (left && !error) {
        size_t there = client->end - client->begin;
        size_t part = there < left ? there : (size_t)left;
        buffer_append(exchange->body, client->in + client->begin, part);
        client->begin += part;
        left -= part;
        if (left)
            error = fill(client);
    }
    return error;
}

static struct error *
read_chunks(struct http_client *client, struct http_exchange *exchange)
{
    struct http_chunked chunked = {0};
    struct error *error = NULL;
    while (!error) {
        size_t used;
        error = http_chunked_take(&chunked, client->in + client->begin, client->end - client->begin,
                                  exchange->limit, exchange->body, &used);
        client->begin += used;
        if (!error && chunked.state == HTTP_CHUNK_DONE)
            return NULL;
        if (!error)
            error = fill(client);
    }
    return error;
}

static struct error *
read_body(struct http_client *client, struct http_exchange *exchange)
{
    const struct http_reply *reply = &exchange->reply;
    if (exchange->has_no_body || reply->status == 204 || reply->status == 304)
        return NULL;
    if (reply->is_chunked)
        return read_chunks(client, exchange);
    if (reply->has_length)
        return read_length(client, exchange);
    return error_new(CODE_UNAVAILABLE, "the server's reply has no length");
}

struct error *
http_client_exchange(struct http_client *client, struct http_exchange *exchange)
{
    struct quiet quiet = quiet_begin();
    exchange->is_usable = false;
    exchange->body->size = 0;
    client->watch = exchange->watch;
    struct error *error = send_all(client, exchange->head->bytes, exchange->head->size);
    if (!error)
        error = send_all(client, exchange->bytes, exchange->size);
    if (!error)
        error = read_head(client, &exchange->reply);
    if (!error)
        error = read_body(client, exchange);
    exchange->is_usable = !error && !exchange->reply.closes;
    quiet_end(&quiet);
    return error;
}
