/* SPDX-License-Identifier: Apache-2.0 */
/* src/message/message_json_parse.c: what is wrong is told with its place, and nothing is too deep, too large or more than there is memory for. */
#include "json_checks.h"

static void
errors_name_the_place(void)
{
    check_refused(CREATE, "{\"volumeCapabilities\":[{\"mount\":{\"fsType\":4}}]}",
                  "volumeCapabilities[0].mount.fsType: expected a string");
    check_refused(CREATE, "{\"volumeCapabilities\":[{},{\"mount\":{\"fs\":4}}]}",
                  "volumeCapabilities[1].mount: csi.v1.VolumeCapability.MountVolume has no field "
                  "\"fs\"");
    check_refused(CREATE, "{\"secrets\":{\"a\\nb\":1}}", "secrets[\"a\\nb\"]: expected a string");
    check_refused(&sample_type,
                  "{\"byNumber\":{\"1\":{\"children\":[{},{\"byName\":{\"x\":{}}}]}}}",
                  "byNumber[\"1\"].children[1].byName[\"x\"]: expected an integer");
    check_refused(CREATE, "[]", "expected an object");
    check_refused(CREATE, "5", "expected an object");
    check_refused(CREATE, "null", "expected an object");
    check_refused(CREATE, "{\"volumeCapabilities\":{}}", "volumeCapabilities: expected a list");
    check_refused(&sample_type, "{\"children\":[5]}", "children[0]: expected an object");
}

static void
long_names_are_cut_in_errors(void)
{
    check_refused(CREATE,
                  "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9"
                  "bbbbbbbb\":1}",
                  "csi.v1.CreateVolumeRequest has no field "
                  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"");
}

static void
broken_json_is_located_but_not_quoted(void)
{
    check_refused(CREATE, "", "not valid JSON, line 1 column 0: unexpected token near end of file");
    check_refused(CREATE, "{\"secrets\":{\"password\":hunter2}}",
                  "not valid JSON, line 1 column 29: invalid token");
    check_refused(CREATE, "{} {}", "not valid JSON, line 1 column 4: end of file expected");
}

static void
nesting_has_a_limit(void)
{
    for (size_t depth = MESSAGE_JSON_MAX_DEPTH - 1; depth <= MESSAGE_JSON_MAX_DEPTH + 1; depth++) {
        struct buffer text AUTO(buffer_clear) = {0};
        for (size_t i = 0; i < depth; i++)
            buffer_append_text(&text, "{\"children\":[");
        buffer_append_text(&text, "{}");
        for (size_t i = 0; i < depth; i++)
            buffer_append_text(&text, "]}");
        if (depth <= MESSAGE_JSON_MAX_DEPTH)
            check_sample(buffer_text(&text), NULL);
        else
            check_refused(&sample_type, buffer_text(&text),
                          "nested too deeply, at most 64 messages");
    }
}

static void
size_has_a_limit(void)
{
    char *text = malloc(MESSAGE_JSON_MAX_SIZE + 1);
    memset(text, ' ', MESSAGE_JSON_MAX_SIZE + 1);
    memcpy(text, "{}", 2);
    ProtobufCMessage *message;
    struct error *error AUTO(error_cleanup) =
        message_json_parse(text, MESSAGE_JSON_MAX_SIZE + 1, CREATE, NULL, &message);
    CHECK(error && error->code == CODE_RESOURCE_EXHAUSTED);
    CHECK_TEXT(error ? error->message : NULL, "the JSON is larger than 16777216 bytes");
    struct error *none AUTO(error_cleanup) =
        message_json_parse(text, MESSAGE_JSON_MAX_SIZE, CREATE, NULL, &message);
    CHECK(!none);
    protobuf_c_message_free_unpacked(message, NULL);
    free(text);
}

static const char everything_text[] =
    "{\"text\":\"t\",\"data\":\"AAEC\",\"chosenSample\":{\"chosenText\":\"c\"},"
    "\"numbers\":[\"1\"],\"texts\":[\"a\",\"b\"],\"blobs\":[\"AA==\",\"AQ==\"],"
    "\"children\":[{\"chosenData\":\"AA==\"}],\"colours\":[\"RED\"],\"byName\":{\"a\":1},"
    "\"byNumber\":{\"1\":{\"text\":\"x\"}},\"byFlag\":{\"true\":\"y\"},\"duration\":\"1s\","
    "\"wrapped\":\"5\"}";

/* Fails the first, the second, ... allocation until the message is complete. */
static void
nothing_leaks_when_memory_ends(void)
{
    struct error *error = NULL;
    size_t allowed = 0;
    do {
        struct counted_heap heap = {.left = allowed++};
        ProtobufCAllocator allocator = {counted_alloc, counted_free, &heap};
        ProtobufCMessage *message;
        error_free(error);
        error = message_json_parse(everything_text, strlen(everything_text), &sample_type,
                                   &allocator, &message);
        CHECK(!error || error->code == CODE_RESOURCE_EXHAUSTED);
        CHECK(!error == !!message);
        if (message)
            check_print(message, 0, everything_text);
        protobuf_c_message_free_unpacked(message, &allocator);
        CHECK_NUMBER(heap.blocks, 0);
    } while (error && allowed < 1000);
    CHECK(!error);
    CHECK_NUMBER(allowed - 1, 28); /* blocks of the message above, counted by hand */
}

static void *
arena_alloc_for_protobuf(void *arena, size_t size)
{
    return arena_try(arena, size);
}

static void
arena_free_for_protobuf(void *arena, void *block)
{
    (void)arena;
    (void)block;
}

static void
an_arena_with_a_limit_stops_a_large_message(void)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 4096);
    ProtobufCAllocator allocator = {arena_alloc_for_protobuf, arena_free_for_protobuf, &arena};
    struct buffer text AUTO(buffer_clear) = {0};
    buffer_append_text(&text, "{\"children\":[{}");
    for (size_t i = 0; i < 100; i++)
        buffer_append_text(&text, ",{}");
    buffer_append_text(&text, "]}");
    ProtobufCMessage *message;
    struct error *error AUTO(error_cleanup) =
        message_json_parse(buffer_text(&text), text.size, &sample_type, &allocator, &message);
    CHECK(error && error->code == CODE_RESOURCE_EXHAUSTED);
    CHECK_TEXT(error ? error->message : NULL, "the message exceeds its memory limit");
    arena_clear(&arena);
}

int
main(void)
{
    errors_name_the_place();
    long_names_are_cut_in_errors();
    broken_json_is_located_but_not_quoted();
    nesting_has_a_limit();
    size_has_a_limit();
    nothing_leaks_when_memory_ends();
    an_arena_with_a_limit_stops_a_large_message();
    return check_report("message_json_limits");
}
