/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/http2/chunk.c; what is not released, the leak checker tells */
#include "rpc/http2/chunk.h"

#include "check.h"
#include "rpc/loop/blocks.h"

static struct chunk *
chunk_of(const char *text)
{
    struct chunk *chunk = chunk_new(strlen(text));
    memcpy(chunk->bytes, text, chunk->size);
    return chunk;
}

/* Takes up to `room` bytes off the queue, as one who writes them does. */
static void
check_next(struct chunk_queue *queue, size_t room, const char *expected)
{
    const uint8_t *bytes;
    struct chunk *chunk;
    char text[64];
    size_t size = chunk_queue_peek(queue, room, &bytes, &chunk);
    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)bytes);
    CHECK_TEXT(text, expected);
    CHECK(chunk == queue->first);
    chunk_queue_advance(queue, size);
}

static void
bytes_come_out_in_the_order_in_which_they_went_in(void)
{
    struct chunk_queue queue = {0};
    chunk_queue_push(&queue, chunk_of("abc"));
    chunk_queue_push(&queue, chunk_of("defgh"));
    CHECK_NUMBER(queue.size, 8);
    check_next(&queue, 2, "ab");
    check_next(&queue, 100, "c");
    check_next(&queue, 4, "defg");
    CHECK_NUMBER(queue.size, 1);
    chunk_queue_push(&queue, chunk_of("i"));
    check_next(&queue, 9, "h");
    check_next(&queue, 9, "i");
    CHECK(!queue.first && !queue.last && !queue.size && !queue.sent_of_first);
}

static void
one_advance_may_pass_several_chunks(void)
{
    struct chunk_queue queue = {0};
    chunk_queue_push(&queue, chunk_of("ab"));
    chunk_queue_push(&queue, chunk_of("cd"));
    chunk_queue_push(&queue, chunk_of("ef"));
    chunk_queue_advance(&queue, 5);
    CHECK_NUMBER(queue.size, 1);
    check_next(&queue, 9, "f");
}

static void
an_empty_chunk_is_not_kept(void)
{
    struct chunk_queue queue = {0};
    chunk_queue_push(&queue, chunk_new(0));
    CHECK(!queue.first && !queue.size);
}

static void
a_chunk_lives_as_long_as_somebody_holds_it(void)
{
    struct chunk_queue queue = {0};
    struct chunk *chunk = chunk_of("held");
    chunk->references++;
    chunk_queue_push(&queue, chunk);
    chunk_queue_advance(&queue, 4);
    CHECK_NUMBER(chunk->references, 1);
    CHECK(memcmp(chunk->bytes, "held", 4) == 0);
    chunk_release(chunk);
    chunk_release(NULL);
}

static void
a_queue_is_cleared_from_any_state(void)
{
    struct chunk_queue queue = {0};
    chunk_queue_clear(&queue);
    chunk_queue_push(&queue, chunk_of("abc"));
    chunk_queue_push(&queue, chunk_of("def"));
    chunk_queue_advance(&queue, 2);
    chunk_queue_clear(&queue);
    CHECK(!queue.first && !queue.last && !queue.size && !queue.sent_of_first);
    chunk_queue_push(&queue, chunk_of("again"));
    check_next(&queue, 9, "again");
}

static void
a_chunk_of_blocks_goes_back_there(void)
{
    struct blocks blocks = {0};
    struct chunk_queue queue = {0};
    for (int i = 0; i < 3; i++) {
        struct chunk *chunk = chunk_new_in(&blocks, 5);
        memcpy(chunk->bytes, "small", 5);
        chunk_queue_push(&queue, chunk);
        chunk_queue_push(&queue, chunk_new_in(&blocks, 100000));
        check_next(&queue, 9, "small");
        chunk_queue_clear(&queue);
    }
    blocks_clear(&blocks);
    CHECK_NUMBER(blocks.kept_bytes, 0);
}

static size_t
count_chunks(const struct chunk_queue *queue)
{
    size_t count = 0;
    for (const struct chunk *chunk = queue->first; chunk; chunk = chunk->next)
        count++;
    return count;
}

static void
small_runs_share_chunks(void)
{
    struct blocks blocks = {0};
    struct chunk_queue queue = {0};
    for (int i = 0; i < 10000; i++)
        chunk_queue_append(&queue, &blocks, (const uint8_t *)"abcdefghij" + i % 10, 1);
    CHECK_NUMBER(queue.size, 10000);
    CHECK_NUMBER(count_chunks(&queue), 6);
    check_next(&queue, 1, "a");
    check_next(&queue, 12, "bcdefghijabc");
    chunk_queue_advance(&queue, 9982);
    chunk_queue_append(&queue, &blocks, (const uint8_t *)"xyz", 3);
    check_next(&queue, 20, "fghijxyz");
    CHECK(!queue.first && !queue.last && !queue.size && !queue.sent_of_first);
    chunk_queue_append(&queue, &blocks, (const uint8_t *)"end", 3);
    check_next(&queue, 20, "end");
    blocks_clear(&blocks);
}

int
main(void)
{
    bytes_come_out_in_the_order_in_which_they_went_in();
    one_advance_may_pass_several_chunks();
    an_empty_chunk_is_not_kept();
    a_chunk_lives_as_long_as_somebody_holds_it();
    a_queue_is_cleared_from_any_state();
    a_chunk_of_blocks_goes_back_there();
    small_runs_share_chunks();
    return check_report("test_chunk");
}
