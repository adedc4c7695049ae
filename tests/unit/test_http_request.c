/* SPDX-License-Identifier: Apache-2.0 */
/* src/web/http_request.c and src/web/http_host.c */
#include "web/http_request.h"

#include "base/buffer.h"
#include "rpc_ends.h"
#include "web/http_host.h"

#define HOST "Host: localhost\r\n"

/* The head, which lives until the next one. */
static struct error *
parse(const char *text, struct http_request *out)
{
    static char head[2 * HTTP_REQUEST_MAX_HEAD];
    size_t size = strlen(text);
    memcpy(head, text, size);
    return http_request_parse(head, size, out);
}

static void
a_request_has_its_parts(void)
{
    struct http_request request;
    succeed(parse("POST /api/v1/moves?a=b HTTP/1.1\r\nhost: 10.0.0.1:80\r\nORIGIN:http://x\r\n"
                  "Sec-Fetch-Site: same-origin\r\n"
                  "Content-Type: application/json \t\r\nAuthorization: Bearer t\r\n"
                  "Content-Length: 65536\r\nIf-None-Match: \"1\"\r\nOther: \r\n\r\n",
                  &request));
    CHECK_NUMBER(request.method, HTTP_POST);
    CHECK_TEXT(request.path, "/api/v1/moves");
    CHECK_TEXT(request.query, "a=b");
    CHECK_TEXT(request.host, "10.0.0.1:80");
    CHECK_TEXT(request.origin, "http://x");
    CHECK_TEXT(request.fetch_site, "same-origin");
    CHECK_TEXT(request.content_type, "application/json");
    CHECK_TEXT(request.authorization, "Bearer t");
    CHECK_TEXT(request.if_none_match, "\"1\"");
    CHECK_NUMBER(request.body_size, 65536);
    CHECK_NUMBER(request.minor, 1);
}

static void
what_is_wrong_is_refused(void)
{
    static const char *const wrong[] = {
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",                                  /* no Host */
        "GET / HTTP/2.0\r\n" HOST "\r\n",                          /* version */
        "GET  / HTTP/1.1\r\n" HOST "\r\n",                         /* two blanks */
        "GET http://localhost/ HTTP/1.1\r\n" HOST "\r\n",          /* no path */
        "GET /a#b HTTP/1.1\r\n" HOST "\r\n",                       /* fragment */
        "GET /\x80 HTTP/1.1\r\n" HOST "\r\n",                      /* not ASCII */
        "GET / HTTP/1.1\n" HOST "\r\n",                            /* line end */
        "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",                    /* the same */
        "GET / HTTP/1.1\r\n" HOST HOST "\r\n",                     /* twice */
        "GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n",               /* continuation line */
        "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",              /* blank before the colon */
        "GET / HTTP/1.1\r\n" HOST "X: \x01\r\n\r\n",               /* control character */
        "GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n",     /* a body of GET */
        "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n",   /* no number */
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n", /* the same */
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
    };
    struct http_request request;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        CHECK_CODE(parse(wrong[i], &request), CODE_INVALID_ARGUMENT);
}

static void
bodies_that_are_too_large_or_chunked_have_errors_of_their_own(void)
{
    struct http_request request;
    CHECK_CODE(parse("POST / HTTP/1.1\r\n" HOST "Content-Length: 65537\r\n\r\n", &request),
               CODE_OUT_OF_RANGE);
    CHECK_CODE(
        parse("POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n", &request),
        CODE_OUT_OF_RANGE);
    CHECK_CODE(parse("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", &request),
               CODE_UNIMPLEMENTED);
}

static void
more_than_64_fields_are_refused(void)
{
    struct buffer text AUTO(buffer_clear) = {0};
    struct http_request request;
    buffer_append_text(&text, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < HTTP_REQUEST_MAX_FIELDS; i++)
        buffer_append_text(&text, "a: b\r\n");
    buffer_append_text(&text, "\r\n");
    CHECK_CODE(parse(buffer_text(&text), &request), CODE_INVALID_ARGUMENT);
}

static void
check_parameter(const char *query, const char *expected)
{
    struct http_request request = {.query = query};
    struct arena arena AUTO(arena_clear);
    const char *value;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error AUTO(error_cleanup) =
        http_request_parameter(&request, "id", &arena, &value);
    CHECK_TEXT(error ? NULL : value, expected);
}

static void
parameters_are_decoded(void)
{
    check_parameter("", "");
    check_parameter("id=", "");
    check_parameter("a=1&id=v%3Alocal%2fx+y&b", "v:local/x y");
    check_parameter("xid=1&id2=2&id=3", "3");
    check_parameter("id=%", NULL);
    check_parameter("id=%4", NULL);
    check_parameter("id=%4&x=11", NULL);
    check_parameter("id=%zz", NULL);
    check_parameter("id=%00", NULL);
    check_parameter("id=%0a", NULL);
}

static bool
accepts_gzip(const char *field)
{
    return http_request_accepts_gzip(&(struct http_request){.accept_encoding = field});
}

static void
gzip_is_sent_only_where_it_is_accepted(void)
{
    CHECK(accepts_gzip("gzip, deflate, br"));
    CHECK(accepts_gzip("br;q=1.0, GZIP;q=0.8"));
    CHECK(!accepts_gzip(NULL));
    CHECK(!accepts_gzip("identity"));
    CHECK(!accepts_gzip("gzip;q=0"));
    CHECK(!accepts_gzip("xgzip"));
}

static void
hosts_are_addresses_localhost_or_given_names(void)
{
    static const char *const names[] = {"skycap.example"};
    static const char *const good[] = {"127.0.0.1",    "10.1.2.3:9100",  "[::1]",
                                       "[fe80::1]:80", "LocalHost:9100", "Skycap.Example:443"};
    static const char *const bad[] = {"",
                                      "evil.example",
                                      "localhost.evil.example",
                                      "[evil]",
                                      "127.0.0.1.evil",
                                      "skycap.example.",
                                      "[::1",
                                      "localhost:80:80",
                                      "localhost:x",
                                      "a@localhost",
                                      "127.1",
                                      "0x7f000001"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK(http_host_is_known(good[i], names, 1));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(!http_host_is_known(bad[i], names, 1));
}

static void
an_origin_is_the_server_itself_or_another_site(void)
{
    CHECK(http_host_is_origin("localhost:80", "http://localhost:80"));
    CHECK(http_host_is_origin("localhost:80", "https://localhost:80"));
    CHECK(!http_host_is_origin("localhost:80", "http://localhost:81"));
    CHECK(!http_host_is_origin("localhost:80", "http://localhost:80.evil.example"));
    CHECK(!http_host_is_origin("localhost:80", "null"));
    CHECK(!http_host_is_origin("localhost:80", "file://localhost:80"));
}

static void
the_loopback_is_known(void)
{
    CHECK(http_host_is_loopback("127.0.0.1"));
    CHECK(http_host_is_loopback("127.9.0.1"));
    CHECK(http_host_is_loopback("::1"));
    CHECK(!http_host_is_loopback("0.0.0.0"));
    CHECK(!http_host_is_loopback("::"));
    CHECK(!http_host_is_loopback("192.168.0.1"));
}

int
main(void)
{
    a_request_has_its_parts();
    what_is_wrong_is_refused();
    bodies_that_are_too_large_or_chunked_have_errors_of_their_own();
    more_than_64_fields_are_refused();
    parameters_are_decoded();
    gzip_is_sent_only_where_it_is_accepted();
    hosts_are_addresses_localhost_or_given_names();
    an_origin_is_the_server_itself_or_another_site();
    the_loopback_is_known();
    return check_report("test_http_request");
}
