/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes unary calls as fast as they are answered, over mutual TLS, which h2load has no client certificates for:
 *
 *     call-load [options] ADDRESS METHOD        ADDRESS is HOST:PORT (numbers), or unix:PATH without TLS
 *
 * It prints one line of JSON. A call that fails, or an answer of another length than the first, ends it with exit code 1. One thread; nothing of
 * skycap's own gRPC is in it, so that all servers have the same strange client.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cli/options.h"

#define MAX_CONNECTIONS 256
#define WINDOW (1 << 30)
#define GRPC_PREFIX 5
#define MAX_VALUE 60

enum request {
    REQUEST_EMPTY,
    REQUEST_REGISTER, /* oim.v0.RegisterControllerRequest: node-NNNNNN and an address, one after the other */
    REQUEST_LOOK_UP, /* oim.v0.GetValuesRequest: node-NNNNNN/address, all over the place */
};

struct settings {
    const char *address, *method;
    const char *ca_file, *certificate_file, *key_file, *tls_name;
    const char *controller;
    unsigned long connections, streams;
    unsigned long milliseconds;
    unsigned long count; /* calls at most; 0: until the time is over */
    unsigned long ids;   /* how many controllers there are, or shall be */
    const char *
        value; /* oim.v0.RegisterControllerRequest: node-NNNNNN and this address, one after the other */
    bool looks_up; /* oim.v0.GetValuesRequest: node-NNNNNN/address, all over the place */
};

struct slot {
    uint64_t started_ns;
    size_t answer_bytes;
    bool is_ok, has_status;
    uint8_t body[128];
    size_t body_size, body_sent;
};

struct connection {
    int fd;
    SSL *ssl; /* NULL: plaintext */
    nghttp2_session *session;
    struct buffer output;
    struct load *load;
};

struct load {
    const struct settings *settings;
    struct connection connections[MAX_CONNECTIONS];
    uint64_t end_ns;
    unsigned long begun, done;
    unsigned in_flight;
    size_t answer_bytes;
    uint32_t *times_us10; /* tenths of a microsecond */
    size_t room;
};

__attribute__((noreturn)) static void
die(const char *what)
{
    fprintf(stderr, "call-load: %s\n", what);
    exit(1);
}

static uint64_t
now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- requests ---- */

static size_t
put_text(uint8_t *out, uint8_t field, const char *text)
{
    size_t size = strlen(text);
    out[0] = (uint8_t)(field << 3 | 2);
    out[1] = (uint8_t)size;
    memcpy(out + 2, text, size);
    return size + 2;
}

/* A step that has no common factor with the usual numbers of controllers visits all of them, far apart. */
static void
fill_body(struct slot *slot, const struct settings *settings, unsigned long number)
{
    char text[64];
    uint8_t *message = slot->body + GRPC_PREFIX;
    size_t size = 0;
    if (settings->value) {
        snprintf(text, sizeof text, "node-%06lu", number % settings->ids);
        size = put_text(message, 1, text);
        size += put_text(message + size, 2, settings->value);
    } else if (settings->looks_up) {
        snprintf(text, sizeof text, "node-%06lu/address", number * 7919 % settings->ids);
        size = put_text(message, 1, text);
    }
    memset(slot->body, 0, GRPC_PREFIX);
    slot->body[4] = (uint8_t)size;
    slot->body_size = size + GRPC_PREFIX;
    slot->body_sent = 0;
}

static ssize_t
read_body(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room, uint32_t *flags,
          nghttp2_data_source *source, void *context)
{
    (void)session, (void)stream, (void)context;
    struct slot *slot = source->ptr;
    size_t size = slot->body_size - slot->body_sent;
    if (size > room)
        size = room;
    memcpy(out, slot->body + slot->body_sent, size);
    slot->body_sent += size;
    if (slot->body_sent == slot->body_size)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)size;
}

static nghttp2_nv
header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

static void
begin_call(struct connection *connection, struct slot *slot)
{
    struct load *load = connection->load;
    const struct settings *settings = load->settings;
    char path[256];
    snprintf(path, sizeof path, "/%s", settings->method);
    nghttp2_nv headers[] = {
        header(":method", "POST"),
        header(":scheme", connection->ssl ? "https" : "http"),
        header(":path", path),
        header(":authority", settings->tls_name ? settings->tls_name : "localhost"),
        header("te", "trailers"),
        header("content-type", "application/grpc"),
        header("controllerid", settings->controller ? settings->controller : ""),
    };
    fill_body(slot, settings, load->begun++);
    slot->started_ns = now_ns();
    slot->answer_bytes = 0;
    slot->is_ok = slot->has_status = false;
    nghttp2_data_provider body = {.source.ptr = slot, .read_callback = read_body};
    size_t count = sizeof headers / sizeof headers[0] - !settings->controller;
    if (nghttp2_submit_request(connection->session, NULL, headers, count, &body, slot) < 0)
        die("nghttp2 takes no request");
    load->in_flight++;
}

/* ---- answers ---- */

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
          size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags, void *context)
{
    (void)flags, (void)context;
    struct slot *slot = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!slot)
        return 0;
    if (name_size == 7 && memcmp(name, ":status", 7) == 0)
        slot->is_ok = value_size == 3 && memcmp(value, "200", 3) == 0;
    if (name_size == 11 && memcmp(name, "grpc-status", 11) == 0)
        slot->has_status = value_size == 1 && value[0] == '0';
    if (value_size && name_size == 12 && memcmp(name, "grpc-message", 12) == 0)
        fprintf(stderr, "call-load: %.*s\n", (int)value_size, (const char *)value);
    return 0;
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t size,
        void *context)
{
    (void)flags, (void)bytes, (void)context;
    struct slot *slot = nghttp2_session_get_stream_user_data(session, stream);
    if (slot)
        slot->answer_bytes += size;
    return 0;
}

static void
note_time(struct load *load, uint64_t ns)
{
    if (load->done == load->room) {
        load->room = load->room ? load->room * 2 : 1 << 16;
        load->times_us10 = memory_resize(load->times_us10, load->room * sizeof *load->times_us10);
    }
    load->times_us10[load->done++] = (uint32_t)(ns / 100);
}

static bool
has_more(const struct load *load)
{
    if (load->settings->count)
        return load->begun < load->settings->count;
    return now_ns() < load->end_ns;
}

static int
on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
    struct connection *connection = context;
    struct load *load = connection->load;
    struct slot *slot = nghttp2_session_get_stream_user_data(session, stream);
    if (!slot)
        return 0;
    if (code || !slot->is_ok || !slot->has_status)
        die("a call failed");
    if (!load->answer_bytes)
        load->answer_bytes = slot->answer_bytes;
    if (load->answer_bytes != slot->answer_bytes || slot->answer_bytes < GRPC_PREFIX)
        die("an answer has another length than the first");
    note_time(load, now_ns() - slot->started_ns);
    load->in_flight--;
    if (has_more(load))
        begin_call(connection, slot);
    return 0;
}

/* ---- connections ---- */

static int
connect_unix(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path)
        die("the path is too long");
    strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) != 0)
        die("cannot connect");
    return fd;
}

static int
connect_tcp(const char *address)
{
    char host[64];
    const char *colon = strrchr(address, ':');
    if (!colon || (size_t)(colon - address) >= sizeof host)
        die("the address is HOST:PORT or unix:PATH");
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, host, &name.sin_addr) != 1 || fd < 0 ||
        connect(fd, (struct sockaddr *)&name, sizeof name) != 0)
        die("cannot connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static SSL_CTX *
open_tls(const struct settings *settings)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || !SSL_CTX_load_verify_locations(context, settings->ca_file, NULL) ||
        SSL_CTX_use_certificate_chain_file(context, settings->certificate_file) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, settings->key_file, SSL_FILETYPE_PEM) != 1)
        die("OpenSSL does not take the files");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\2h2", 3);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

static void
shake_hands(struct connection *connection, SSL_CTX *context)
{
    connection->ssl = SSL_new(context);
    const char *name = connection->load->settings->tls_name;
    if (!connection->ssl || !SSL_set_fd(connection->ssl, connection->fd) ||
        (name && (!SSL_set1_host(connection->ssl, name) ||
                  !SSL_set_tlsext_host_name(connection->ssl, name))) ||
        SSL_connect(connection->ssl) != 1)
        die("no TLS");
}

static void
open_session(struct connection *connection)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        memory_exhausted();
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    if (nghttp2_session_client_new(&connection->session, callbacks, connection) != 0)
        memory_exhausted();
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW};
    if (nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, &entry, 1) != 0 ||
        nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0, WINDOW) !=
            0)
        die("nghttp2 takes no settings");
}

static void
open_connection(struct connection *connection, struct load *load, SSL_CTX *context)
{
    const char *address = load->settings->address;
    connection->load = load;
    connection->fd =
        strncmp(address, "unix:", 5) == 0 ? connect_unix(address + 5) : connect_tcp(address);
    if (context)
        shake_hands(connection, context);
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    open_session(connection);
}

static void
close_connection(struct connection *connection)
{
    nghttp2_session_del(connection->session);
    SSL_free(connection->ssl);
    close(connection->fd);
    buffer_clear(&connection->output);
}

/* Bytes, 0 when the socket is not ready, and no return when it is lost. */
static size_t
result_of(const struct connection *connection, ssize_t result)
{
    if (result > 0)
        return (size_t)result;
    int error = connection->ssl ? SSL_get_error(connection->ssl, (int)result) : 0;
    bool waits = connection->ssl ? error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE
                                 : result < 0 && errno == EAGAIN;
    if (!waits)
        die("the connection was lost");
    return 0;
}

/* Whether all is sent. */
static bool
send_output(struct connection *connection)
{
    const uint8_t *bytes;
    ssize_t size;
    struct buffer *output = &connection->output;
    while ((size = nghttp2_session_mem_send(connection->session, &bytes)) > 0)
        buffer_append(output, bytes, (size_t)size);
    while (output->size) {
        ssize_t result = connection->ssl
                             ? SSL_write(connection->ssl, output->bytes, (int)output->size)
                             : write(connection->fd, output->bytes, output->size);
        size_t sent = result_of(connection, result);
        if (!sent)
            return false;
        output->size -= sent;
        memmove(output->bytes, output->bytes + sent, output->size);
    }
    return true;
}

static void
take_input(struct connection *connection)
{
    static uint8_t bytes[64 * 1024];
    for (;;) {
        ssize_t result = connection->ssl ? SSL_read(connection->ssl, bytes, sizeof bytes)
                                         : read(connection->fd, bytes, sizeof bytes);
        size_t size = result_of(connection, result);
        if (!size)
            return;
        if (nghttp2_session_mem_recv(connection->session, bytes, size) < 0)
            die("the server does not speak HTTP/2");
    }
}

/* ---- the run ---- */

static void
run(struct load *load)
{
    struct pollfd polled[MAX_CONNECTIONS];
    unsigned long count = load->settings->connections;
    for (unsigned long i = 0; i < count; i++)
        polled[i] = (struct pollfd){.fd = load->connections[i].fd};
    while (load->in_flight) {
        for (unsigned long i = 0; i < count; i++)
            polled[i].events = send_output(&load->connections[i]) ? POLLIN : POLLIN | POLLOUT;
        if (poll(polled, count, 10000) <= 0)
            die("nothing came for 10 s");
        for (unsigned long i = 0; i < count; i++)
            if (polled[i].revents)
                take_input(&load->connections[i]);
    }
}

static int
compare_times(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void
print_result(struct load *load, uint64_t took_ns)
{
    if (!load->done)
        die("there was no time for a single call");
    qsort(load->times_us10, load->done, sizeof *load->times_us10, compare_times);
    printf("{\"calls\":%lu,\"seconds\":%.6f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,"
           "\"answer_bytes\":%zu}\n",
           load->done, (double)took_ns / 1e9, load->times_us10[load->done / 2] / 10.0,
           load->times_us10[load->done - 1 - load->done / 100] / 10.0,
           load->times_us10[load->done - 1] / 10.0, load->answer_bytes);
}

/* ---- flags ---- */

static void
read_flags(struct settings *s, int count, char **arguments)
{
    *s = (struct settings){.connections = 1, .streams = 1, .milliseconds = 1000, .ids = 1};
    const struct option table[] = {
        {"tls-ca", 0, "FILE", OPTION_TEXT, &s->ca_file, "use TLS: whom to trust"},
        {"tls-cert", 0, "FILE", OPTION_TEXT, &s->certificate_file, "our certificate"},
        {"tls-key", 0, "FILE", OPTION_TEXT, &s->key_file, "its key"},
        {"tls-name", 0, "NAME", OPTION_TEXT, &s->tls_name, "what the server must be called"},
        {"controller", 0, "ID", OPTION_TEXT, &s->controller, "controllerid of all calls"},
        {"connections", 0, "N", OPTION_NUMBER, &s->connections, "default 1"},
        {"streams", 0, "N", OPTION_NUMBER, &s->streams, "calls at a time on each; default 1"},
        {"milliseconds", 0, "N", OPTION_NUMBER, &s->milliseconds, "how long; default 1000"},
        {"count", 0, "N", OPTION_NUMBER, &s->count, "so many calls, however long it takes"},
        {"ids", 0, "N", OPTION_NUMBER, &s->ids, "how many controllers there are, or shall be"},
        {"register", 0, "ADDRESS", OPTION_TEXT, &s->value, "send RegisterControllerRequests"},
        {"look-up", 0, NULL, OPTION_FLAG, &s->looks_up, "send GetValuesRequests of addresses"},
        {0},
    };
    const struct options options = {"call-load", "call-load [options] ADDRESS METHOD",
                                    "Makes calls as fast as they are answered.", table};
    int rest;
    bool helped;
    struct error *error = options_parse(&options, count, arguments, &rest, &helped);
    if (error)
        die(error->message);
    if (helped)
        exit(0);
    if (count - rest != 2 || !s->ids || !s->streams || !s->connections ||
        s->connections > MAX_CONNECTIONS || (s->value && strlen(s->value) > MAX_VALUE) ||
        (s->ca_file && !(s->certificate_file && s->key_file)))
        die("see call-load --help");
    s->address = arguments[rest];
    s->method = arguments[rest + 1];
}

int
main(int count, char **arguments)
{
    static struct load load;
    struct settings settings;
    read_flags(&settings, count, arguments);
    load.settings = &settings;
    SSL_CTX *context = settings.ca_file ? open_tls(&settings) : NULL;
    for (unsigned long i = 0; i < settings.connections; i++)
        open_connection(&load.connections[i], &load, context);
    struct slot *slots = memory_zeroed(settings.connections * settings.streams * sizeof *slots);
    uint64_t began_ns = now_ns();
    load.end_ns = began_ns + settings.milliseconds * 1000000u;
    for (unsigned long i = 0; i < settings.connections * settings.streams && has_more(&load); i++)
        begin_call(&load.connections[i % settings.connections], &slots[i]);
    run(&load);
    print_result(&load, now_ns() - began_ns);
    for (unsigned long i = 0; i < settings.connections; i++)
        close_connection(&load.connections[i]);
    SSL_CTX_free(context);
    free(load.times_us10);
    free(slots);
    return 0;
}
