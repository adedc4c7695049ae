/* SPDX-License-Identifier: Apache-2.0 */
/* src/web/http.c */
#include "web/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "rpc_ends.h"

#define PARALLEL 20
#define MANY 300 /* more than there may be connections */
#define LARGE 3000000

static void
say_hello(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)request;
    answer->status = 200;
    answer->content_type = "text/plain";
    buffer_print(&answer->body, "hello %s\n", (const char *)context);
}

static void
say_down(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    (void)request;
    answer->status = 503;
    buffer_append_text(&answer->body, "down\n");
}

/* Larger than a socket takes at once. */
static void
say_large(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    (void)request;
    answer->status = 200;
    memset(buffer_reserve(&answer->body, LARGE), 'x', LARGE);
    answer->body.size += LARGE;
}

static void
repeat_body(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    answer->status = 200;
    buffer_append(&answer->body, request->body, request->body_size);
}

/* Sends one piece, and then waits for the end of the server or the client. */
static void
stream_pieces(void *context, struct http_stream *stream)
{
    int never = eventfd(0, EFD_CLOEXEC);
    (void)context;
    if (http_stream_send(stream, "first\n", 6))
        while (http_stream_wait(stream, never, 60000))
            ;
    close(never);
}

static void
open_stream(void *context, const struct http_request *request, struct http_answer *answer)
{
    (void)context;
    (void)request;
    answer->status = 200;
    answer->content_type = "text/event-stream";
    answer->stream = stream_pieces;
}

static const struct http_page pages[] = {
    {"/hello", true, false, say_hello, "there"},  {"/down", true, false, say_down, NULL},
    {"/large", false, false, say_large, NULL},    {"/repeat", false, true, repeat_body, NULL},
    {"/stream", false, false, open_stream, NULL}, {"/below/", false, false, say_hello, "below"},
};

static const char *const hosts[] = {"skycap.example"};

#define OPTIONS(at)                                                                                \
    &(struct http_options)                                                                         \
    {                                                                                              \
        .address = (at), .pages = pages, .page_count = COUNT_OF(pages), .hosts = hosts,            \
        .host_count = 1, .log = &log                                                               \
    }

static struct http *
open_server(void)
{
    static const struct log log = {.level = LOG_ERROR, .fd = STDERR_FILENO};
    struct http *http;
    succeed(http_open(OPTIONS("127.0.0.1:0"), &http));
    return http;
}

static void
connect_socket(int fd, const struct http *http)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)http_port(http)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = PATIENCE_MS / 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&name, sizeof name) != 0)
        perror("connect");
}

static int
connect_to(const struct http *http)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connect_socket(fd, http);
    return fd;
}

static void
say(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
        perror("send");
}

/* All that comes until the server hangs up; closes the descriptor. */
static void
hear(int fd, struct buffer *answer)
{
    ssize_t got;
    while ((got = recv(fd, buffer_reserve(answer, 65536), 65536, 0)) > 0)
        answer->size += (size_t)got;
    close(fd);
}

static void
ask(const struct http *http, const char *request, struct buffer *answer)
{
    int fd = connect_to(http);
    say(fd, request);
    hear(fd, answer);
}

static void
check_answer(const struct http *http, const char *request, const char *start, const char *end)
{
    struct buffer answer AUTO(buffer_clear) = {0};
    ask(http, request, &answer);
    const char *text = buffer_text(&answer);
    CHECK(strncmp(text, start, strlen(start)) == 0);
    CHECK(answer.size >= strlen(end));
    if (answer.size >= strlen(end))
        CHECK_TEXT(text + answer.size - strlen(end), end);
}

static void
a_page_is_served_with_its_type_and_length(void)
{
    struct http *http = open_server();
    struct buffer answer AUTO(buffer_clear) = {0};
    ask(http, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    const char *text = buffer_text(&answer);
    CHECK(strstr(text, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n") == text);
    CHECK(strstr(text, "\r\nContent-Length: 12\r\n"));
    CHECK(strstr(text, "\r\n\r\nhello there\n"));
    http_close(http);
}

static void
the_page_chooses_the_status(void)
{
    struct http *http = open_server();
    check_answer(http, "GET /down HTTP/1.1\r\nHost: [::1]\r\n\r\n",
                 "HTTP/1.1 503 Service Unavailable\r\n", "\r\n\r\ndown\n");
    http_close(http);
}

static void
head_gives_the_length_and_no_body(void)
{
    struct http *http = open_server();
    check_answer(http, "HEAD /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                 "\r\nConnection: close\r\n\r\n");
    http_close(http);
}

static void
queries_are_left_out_of_the_path_and_other_paths_are_not_found(void)
{
    struct http *http = open_server();
    check_answer(http, "GET /hello?name=x HTTP/1.1\r\nHost: [::1]\r\n\r\n", "HTTP/1.1 200 ",
                 "hello there\n");
    check_answer(http, "GET /hell HTTP/1.1\r\nHost: [::1]\r\n\r\n", "HTTP/1.1 404 Not Found\r\n",
                 "\n");
    check_answer(http, "GET /hello/ HTTP/1.1\r\nHost: [::1]\r\n\r\n", "HTTP/1.1 404 Not Found\r\n",
                 "\n");
    check_answer(http, "GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", "HTTP/1.1 404 Not Found\r\n", "\n");
    http_close(http);
}

static void
methods_other_than_get_and_head_are_refused(void)
{
    struct http *http = open_server();
    struct buffer answer AUTO(buffer_clear) = {0};
    ask(http, "DELETE /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n", &answer);
    CHECK(strstr(buffer_text(&answer), "HTTP/1.1 405 Method Not Allowed\r\n"));
    CHECK(strstr(buffer_text(&answer), "\r\nAllow: GET, HEAD\r\n"));
    http_close(http);
}

/* A body that nobody reads must not take the answer away (TCP resets do). */
static void
a_refused_body_does_not_take_the_answer_away(void)
{
    struct http *http = open_server();
    struct buffer request AUTO(buffer_clear) = {0};
    buffer_append_text(&request,
                       "POST /hello HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 60000\r\n\r\n");
    for (int i = 0; i < 6000; i++)
        buffer_append_text(&request, "0123456789");
    check_answer(http, buffer_text(&request), "HTTP/1.1 405 ", "\n");
    memcpy(strstr((char *)request.bytes, "60000"), "99999", 5);
    for (int i = 0; i < 3999; i++)
        buffer_append_text(&request, "0123456789");
    check_answer(http, buffer_text(&request), "HTTP/1.1 413 ", "\n");
    http_close(http);
}

static void
what_is_no_request_is_refused(void)
{
    struct http *http = open_server();
    struct buffer long_line AUTO(buffer_clear) = {0};
    check_answer(http, "GET\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n", "\n");
    buffer_append_text(&long_line, "GET /");
    for (int i = 0; i < 8187; i++)
        buffer_append_byte(&long_line, 'x');
    check_answer(http, buffer_text(&long_line), "HTTP/1.1 400 Bad Request\r\n", "\n");
    http_close(http);
}

static void
a_request_may_come_in_pieces(void)
{
    struct http *http = open_server();
    struct buffer answer AUTO(buffer_clear) = {0};
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: localhost:80\r\n\r\n";
    int fd = connect_to(http);
    for (size_t i = 0; i < sizeof request - 1; i++) {
        const char piece[] = {request[i], '\0'};
        say(fd, piece);
    }
    hear(fd, &answer);
    CHECK(strstr(buffer_text(&answer), "\r\n\r\nhello there\n"));
    http_close(http);
}

static void
a_slow_client_does_not_keep_others_waiting(void)
{
    struct http *http = open_server();
    int slow = connect_to(http);
    say(slow, "GET /hel");
    uint64_t start = timers_now();
    check_answer(http, "GET /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n", "HTTP/1.1 200 OK\r\n",
                 "hello there\n");
    CHECK(ms_since(start) < 1000);
    say(slow, "lo HTTP/1.1\r\nHost: [::1]\r\n\r\n");
    struct buffer answer AUTO(buffer_clear) = {0};
    hear(slow, &answer);
    CHECK(strstr(buffer_text(&answer), "hello there\n"));
    http_close(http);
}

static void
a_large_page_is_whole_though_it_is_read_late(void)
{
    struct http *http = open_server();
    struct buffer answer AUTO(buffer_clear) = {0};
    int fd = connect_to(http);
    say(fd, "GET /large HTTP/1.1\r\nHost: [::1]\r\n\r\n");
    sleep_ms(50);
    hear(fd, &answer);
    CHECK(answer.size > 3000000);
    CHECK(strstr(buffer_text(&answer), "Content-Length: 3000000\r\n"));
    http_close(http);
}

static void *
ask_in_thread(void *http)
{
    struct buffer answer AUTO(buffer_clear) = {0};
    ask(http, "GET /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n", &answer);
    return strstr(buffer_text(&answer), "hello there\n") ? http : NULL;
}

static void
twenty_at_once_are_all_served(void)
{
    struct http *http = open_server();
    pthread_t threads[PARALLEL];
    for (int i = 0; i < PARALLEL; i++)
        pthread_create(&threads[i], NULL, ask_in_thread, http);
    for (int i = 0; i < PARALLEL; i++) {
        void *served;
        pthread_join(threads[i], &served);
        CHECK(served);
    }
    http_close(http);
}

static void
without_a_host_ipv4_and_ipv6_are_served(void)
{
    static const struct log log = {.level = LOG_ERROR, .fd = STDERR_FILENO};
    struct http *http;
    struct buffer answer AUTO(buffer_clear) = {0};
    succeed(http_open(OPTIONS(":0"), &http));
    check_answer(http, "GET /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n", "HTTP/1.1 200 ",
                 "hello there\n");
    struct sockaddr_in6 name = {.sin6_family = AF_INET6,
                                .sin6_port = htons((uint16_t)http_port(http)),
                                .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
    say(fd, "GET /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n");
    hear(fd, &answer);
    CHECK(strstr(buffer_text(&answer), "hello there\n"));
    http_close(http);
}

/* Who connects waits in the kernel meanwhile, and is served when there are descriptors again. */
static void
without_descriptors_it_waits_and_burns_no_time(void)
{
    struct http *http = open_server();
    struct buffer answer AUTO(buffer_clear) = {0};
    struct rlimit before;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    struct rlimit no_more = {(rlim_t)fd + 1, before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &no_more) == 0);
    connect_socket(fd, http);
    say(fd, "GET /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n");
    uint64_t cpu_ms = process_cpu_ms();
    sleep_ms(500);
    CHECK(process_cpu_ms() - cpu_ms < 20);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    hear(fd, &answer);
    CHECK(strstr(buffer_text(&answer), "hello there\n"));
    http_close(http);
}

static void
addresses_that_are_no_host_and_port_are_refused(void)
{
    struct http *http;
    CHECK_CODE(http_open(&(struct http_options){.address = "unix:///tmp/x"}, &http),
               CODE_INVALID_ARGUMENT);
    CHECK_CODE(http_open(&(struct http_options){.address = "nonsense"}, &http),
               CODE_INVALID_ARGUMENT);
    http_close(NULL);
}

static void
a_port_in_use_is_told(void)
{
    struct http *first = open_server(), *second;
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", http_port(first));
    CHECK_CODE(http_open(&(struct http_options){.address = address}, &second), CODE_UNAVAILABLE);
    http_close(first);
}

static void
hosts_from_elsewhere_are_refused(void)
{
    struct http *http = open_server();
    check_answer(http, "GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421 ", "\n");
    check_answer(http, "GET /hello HTTP/1.1\r\nHost: skycap.example:9\r\n\r\n", "HTTP/1.1 200 ",
                 "hello there\n");
    check_answer(http, "GET /hello HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ", "hello there\n");
    http_close(http);
}

static void
a_path_with_a_slash_serves_what_is_below(void)
{
    struct http *http = open_server();
    check_answer(http, "GET /below/it HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 ",
                 "hello below\n");
    check_answer(http, "GET /below HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404 ", "\n");
    http_close(http);
}

static void
a_post_has_its_body(void)
{
    struct http *http = open_server();
    check_answer(http, "POST /repeat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabcd",
                 "HTTP/1.1 200 OK\r\n", "\r\n\r\nabc");
    http_close(http);
}

/* Opens a stream and waits for its first piece, or for the refusal. */
static int
open_one_stream(const struct http *http, struct buffer *answer)
{
    int fd = connect_to(http);
    say(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while (!strstr(buffer_text(answer), "\n\r\nfirst\n") &&
           !strstr(buffer_text(answer), "503 Service Unavailable: ")) {
        ssize_t got = recv(fd, buffer_reserve(answer, 4096), 4096, 0);
        if (got <= 0)
            break;
        answer->size += (size_t)got;
    }
    return fd;
}

static void
streams_have_their_own_limit_and_end_with_the_server(void)
{
    struct http *http = open_server();
    int streams[HTTP_MAX_STREAMS + 1], slow[HTTP_MAX_PAGES];
    for (int i = 0; i <= HTTP_MAX_STREAMS; i++) {
        struct buffer answer AUTO(buffer_clear) = {0};
        streams[i] = open_one_stream(http, &answer);
        CHECK(strstr(buffer_text(&answer), i < HTTP_MAX_STREAMS ? "first\n" : "503 Service"));
    }
    for (int i = 0; i < HTTP_MAX_PAGES; i++) { /* they never read */
        slow[i] = connect_to(http);
        say(slow[i], "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    uint64_t start = timers_now();
    check_answer(http, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 ",
                 "hello there\n");
    http_close(http);
    CHECK(ms_since(start) < 2000);
    for (int i = 0; i <= HTTP_MAX_STREAMS; i++)
        close(streams[i]);
    for (int i = 0; i < HTTP_MAX_PAGES; i++)
        close(slow[i]);
}

/* Without that, they would keep the server busy until their time is over. */
static void
clients_that_send_nothing_make_room_for_others(void)
{
    struct http *http = open_server();
    int idle[MANY];
    for (int i = 0; i < MANY; i++) {
        idle[i] = connect_to(http);
        say(idle[i], "GET /he");
    }
    uint64_t start = timers_now();
    for (int i = 0; i < PARALLEL; i++)
        check_answer(http, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 ",
                     "hello there\n");
    CHECK(ms_since(start) < 3000);
    http_close(http);
    for (int i = 0; i < MANY; i++)
        close(idle[i]);
}

/* More streams than there may be at a time, one after the other. */
static void
a_client_that_goes_frees_its_stream(void)
{
    struct http *http = open_server();
    unsigned opened = 0;
    for (int tries = 0; opened < 2 * HTTP_MAX_STREAMS && tries < 1000; tries++) {
        struct buffer answer AUTO(buffer_clear) = {0};
        int fd = open_one_stream(http, &answer);
        opened += strstr(buffer_text(&answer), "first\n") != NULL;
        close(fd);
    }
    CHECK_NUMBER(opened, 2 * HTTP_MAX_STREAMS);
    http_close(http);
}

int
main(void)
{
    a_page_is_served_with_its_type_and_length();
    the_page_chooses_the_status();
    head_gives_the_length_and_no_body();
    queries_are_left_out_of_the_path_and_other_paths_are_not_found();
    methods_other_than_get_and_head_are_refused();
    a_refused_body_does_not_take_the_answer_away();
    what_is_no_request_is_refused();
    a_request_may_come_in_pieces();
    a_slow_client_does_not_keep_others_waiting();
    a_large_page_is_whole_though_it_is_read_late();
    twenty_at_once_are_all_served();
    without_a_host_ipv4_and_ipv6_are_served();
    without_descriptors_it_waits_and_burns_no_time();
    addresses_that_are_no_host_and_port_are_refused();
    a_port_in_use_is_told();
    hosts_from_elsewhere_are_refused();
    a_path_with_a_slash_serves_what_is_below();
    a_post_has_its_body();
    streams_have_their_own_limit_and_end_with_the_server();
    clients_that_send_nothing_make_room_for_others();
    a_client_that_goes_frees_its_stream();
    return check_report("test_http");
}
