/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc/request.c: what HTTP/2 and gRPC demand of a request's header fields */
#include "rpc/grpc/request.h"

#include "check.h"

struct sample {
    const char *name, *value;
};

static struct arena arena;

static void
add(struct request_header *head, const char *name, const char *value)
{
    struct field field = {name, strlen(name), value, strlen(value)};
    request_read_fields(head, &arena, &field, 1);
}

static void
add_all(struct request_header *head, const struct sample *fields)
{
    for (; fields->name; fields++)
        add(head, fields->name, fields->value);
}

static const struct sample good[] = {
    {":method", "POST"},
    {":scheme", "http"},
    {":path", "/csi.v1.Identity/Probe"},
    {":authority", "localhost"},
    {"content-type", "application/grpc"},
    {"te", "trailers"},
    {NULL, NULL},
};

/* A good head with one more field. */
static void
read_with(struct request_header *head, const char *name, const char *value)
{
    request_init(head);
    add_all(head, good);
    add(head, name, value);
    request_finish(head);
}

static void
check_malformed(const char *name, const char *value, bool expected)
{
    struct request_header head;
    read_with(&head, name, value);
    if ((head.malformed != NULL) != expected)
        fprintf(stderr, "with %s: %s\n", name, value);
    CHECK_NUMBER(head.malformed != NULL, expected);
}

static void
a_good_request_is_read(void)
{
    struct request_header head;
    read_with(&head, "x-key", "value");
    CHECK(!head.malformed);
    CHECK_TEXT(head.method, "POST");
    CHECK_TEXT(head.path, "/csi.v1.Identity/Probe");
    CHECK_TEXT(head.scheme, "http");
    CHECK_TEXT(head.authority, "localhost");
    CHECK_NUMBER(head.content_length, -1);
    CHECK_NUMBER(head.encoding, ENCODING_IDENTITY);
    CHECK(!head.has_timeout);
    CHECK_NUMBER(request_http_status(&head), 0);
    CHECK_TEXT(metadata_find(&head.metadata, "x-key"), "value");
    CHECK_NUMBER(head.metadata.count, 3);
}

/* Clients write all sorts of things there for a unix socket. */
static void
any_authority_will_do(void)
{
    static const char *const authorities[] = {"", "/run/csi.sock", "unix:///run/csi.sock",
                                              "%2Frun%2Fcsi.sock", "localhost:0"};
    for (size_t i = 0; i < COUNT_OF(authorities); i++) {
        struct request_header head;
        request_init(&head);
        add(&head, ":authority", authorities[i]);
        add_all(&head,
                (const struct sample[]){
                    {":method", "POST"}, {":scheme", "http"}, {":path", "/s/m"}, {NULL, NULL}});
        request_finish(&head);
        CHECK(!head.malformed);
        CHECK_TEXT(head.authority, authorities[i]);
    }
}

static void
each_pseudo_field_but_authority_is_needed(void)
{
    for (size_t missing = 0; missing < 4; missing++) {
        struct request_header head;
        request_init(&head);
        for (size_t i = 0; good[i].name; i++)
            if (i != missing)
                add(&head, good[i].name, good[i].value);
        request_finish(&head);
        CHECK_NUMBER(head.malformed != NULL, missing != 3);
    }
}

static void
values_neither_begin_nor_end_with_white_space(void)
{
    static const char *const bad[] = {" ",       "\t",      " value",        "value ",
                                      "\tvalue", "value\t", " a long value", "a long value "};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_malformed("x-key", bad[i], true);
    check_malformed("x-key", "", false);
    check_malformed("x-key", "one\ttwo three", false);
}

static void
pseudo_fields_come_once_and_first(void)
{
    check_malformed(":path", "/again", true);
    check_malformed(":status", "200", true);
    check_malformed(":protocol", "websocket", true);
    struct request_header head;
    request_init(&head);
    add_all(&head, (const struct sample[]){{":method", "POST"},
                                           {":method", "POST"},
                                           {":scheme", "http"},
                                           {":path", "/s/m"},
                                           {NULL, NULL}});
    request_finish(&head);
    CHECK(head.malformed);
}

static void
paths_begin_with_a_slash(void)
{
    static const struct {
        const char *path;
        bool is_malformed;
    } paths[] = {{"/", false}, {"*", false}, {"", true}, {"csi.v1.Identity/Probe", true}};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct request_header head;
        request_init(&head);
        add_all(&head, (const struct sample[]){{":method", "POST"},
                                               {":scheme", "http"},
                                               {":path", paths[i].path},
                                               {NULL, NULL}});
        request_finish(&head);
        CHECK_NUMBER(head.malformed != NULL, paths[i].is_malformed);
    }
}

static void
names_and_values_have_only_the_characters_of_http2(void)
{
    check_malformed("x-key", "a value\twith a tab", false);
    check_malformed("X-Key", "v", true);
    check_malformed("", "v", true);
    check_malformed(":", "v", true);
    check_malformed("x key", "v", true);
    check_malformed("x-key", "line\nline", true);
    check_malformed("x-key", "\r", true);
    struct request_header head;
    request_init(&head);
    add_all(&head, good);
    request_read_fields(&head, &arena, &(struct field){"x-key", 5, "a\0b", 3}, 1);
    CHECK(head.malformed);
}

static void
fields_of_one_connection_are_refused(void)
{
    check_malformed("connection", "close", true);
    check_malformed("keep-alive", "timeout=5", true);
    check_malformed("proxy-connection", "keep-alive", true);
    check_malformed("transfer-encoding", "chunked", true);
    check_malformed("upgrade", "h2c", true);
    check_malformed("te", "gzip", true);
    check_malformed("te", "trailers", false);
}

static void
a_content_length_is_one_number(void)
{
    struct request_header head;
    read_with(&head, "content-length", "123456789012345678");
    CHECK(!head.malformed);
    CHECK_NUMBER(head.content_length, 123456789012345678);
    add(&head, "content-length", "123456789012345678");
    CHECK(head.malformed);
    check_malformed("content-length", "0", false);
    check_malformed("content-length", "", true);
    check_malformed("content-length", "-1", true);
    check_malformed("content-length", "1x", true);
    check_malformed("content-length", "9999999999999999999", true);
}

static void
the_timeout_is_read_or_found_bad(void)
{
    struct request_header head;
    read_with(&head, "grpc-timeout", "250m");
    CHECK(head.has_timeout && !head.bad_timeout);
    CHECK_NUMBER(head.timeout_ns, 250000000);
    read_with(&head, "grpc-timeout", "250");
    CHECK(head.has_timeout && head.bad_timeout && !head.malformed);
}

static void
the_encoding_is_one_that_we_know_or_not(void)
{
    struct request_header head;
    read_with(&head, "grpc-encoding", "gzip");
    CHECK_NUMBER(head.encoding, ENCODING_GZIP);
    read_with(&head, "grpc-encoding", "identity");
    CHECK_NUMBER(head.encoding, ENCODING_IDENTITY);
    read_with(&head, "grpc-encoding", "snappy");
    CHECK_NUMBER(head.encoding, ENCODING_UNKNOWN);
}

static void
what_is_no_grpc_gets_an_http_status(void)
{
    struct request_header head;
    read_with(&head, "x", "y");
    head.method = "GET";
    CHECK_NUMBER(request_http_status(&head), 405);
    read_with(&head, "content-type", "application/grpc+proto");
    CHECK_NUMBER(request_http_status(&head), 0);
    read_with(&head, "content-type", "application/grpc-web");
    CHECK_NUMBER(request_http_status(&head), 415);
    read_with(&head, "content-type", "application/json");
    CHECK_NUMBER(request_http_status(&head), 415);
    head.content_type = NULL;
    CHECK_NUMBER(request_http_status(&head), 415);
}

static void
trailers_are_checked_and_not_kept(void)
{
    struct request_header head;
    read_with(&head, "x-key", "value");
    size_t count = head.metadata.count;
    head.in_trailers = true;
    add(&head, "x-trailer", "value");
    request_finish(&head);
    CHECK(!head.malformed);
    CHECK_NUMBER(head.metadata.count, count);
    add(&head, ":path", "/s/m");
    CHECK(head.malformed);
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    a_good_request_is_read();
    any_authority_will_do();
    each_pseudo_field_but_authority_is_needed();
    pseudo_fields_come_once_and_first();
    values_neither_begin_nor_end_with_white_space();
    paths_begin_with_a_slash();
    names_and_values_have_only_the_characters_of_http2();
    fields_of_one_connection_are_refused();
    a_content_length_is_one_number();
    the_timeout_is_read_or_found_bad();
    the_encoding_is_one_that_we_know_or_not();
    what_is_no_grpc_gets_an_http_status();
    trailers_are_checked_and_not_kept();
    arena_clear(&arena);
    return check_report("test_request");
}
