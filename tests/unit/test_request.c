/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc/request.c: what HTTP/2 and gRPC demand of a request's header fields */
#include "rpc/grpc/request.h"

#include "check.h"

struct sample {
    const char *name, *value;
};

static struct arena arena;

static void
add(struct request_header *header, const char *name, const char *value)
{
    struct field field = {name, strlen(name), value, strlen(value)};
    request_read_fields(header, &arena, &field, 1);
}

static void
add_all(struct request_header *header, const struct sample *fields)
{
    for (; fields->name; fields++)
        add(header, fields->name, fields->value);
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

/* A good header with one more field. */
static void
read_with(struct request_header *header, const char *name, const char *value)
{
    request_init(header);
    add_all(header, good);
    add(header, name, value);
    request_finish(header);
}

static void
check_malformed(const char *name, const char *value, bool expected)
{
    struct request_header header;
    read_with(&header, name, value);
    if ((header.malformed != NULL) != expected)
        fprintf(stderr, "with %s: %s\n", name, value);
    CHECK_NUMBER(header.malformed != NULL, expected);
}

static void
a_good_request_is_read(void)
{
    struct request_header header;
    read_with(&header, "x-key", "value");
    CHECK(!header.malformed);
    CHECK_TEXT(header.method, "POST");
    CHECK_TEXT(header.path, "/csi.v1.Identity/Probe");
    CHECK_TEXT(header.scheme, "http");
    CHECK_TEXT(header.authority, "localhost");
    CHECK_NUMBER(header.content_length, -1);
    CHECK_NUMBER(header.encoding, ENCODING_IDENTITY);
    CHECK(!header.has_timeout);
    CHECK_NUMBER(request_http_status(&header), 0);
    CHECK_TEXT(metadata_find(&header.metadata, "x-key"), "value");
    CHECK_NUMBER(header.metadata.count, 3);
}

/* Clients write all sorts of things there for a unix socket. */
static void
any_authority_will_do(void)
{
    static const char *const authorities[] = {"", "/run/csi.sock", "unix:///run/csi.sock",
                                              "%2Frun%2Fcsi.sock", "localhost:0"};
    for (size_t i = 0; i < COUNT_OF(authorities); i++) {
        struct request_header header;
        request_init(&header);
        add(&header, ":authority", authorities[i]);
        add_all(&header,
                (const struct sample[]){
                    {":method", "POST"}, {":scheme", "http"}, {":path", "/s/m"}, {NULL, NULL}});
        request_finish(&header);
        CHECK(!header.malformed);
        CHECK_TEXT(header.authority, authorities[i]);
    }
}

static void
each_pseudo_field_but_authority_is_needed(void)
{
    for (size_t missing = 0; missing < 4; missing++) {
        struct request_header header;
        request_init(&header);
        for (size_t i = 0; good[i].name; i++)
            if (i != missing)
                add(&header, good[i].name, good[i].value);
        request_finish(&header);
        CHECK_NUMBER(header.malformed != NULL, missing != 3);
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
    struct request_header header;
    request_init(&header);
    add_all(&header, (const struct sample[]){{":method", "POST"},
                                             {":method", "POST"},
                                             {":scheme", "http"},
                                             {":path", "/s/m"},
                                             {NULL, NULL}});
    request_finish(&header);
    CHECK(header.malformed);
}

static void
paths_begin_with_a_slash(void)
{
    static const struct {
        const char *path;
        bool is_malformed;
    } paths[] = {{"/", false}, {"*", false}, {"", true}, {"csi.v1.Identity/Probe", true}};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct request_header header;
        request_init(&header);
        add_all(&header, (const struct sample[]){{":method", "POST"},
                                                 {":scheme", "http"},
                                                 {":path", paths[i].path},
                                                 {NULL, NULL}});
        request_finish(&header);
        CHECK_NUMBER(header.malformed != NULL, paths[i].is_malformed);
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
    struct request_header header;
    request_init(&header);
    add_all(&header, good);
    request_read_fields(&header, &arena, &(struct field){"x-key", 5, "a\0b", 3}, 1);
    CHECK(header.malformed);
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
    struct request_header header;
    read_with(&header, "content-length", "123456789012345678");
    CHECK(!header.malformed);
    CHECK_NUMBER(header.content_length, 123456789012345678);
    add(&header, "content-length", "123456789012345678");
    CHECK(header.malformed);
    check_malformed("content-length", "0", false);
    check_malformed("content-length", "", true);
    check_malformed("content-length", "-1", true);
    check_malformed("content-length", "1x", true);
    check_malformed("content-length", "9999999999999999999", true);
}

static void
the_timeout_is_read_or_found_bad(void)
{
    struct request_header header;
    read_with(&header, "grpc-timeout", "250m");
    CHECK(header.has_timeout && !header.bad_timeout);
    CHECK_NUMBER(header.timeout_ns, 250000000);
    read_with(&header, "grpc-timeout", "250");
    CHECK(header.has_timeout && header.bad_timeout && !header.malformed);
}

static void
the_encoding_is_one_that_we_know_or_not(void)
{
    struct request_header header;
    read_with(&header, "grpc-encoding", "gzip");
    CHECK_NUMBER(header.encoding, ENCODING_GZIP);
    read_with(&header, "grpc-encoding", "identity");
    CHECK_NUMBER(header.encoding, ENCODING_IDENTITY);
    read_with(&header, "grpc-encoding", "snappy");
    CHECK_NUMBER(header.encoding, ENCODING_UNKNOWN);
}

static void
what_is_no_grpc_gets_an_http_status(void)
{
    struct request_header header;
    read_with(&header, "x", "y");
    header.method = "GET";
    CHECK_NUMBER(request_http_status(&header), 405);
    read_with(&header, "content-type", "application/grpc+proto");
    CHECK_NUMBER(request_http_status(&header), 0);
    read_with(&header, "content-type", "application/grpc-web");
    CHECK_NUMBER(request_http_status(&header), 415);
    read_with(&header, "content-type", "application/json");
    CHECK_NUMBER(request_http_status(&header), 415);
    header.content_type = NULL;
    CHECK_NUMBER(request_http_status(&header), 415);
}

static void
trailers_are_checked_and_not_kept(void)
{
    struct request_header header;
    read_with(&header, "x-key", "value");
    size_t count = header.metadata.count;
    header.in_trailers = true;
    add(&header, "x-trailer", "value");
    request_finish(&header);
    CHECK(!header.malformed);
    CHECK_NUMBER(header.metadata.count, count);
    add(&header, ":path", "/s/m");
    CHECK(header.malformed);
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
