/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc/response.c: the gRPC status that an answer amounts to */
#include "rpc/grpc/response.h"

#include <nghttp2/nghttp2.h>

#include "check.h"

static struct arena arena;

static void
add(struct response *response, const char *name, const char *value)
{
    struct field field = {name, strlen(name), value, strlen(value)};
    response_add_field(response, &arena, &field);
}

static void
begin_grpc(struct response *response)
{
    *response = (struct response){0};
    add(response, ":status", "200");
    add(response, "content-type", "application/grpc");
}

/* Clears the response. */
static enum code
status_code(struct response *response, uint32_t http2_error, const char *why)
{
    struct error *error AUTO(error_cleanup) = response_status(response, http2_error, why);
    response_clear(response);
    return error ? error->code : CODE_OK;
}

static void
the_trailers_tell_the_status(void)
{
    struct response response;
    begin_grpc(&response);
    add(&response, "x-head", "h");
    CHECK(response_end_block(&response, &arena));
    add(&response, "grpc-status", "5");
    add(&response, "grpc-message", "no volume %22v1%22");
    add(&response, "x-trailer", "t");
    CHECK(response_end_block(&response, &arena));
    struct error *error AUTO(error_cleanup) = response_status(&response, 0, NULL);
    CHECK_NUMBER(error->code, CODE_NOT_FOUND);
    CHECK_TEXT(error->message, "no volume \"v1\"");
    CHECK_TEXT(metadata_find(&response.headers, "x-head"), "h");
    CHECK_TEXT(metadata_find(&response.trailers, "x-trailer"), "t");
    CHECK_TEXT(metadata_find(&response.headers, "x-trailer"), NULL);
    /* gRPC's own fields are no metadata. */
    CHECK_NUMBER(response.headers.count, 1);
    CHECK_NUMBER(response.trailers.count, 1);
    response_clear(&response);
}

static void
one_block_may_be_all_of_the_answer(void)
{
    struct response response;
    begin_grpc(&response);
    add(&response, "grpc-status", "16");
    CHECK(response_end_block(&response, &arena));
    CHECK_NUMBER(status_code(&response, 0, NULL), CODE_UNAUTHENTICATED);
}

static void
status_0_is_success_whatever_the_message_says(void)
{
    struct response response;
    begin_grpc(&response);
    add(&response, "grpc-status", "0");
    add(&response, "grpc-message", "fine");
    CHECK_NUMBER(status_code(&response, 0, NULL), CODE_OK);
}

static void
numbers_that_are_no_status_are_unknown(void)
{
    static const char *const values[] = {"17", "99999999999999999999", "-1", "", "x", "0x1"};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct response response;
        begin_grpc(&response);
        add(&response, "grpc-status", values[i]);
        CHECK_NUMBER(status_code(&response, 0, NULL), CODE_UNKNOWN);
    }
}

static void
a_status_that_is_none_is_told(void)
{
    static const char *const statuses[] = {"17", "-1", "", "99999999999", "OK"};
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        struct response response;
        begin_grpc(&response);
        add(&response, "grpc-status", statuses[i]);
        CHECK(response_end_block(&response, &arena));
        struct error *error AUTO(error_cleanup) = response_status(&response, 0, NULL);
        CHECK_TEXT(error->message, "the server sent an invalid grpc-status");
        response_clear(&response);
    }
}

static void
details_are_decoded_or_left_out(void)
{
    struct response response;
    begin_grpc(&response);
    add(&response, "grpc-status", "9");
    add(&response, "grpc-status-details-bin", "CAk");
    struct error *error = response_status(&response, 0, NULL);
    CHECK(error->details_size == 2 && memcmp(error->details, "\x08\x09", 2) == 0);
    error_free(error);
    add(&response, "grpc-status-details-bin", "!!");
    error = response_status(&response, 0, NULL);
    CHECK(!error->details && error->code == CODE_FAILED_PRECONDITION);
    error_free(error);
    response_clear(&response);
}

static void
an_http_status_stands_for_a_missing_grpc_status(void)
{
    static const struct {
        const char *status;
        enum code code;
    } expected[] = {
        {"400", CODE_INTERNAL},      {"401", CODE_UNAUTHENTICATED}, {"403", CODE_PERMISSION_DENIED},
        {"404", CODE_UNIMPLEMENTED}, {"429", CODE_UNAVAILABLE},     {"502", CODE_UNAVAILABLE},
        {"503", CODE_UNAVAILABLE},   {"504", CODE_UNAVAILABLE},     {"500", CODE_UNKNOWN},
        {"204", CODE_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        struct response response = {0};
        add(&response, ":status", expected[i].status);
        CHECK(response_end_block(&response, &arena));
        CHECK_NUMBER(status_code(&response, 0, NULL), expected[i].code);
    }
}

static void
an_answer_that_is_no_grpc_is_unknown(void)
{
    struct response response = {0};
    add(&response, ":status", "200");
    add(&response, "content-type", "text/html");
    CHECK(response_end_block(&response, &arena));
    CHECK_NUMBER(status_code(&response, 0, NULL), CODE_UNKNOWN);
}

static void
an_end_without_status_is_internal(void)
{
    struct response response;
    begin_grpc(&response);
    CHECK(response_end_block(&response, &arena));
    CHECK_NUMBER(status_code(&response, 0, NULL), CODE_INTERNAL);
}

static void
a_reset_stands_for_a_missing_answer_but_not_for_one_that_came(void)
{
    struct response response = {0};
    CHECK_NUMBER(status_code(&response, NGHTTP2_REFUSED_STREAM, "refused"), CODE_UNAVAILABLE);
    CHECK_NUMBER(status_code(&response, NGHTTP2_CANCEL, "cancel"), CODE_CANCELLED);
    CHECK_NUMBER(status_code(&response, NGHTTP2_ENHANCE_YOUR_CALM, "calm"),
                 CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(status_code(&response, NGHTTP2_PROTOCOL_ERROR, "proto"), CODE_INTERNAL);
    begin_grpc(&response);
    add(&response, "grpc-status", "10");
    CHECK_NUMBER(status_code(&response, NGHTTP2_CANCEL, "cancel"), CODE_ABORTED);
}

static void
interim_blocks_are_passed_over(void)
{
    struct response response = {0};
    add(&response, ":status", "103");
    add(&response, "link", "</style.css>");
    add(&response, "grpc-status", "13");
    CHECK(!response_end_block(&response, &arena));
    add(&response, ":status", "200");
    add(&response, "content-type", "application/grpc");
    CHECK(response_end_block(&response, &arena));
    add(&response, "grpc-status", "0");
    CHECK(response_end_block(&response, &arena));
    CHECK_NUMBER(response.headers.count, 0);
    CHECK_NUMBER(status_code(&response, 0, NULL), CODE_OK);
}

static void
binary_metadata_is_decoded_and_broken_ones_do_not_spoil_the_answer(void)
{
    struct response response;
    begin_grpc(&response);
    add(&response, "a-bin", "Zm9v");
    CHECK(response_end_block(&response, &arena));
    add(&response, "b-bin", "not base64!");
    add(&response, "grpc-status", "0");
    CHECK(response_end_block(&response, &arena));
    CHECK_TEXT(metadata_find(&response.headers, "a-bin"), "foo");
    CHECK_TEXT(metadata_find(&response.trailers, "b-bin"), "not base64!");
    CHECK_NUMBER(status_code(&response, 0, NULL), CODE_OK);
}

static void
the_encoding_of_messages_is_known_or_not(void)
{
    struct response response;
    begin_grpc(&response);
    CHECK_NUMBER(response.encoding, ENCODING_IDENTITY);
    add(&response, "grpc-encoding", "gzip");
    CHECK_NUMBER(response.encoding, ENCODING_GZIP);
    add(&response, "grpc-encoding", "zstd");
    CHECK_NUMBER(response.encoding, ENCODING_UNKNOWN);
    add(&response, "grpc-encoding", "identity");
    CHECK_NUMBER(response.encoding, ENCODING_IDENTITY);
    response_clear(&response);
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    the_trailers_tell_the_status();
    one_block_may_be_all_of_the_answer();
    status_0_is_success_whatever_the_message_says();
    numbers_that_are_no_status_are_unknown();
    a_status_that_is_none_is_told();
    details_are_decoded_or_left_out();
    an_http_status_stands_for_a_missing_grpc_status();
    an_answer_that_is_no_grpc_is_unknown();
    an_end_without_status_is_internal();
    a_reset_stands_for_a_missing_answer_but_not_for_one_that_came();
    interim_blocks_are_passed_over();
    binary_metadata_is_decoded_and_broken_ones_do_not_spoil_the_answer();
    the_encoding_of_messages_is_known_or_not();
    arena_clear(&arena);
    return check_report("test_response");
}
