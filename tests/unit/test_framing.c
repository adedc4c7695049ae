/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc/framing.c */
#include "rpc/grpc/framing.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "check.h"
#include "packed.h"
#include "proto/csi.rpc.h"
#include "proto/velero_v1.rpc.h"

#define LIMIT 100000u

static struct pool pool = {.limit = (size_t)1 << 20};
static struct budget budget = {.pool = &pool};

static void
append_message(struct buffer *out, uint8_t flag, const void *bytes, size_t size)
{
    const uint8_t prefix[] = {flag, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
                              (uint8_t)(size >> 8), (uint8_t)size};
    buffer_append(out, prefix, sizeof prefix);
    buffer_append(out, bytes, size);
}

/* Feeds the bytes in pieces; messages are appended to `out` with a '|' behind each. */
static enum code
feed(struct message_reader *reader, const struct buffer *in, size_t piece, struct buffer *out)
{
    for (size_t done = 0; done < in->size;) {
        size_t size = in->size - done < piece ? in->size - done : piece;
        size_t taken;
        struct message *message;
        struct error *error AUTO(error_cleanup) =
            message_reader_feed(reader, in->bytes + done, size, &taken, &message);
        if (error)
            return error->code;
        CHECK(taken > 0 && taken <= size);
        done += taken;
        struct error *inflating AUTO(error_cleanup) =
            message ? message_inflate(&message, &budget, LIMIT) : NULL;
        if (inflating) {
            message_free(message, &budget);
            return inflating->code;
        }
        if (message) {
            buffer_append(out, message->bytes, message->size);
            buffer_append_byte(out, '|');
        }
        message_free(message, &budget);
    }
    return CODE_OK;
}

/* One reader for the bytes, fed at once. */
static enum code
feed_anew(const struct buffer *in, enum message_encoding encoding, struct buffer *out)
{
    struct message_reader reader;
    message_reader_init(&reader, &budget, LIMIT);
    reader.encoding = encoding;
    enum code code = feed(&reader, in, SIZE_MAX, out);
    message_reader_clear(&reader);
    CHECK_NUMBER(budget.used, 0);
    return code;
}

static bool
is_finished(const struct message_reader *reader)
{
    struct error *error AUTO(error_cleanup) = message_reader_finish(reader);
    CHECK(!error || error->code == CODE_INTERNAL);
    return !error;
}

static void
messages_come_out_whole_however_the_bytes_are_cut(void)
{
    struct buffer in AUTO(buffer_clear) = {0};
    append_message(&in, 0, "first", 5);
    append_message(&in, 0, "", 0);
    append_message(&in, 0, "third message", 13);
    for (size_t piece = 1; piece <= in.size; piece++) {
        struct buffer out AUTO(buffer_clear) = {0};
        struct message_reader reader;
        message_reader_init(&reader, &budget, LIMIT);
        CHECK_NUMBER(feed(&reader, &in, piece, &out), CODE_OK);
        CHECK_TEXT(buffer_text(&out), "first||third message|");
        CHECK(is_finished(&reader));
        CHECK_NUMBER(message_reader_pending(&reader), 0);
        message_reader_clear(&reader);
    }
    CHECK_NUMBER(budget.used, 0);
}

static void
a_large_message_grows_with_the_bytes_that_come(void)
{
    static uint8_t bytes[LIMIT];
    struct buffer in AUTO(buffer_clear) = {0};
    struct buffer out AUTO(buffer_clear) = {0};
    memset(bytes, 'm', sizeof bytes);
    append_message(&in, 0, bytes, sizeof bytes);
    struct message_reader reader;
    message_reader_init(&reader, &budget, LIMIT);
    struct buffer head = {.bytes = in.bytes, .size = 20};
    CHECK_NUMBER(feed(&reader, &head, 7, &out), CODE_OK);
    CHECK_NUMBER(message_reader_pending(&reader), 20);
    /* The length that the peer promised has not been believed. */
    CHECK(budget.used < 20000);
    struct buffer tail = {.bytes = in.bytes + 20, .size = in.size - 20};
    CHECK_NUMBER(feed(&reader, &tail, 1000, &out), CODE_OK);
    CHECK_NUMBER(out.size, sizeof bytes + 1);
    CHECK(memcmp(out.bytes, bytes, sizeof bytes) == 0);
    message_reader_clear(&reader);
    CHECK_NUMBER(budget.used, 0);
}

static void
a_message_over_the_limit_is_refused_by_its_length_alone(void)
{
    static const uint8_t over[] = {0, 0, 1, 0x86, 0xa1}, huge[] = {0, 0xff, 0xff, 0xff, 0xff};
    struct buffer in = {.bytes = (uint8_t *)over, .size = sizeof over}, out = {0};
    CHECK_NUMBER(feed_anew(&in, ENCODING_IDENTITY, &out), CODE_RESOURCE_EXHAUSTED);
    in.bytes = (uint8_t *)huge;
    CHECK_NUMBER(feed_anew(&in, ENCODING_IDENTITY, &out), CODE_RESOURCE_EXHAUSTED);
}

static void
the_end_in_the_middle_of_a_message_is_an_error(void)
{
    struct buffer in AUTO(buffer_clear) = {0};
    append_message(&in, 0, "abc", 3);
    for (size_t size = 0; size <= in.size; size++) {
        struct buffer part = {.bytes = in.bytes, .size = size};
        struct buffer out AUTO(buffer_clear) = {0};
        struct message_reader reader;
        message_reader_init(&reader, &budget, LIMIT);
        CHECK_NUMBER(feed(&reader, &part, 1, &out), CODE_OK);
        CHECK_NUMBER(is_finished(&reader), size == 0 || size == in.size);
        message_reader_clear(&reader);
    }
    CHECK_NUMBER(budget.used, 0);
}

static void
flags_other_than_compressed_are_refused(void)
{
    for (unsigned flag = 2; flag < 256; flag++) {
        struct buffer in AUTO(buffer_clear) = {0};
        struct buffer out AUTO(buffer_clear) = {0};
        append_message(&in, (uint8_t)flag, "abc", 3);
        CHECK_NUMBER(feed_anew(&in, ENCODING_GZIP, &out), CODE_INTERNAL);
    }
}

static void
a_compressed_message_is_inflated_if_the_encoding_was_named(void)
{
    struct buffer packed AUTO(buffer_clear) = {0};
    struct buffer in AUTO(buffer_clear) = {0};
    struct buffer out AUTO(buffer_clear) = {0};
    packed_append(&packed, "plain", 5, PACKED_GZIP);
    append_message(&in, 1, packed.bytes, packed.size);
    append_message(&in, 0, "as it is", 8);
    CHECK_NUMBER(feed_anew(&in, ENCODING_GZIP, &out), CODE_OK);
    CHECK_TEXT(buffer_text(&out), "plain|as it is|");
    CHECK_NUMBER(feed_anew(&in, ENCODING_IDENTITY, &out), CODE_INTERNAL);
    CHECK_NUMBER(feed_anew(&in, ENCODING_UNKNOWN, &out), CODE_UNIMPLEMENTED);
}

static void
bombs_and_broken_gzip_are_refused(void)
{
    static const uint8_t zeros[LIMIT + 1];
    struct buffer packed AUTO(buffer_clear) = {0};
    struct buffer bomb AUTO(buffer_clear) = {0};
    struct buffer broken AUTO(buffer_clear) = {0};
    struct buffer out AUTO(buffer_clear) = {0};
    packed_append(&packed, zeros, sizeof zeros, PACKED_GZIP);
    append_message(&bomb, 1, packed.bytes, packed.size);
    CHECK_NUMBER(feed_anew(&bomb, ENCODING_GZIP, &out), CODE_RESOURCE_EXHAUSTED);
    packed.size = 0;
    packed_append(&packed, "small", 5, PACKED_GZIP);
    append_message(&broken, 1, packed.bytes, packed.size - 1);
    CHECK_NUMBER(feed_anew(&broken, ENCODING_GZIP, &out), CODE_INTERNAL);
    CHECK_NUMBER(out.size, 0);
}

static void
too_much_in_memory_is_refused_until_some_of_it_goes(void)
{
    static const uint8_t bytes[60000];
    struct pool small_pool = {.limit = LIMIT};
    struct budget small = {.pool = &small_pool, .has_no_share = true};
    struct message_reader reader;
    struct buffer in AUTO(buffer_clear) = {0};
    append_message(&in, 0, bytes, sizeof bytes);
    size_t taken;
    struct message *first, *second;
    message_reader_init(&reader, &small, LIMIT);
    CHECK(!message_reader_feed(&reader, in.bytes, in.size, &taken, &first) && first);
    CHECK(small.used >= sizeof bytes);
    struct error *error AUTO(error_cleanup) =
        message_reader_feed(&reader, in.bytes, in.size, &taken, &second);
    CHECK(error && error->code == CODE_RESOURCE_EXHAUSTED);
    message_reader_clear(&reader);
    message_free(first, &small);
    CHECK_NUMBER(small.used, 0);
    message_reader_init(&reader, &small, LIMIT);
    CHECK(!message_reader_feed(&reader, in.bytes, in.size, &taken, &second) && second);
    message_free(second, &small);
    CHECK_NUMBER(small.used, 0);
}

/* What it may become is charged before it is inflated: nothing is done for a client that holds too much. */
static void
a_compressed_message_is_charged_before_it_is_inflated(void)
{
    static const uint8_t zeros[LIMIT];
    struct pool whole = {.limit = 3 * LIMIT};
    struct budget own = {.pool = &whole};
    struct buffer packed AUTO(buffer_clear) = {0};
    packed_append(&packed, zeros, sizeof zeros, PACKED_GZIP);
    struct message *message = memory_zeroed(sizeof *message + packed.size);
    message->is_compressed = true;
    message->size = packed.size;
    memcpy(message->bytes, packed.bytes, packed.size);
    CHECK(budget_take(&own, LIMIT));
    struct error *error AUTO(error_cleanup) = message_inflate(&message, &own, LIMIT);
    CHECK(error && error->code == CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(message->size, packed.size);
    CHECK_NUMBER(own.used, LIMIT);
    budget_give_back(&own, LIMIT);
    CHECK(!message_inflate(&message, &own, LIMIT));
    CHECK_NUMBER(message->size, sizeof zeros);
    CHECK_NUMBER(own.used, message->charged);
    message_free(message, &own);
    CHECK_NUMBER(own.used, 0);
}

/* ---- protobuf ---- */

static struct message *
message_of(const void *bytes, size_t size)
{
    struct message *message = memory_zeroed(sizeof *message + size);
    message->size = size;
    if (size)
        memcpy(message->bytes, bytes, size);
    return message;
}

static enum code
unpack(const void *bytes, size_t size, size_t arena_limit)
{
    struct arena arena AUTO(arena_clear);
    struct message *message AUTO(memory_cleanup) = message_of(bytes, size);
    ProtobufCMessage *decoded;
    arena_init(&arena, NULL, 0, arena_limit);
    struct error *error AUTO(error_cleanup) = framing_unpack(
        &csi__v1__create_volume_request__descriptor, message, &arena, NULL, &decoded);
    return error ? error->code : CODE_OK;
}

/* 20,000 empty entries of a map, two bytes each on the wire. */
static void
decoded_bytes_are_charged_as_they_come(void)
{
    enum { COUNT = 20000 };
    uint8_t *bytes AUTO(memory_cleanup) = memory_new(2 * COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        bytes[2 * i] = 0x22;
        bytes[2 * i + 1] = 0;
    }
    struct message *message AUTO(memory_cleanup) = message_of(bytes, 2 * COUNT);
    for (size_t limit = 64u << 10; limit <= 16u << 20; limit *= 16) {
        struct pool whole = {.limit = limit};
        struct charge charge = {.budget = &(struct budget){.pool = &whole},
                                .free = ADMISSION_CALL_BYTES};
        struct arena arena AUTO(arena_clear);
        ProtobufCMessage *decoded;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        struct error *error AUTO(error_cleanup) = framing_unpack(
            &csi__v1__create_volume_request__descriptor, message, &arena, &charge, &decoded);
        CHECK(limit == 16u << 20 ? !error : error && error->code == CODE_RESOURCE_EXHAUSTED);
        CHECK(arena.used <= charge.size + ADMISSION_CALL_BYTES);
        CHECK_NUMBER(charge.budget->used, charge.size);
        charge_clear(&charge);
        CHECK_NUMBER(whole.used, 0);
    }
}

static void
what_is_packed_unpacks_to_the_same(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, LIMIT);
    Csi__V1__CreateVolumeRequest request = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
    request.name = (char *)"volume \xc3\xa9";
    struct chunk *chunk;
    CHECK(!framing_pack(&request.base, &chunk));
    CHECK_NUMBER(chunk->bytes[0], 0);
    CHECK_NUMBER(chunk->bytes[4], chunk->size - FRAMING_PREFIX_BYTES);
    struct message *message AUTO(memory_cleanup) =
        message_of(chunk->bytes + FRAMING_PREFIX_BYTES, chunk->size - FRAMING_PREFIX_BYTES);
    chunk_release(chunk);
    ProtobufCMessage *decoded;
    CHECK(!framing_unpack(&csi__v1__create_volume_request__descriptor, message, &arena, NULL,
                          &decoded));
    CHECK_TEXT(((Csi__V1__CreateVolumeRequest *)decoded)->name, "volume \xc3\xa9");
}

static void
strings_must_be_utf8_at_any_depth(void)
{
    CHECK_NUMBER(unpack("\x0a\x02\xc3\xa9", 4, LIMIT), CODE_OK);
    CHECK_NUMBER(unpack("\x0a\x02\xc3\x28", 4, LIMIT), CODE_INTERNAL);
    /* parameters { key: "k" value: <not UTF-8> } */
    CHECK_NUMBER(unpack("\x22\x06\x0a\x01k\x12\x01v", 8, LIMIT), CODE_OK);
    CHECK_NUMBER(unpack("\x22\x06\x0a\x01k\x12\x01\xff", 8, LIMIT), CODE_INTERNAL);
    /* volume_content_source { snapshot { snapshot_id: <not UTF-8> } }, a member of a oneof */
    CHECK_NUMBER(unpack("\x32\x05\x0a\x03\x0a\x01s", 7, LIMIT), CODE_OK);
    CHECK_NUMBER(unpack("\x32\x05\x0a\x03\x0a\x01\xff", 7, LIMIT), CODE_INTERNAL);
}

/* C ends a string there: "a\0b" must not become the volume "a". */
static void
strings_with_a_nul_are_refused_at_any_depth(void)
{
    CHECK_NUMBER(unpack("\x0a\x03"
                        "a\0b",
                        5, LIMIT),
                 CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(unpack("\x0a\x01\0", 3, LIMIT), CODE_INVALID_ARGUMENT);
    /* name: "n", then again with a NUL: the last one counts */
    CHECK_NUMBER(unpack("\x0a\x01n\x0a\x01\0", 6, LIMIT), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(unpack("\x22\x07\x0a\x02k\0\x12\x01v", 9, LIMIT), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(unpack("\x22\x07\x0a\x01k\x12\x02v\0", 9, LIMIT), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(unpack("\x32\x06\x0a\x04\x0a\x02s\0", 8, LIMIT), CODE_INVALID_ARGUMENT);
    /* Not in strings: an empty message, capacity_range { limit_bytes: 0 }, an unknown field. */
    CHECK_NUMBER(unpack("\x22\x00", 2, LIMIT), CODE_OK);
    CHECK_NUMBER(unpack("\x12\x02\x10\x00", 4, LIMIT), CODE_OK);
    CHECK_NUMBER(unpack("\xca\x3e\x02\0\0", 5, LIMIT), CODE_OK);
}

static void
bytes_that_are_no_message_are_refused(void)
{
    CHECK_NUMBER(unpack("", 0, LIMIT), CODE_OK);
    CHECK_NUMBER(unpack("\x0a\x05zz", 4, LIMIT), CODE_INTERNAL);
    CHECK_NUMBER(unpack("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, LIMIT), CODE_INTERNAL);
}

/* Two bytes each on the wire, an entry with two texts in memory. */
static void
a_message_that_needs_too_much_memory_is_told_apart_from_a_broken_one(void)
{
    struct buffer entries AUTO(buffer_clear) = {0};
    for (int i = 0; i < 20000; i++)
        buffer_append(&entries, "\x22\x00", 2);
    CHECK_NUMBER(unpack(entries.bytes, entries.size, (size_t)64 << 20), CODE_OK);
    CHECK_NUMBER(unpack(entries.bytes, entries.size, LIMIT), CODE_RESOURCE_EXHAUSTED);
}

int
main(void)
{
    messages_come_out_whole_however_the_bytes_are_cut();
    a_large_message_grows_with_the_bytes_that_come();
    a_message_over_the_limit_is_refused_by_its_length_alone();
    the_end_in_the_middle_of_a_message_is_an_error();
    flags_other_than_compressed_are_refused();
    a_compressed_message_is_inflated_if_the_encoding_was_named();
    bombs_and_broken_gzip_are_refused();
    too_much_in_memory_is_refused_until_some_of_it_goes();
    a_compressed_message_is_charged_before_it_is_inflated();
    decoded_bytes_are_charged_as_they_come();
    what_is_packed_unpacks_to_the_same();
    strings_must_be_utf8_at_any_depth();
    strings_with_a_nul_are_refused_at_any_depth();
    bytes_that_are_no_message_are_refused();
    a_message_that_needs_too_much_memory_is_told_apart_from_a_broken_one();
    return check_report("test_framing");
}
