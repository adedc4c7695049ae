/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc/mailbox.c: a thread on one side, the test as the loop on the other */
#include "rpc/grpc/mailbox.h"

#include "base/memory.h"
#include "rpc_ends.h"

#define MANY 20000u

static struct pool pool = {.limit = SIZE_MAX};
static struct budget budget = {.pool = &pool};

static struct message *
message_of(size_t size)
{
    struct message *message = memory_zeroed(sizeof *message + size);
    message->size = size;
    return message;
}

/* A message, and so much of the next that it is worth telling when the first is taken. */
static void
deliver_and_hold(struct mailbox *box)
{
    mailbox_deliver(box, message_of(1));
    mailbox_hold(box, SIZE_MAX, MAILBOX_CREDIT_BYTES);
}

/* Released when it has been seen. */
static bool
put(struct mailbox *box, size_t size, bool *tell)
{
    return mailbox_put(box, chunk_new(size), tell);
}

static void
messages_are_taken_in_order_and_their_bytes_counted(void)
{
    struct mailbox box;
    bool tell;
    mailbox_init(&box);
    for (size_t size = 1; size <= 3; size++)
        mailbox_deliver(&box, message_of(size));
    mailbox_end_in(&box);
    CHECK_NUMBER(mailbox_hold(&box, 100, 2), 6 + 3 * FRAMING_PREFIX_BYTES + 2);
    for (size_t size = 1; size <= 3; size++) {
        struct message *message = mailbox_take(&box, &tell);
        CHECK_NUMBER(message->size, size);
        message_free(message, &budget);
    }
    CHECK_NUMBER(mailbox_hold(&box, 100, 2), 0);
    CHECK(!mailbox_take(&box, &tell));
    CHECK(!mailbox_take(&box, &tell));
    mailbox_clear(&box, &budget);
}

static void
the_loop_is_told_once_until_it_has_heard(void)
{
    struct mailbox box;
    bool tell;
    mailbox_init(&box);
    CHECK(put(&box, 1, &tell) && tell);
    CHECK(put(&box, 1, &tell) && !tell);
    deliver_and_hold(&box);
    message_free(mailbox_take(&box, &tell), &budget);
    CHECK(!tell);
    mailbox_acknowledge(&box);
    CHECK(put(&box, 1, &tell) && tell);
    mailbox_acknowledge(&box);
    deliver_and_hold(&box);
    message_free(mailbox_take(&box, &tell), &budget);
    CHECK(tell);
    mailbox_acknowledge(&box);
    mailbox_end_out(&box, &tell);
    CHECK(tell);
    mailbox_clear(&box, &budget);
}

/* Nobody wants window any more. */
static void
the_loop_is_not_told_of_takes_after_the_peers_end(void)
{
    struct mailbox box;
    bool tell;
    mailbox_init(&box);
    deliver_and_hold(&box);
    mailbox_end_in(&box);
    message_free(mailbox_take(&box, &tell), &budget);
    CHECK(!tell);
    mailbox_clear(&box, &budget);
}

static void
the_loop_is_told_of_takes_that_are_worth_it(void)
{
    struct mailbox box;
    bool tell;
    mailbox_init(&box);
    for (int i = 0; i < 4; i++)
        mailbox_deliver(&box, message_of(MAILBOX_CREDIT_BYTES / 2));
    mailbox_hold(&box, SIZE_MAX, 0);
    message_free(mailbox_take(&box, &tell), &budget);
    CHECK(!tell);
    message_free(mailbox_take(&box, &tell), &budget);
    CHECK(tell);
    mailbox_acknowledge(&box);
    mailbox_hold(&box, SIZE_MAX, 0);
    message_free(mailbox_take(&box, &tell), &budget);
    CHECK(!tell);
    /* The last one counts with what has come of the next. */
    mailbox_hold(&box, SIZE_MAX, MAILBOX_CREDIT_BYTES);
    message_free(mailbox_take(&box, &tell), &budget);
    CHECK(tell);
    mailbox_clear(&box, &budget);
}

static void
what_was_put_is_collected_in_order_and_the_end_is_told(void)
{
    struct mailbox box;
    struct chunk_queue queue = {0};
    bool tell;
    mailbox_init(&box);
    CHECK(put(&box, 10, &tell));
    CHECK(!mailbox_collect(&box, &queue));
    CHECK(put(&box, 20, &tell));
    mailbox_end_out(&box, &tell);
    CHECK(mailbox_collect(&box, &queue));
    CHECK_NUMBER(queue.size, 30);
    CHECK_NUMBER(queue.first->size, 10);
    CHECK(mailbox_collect(&box, &queue));
    chunk_queue_clear(&queue);
    mailbox_clear(&box, &budget);
}

static void
a_closed_mailbox_takes_nothing_and_gives_what_is_left(void)
{
    struct mailbox box;
    bool tell;
    mailbox_init(&box);
    mailbox_deliver(&box, message_of(5));
    mailbox_close(&box);
    CHECK(!put(&box, 1, &tell));
    CHECK(!tell);
    mailbox_end_out(&box, &tell);
    CHECK(!tell);
    struct message *left = mailbox_take(&box, &tell);
    CHECK(left && left->size == 5 && !tell);
    message_free(left, &budget);
    CHECK(!mailbox_take(&box, &tell));
    mailbox_wait_closed(&box);
    mailbox_clear(&box, &budget);
}

/* ---- two threads ---- */

struct side {
    struct mailbox box;
    struct gate progress; /* passed when a blocking call has come back */
    size_t bytes;
    bool was_open;
};

static void *
take_one(void *argument)
{
    struct side *side = argument;
    bool tell;
    struct message *message = mailbox_take(&side->box, &tell);
    side->bytes = message ? message->size : 0;
    message_free(message, &budget);
    gate_pass(&side->progress);
    return NULL;
}

static void *
put_one(void *argument)
{
    struct side *side = argument;
    bool tell;
    side->was_open = put(&side->box, 100, &tell);
    gate_pass(&side->progress);
    return NULL;
}

static pthread_t
start(struct side *side, void *(*run)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, side);
    sleep_ms(20);
    return thread;
}

static void
open_side(struct side *side)
{
    *side = (struct side){.progress = GATE_INIT};
    mailbox_init(&side->box);
}

static void
close_side(struct side *side, pthread_t thread)
{
    pthread_join(thread, NULL);
    mailbox_clear(&side->box, &budget);
}

static void
a_take_waits_for_a_message(void)
{
    struct side side;
    open_side(&side);
    pthread_t thread = start(&side, take_one);
    CHECK_NUMBER(gate_count(&side.progress), 0);
    mailbox_deliver(&side.box, message_of(77));
    CHECK(gate_wait(&side.progress, 1));
    CHECK_NUMBER(side.bytes, 77);
    close_side(&side, thread);
}

static void
the_peers_end_and_the_streams_end_wake_a_take(void)
{
    void (*const ends[])(struct mailbox *) = {mailbox_end_in, mailbox_close};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        struct side side;
        open_side(&side);
        pthread_t thread = start(&side, take_one);
        CHECK_NUMBER(gate_count(&side.progress), 0);
        ends[i](&side.box);
        CHECK(gate_wait(&side.progress, 1));
        CHECK_NUMBER(side.bytes, 0);
        close_side(&side, thread);
    }
}

static void
a_put_waits_until_enough_has_been_written(void)
{
    struct side side;
    struct chunk_queue queue = {0};
    bool tell;
    open_side(&side);
    CHECK(put(&side.box, MAILBOX_OUT_BYTES, &tell));
    pthread_t thread = start(&side, put_one);
    CHECK_NUMBER(gate_count(&side.progress), 0);
    /* To be collected is not to be written. */
    mailbox_collect(&side.box, &queue);
    sleep_ms(10);
    CHECK_NUMBER(gate_count(&side.progress), 0);
    mailbox_note_written(&side.box, MAILBOX_OUT_BYTES / 2 - 1);
    sleep_ms(10);
    CHECK_NUMBER(gate_count(&side.progress), 0);
    mailbox_note_written(&side.box, 1);
    CHECK(gate_wait(&side.progress, 1));
    CHECK(side.was_open);
    chunk_queue_clear(&queue);
    close_side(&side, thread);
}

static void
the_streams_end_wakes_a_put(void)
{
    struct side side;
    bool tell;
    open_side(&side);
    CHECK(put(&side.box, MAILBOX_OUT_BYTES + 5, &tell));
    pthread_t thread = start(&side, put_one);
    CHECK_NUMBER(gate_count(&side.progress), 0);
    mailbox_close(&side.box);
    CHECK(gate_wait(&side.progress, 1));
    CHECK(!side.was_open);
    close_side(&side, thread);
}

/* A thread that answers each message with a chunk of the same size, until the end. */
static void *
echo(void *argument)
{
    struct side *side = argument;
    struct message *message;
    bool tell;
    while ((message = mailbox_take(&side->box, &tell))) {
        put(&side->box, message->size, &tell);
        message_free(message, &budget);
    }
    mailbox_end_out(&side->box, &tell);
    gate_pass(&side->progress);
    return NULL;
}

/* The loop's part, as if each turn wrote all that was collected. */
static size_t
write_what_was_put(struct side *side, bool *ended)
{
    struct chunk_queue queue = {0};
    mailbox_acknowledge(&side->box);
    *ended = mailbox_collect(&side->box, &queue);
    size_t size = queue.size;
    chunk_queue_clear(&queue);
    mailbox_note_written(&side->box, size);
    return size;
}

static void
no_message_is_lost_between_two_threads(void)
{
    struct side side;
    size_t delivered = 0, written = 0;
    bool ended = false;
    open_side(&side);
    pthread_t thread = start(&side, echo);
    for (unsigned i = 0; i < MANY; i++) {
        mailbox_deliver(&side.box, message_of(i % 1000));
        delivered += i % 1000;
        if (i % 10 == 0)
            written += write_what_was_put(&side, &ended);
    }
    mailbox_end_in(&side.box);
    uint64_t start_at = timers_now();
    while (!ended && ms_since(start_at) < PATIENCE_MS)
        written += write_what_was_put(&side, &ended);
    CHECK(ended);
    CHECK_NUMBER(written, delivered);
    CHECK_NUMBER(side.box.out_bytes, 0);
    mailbox_close(&side.box);
    close_side(&side, thread);
}

int
main(void)
{
    messages_are_taken_in_order_and_their_bytes_counted();
    the_loop_is_told_once_until_it_has_heard();
    the_loop_is_not_told_of_takes_after_the_peers_end();
    the_loop_is_told_of_takes_that_are_worth_it();
    what_was_put_is_collected_in_order_and_the_end_is_told();
    a_closed_mailbox_takes_nothing_and_gives_what_is_left();
    a_take_waits_for_a_message();
    the_peers_end_and_the_streams_end_wake_a_take();
    a_put_waits_until_enough_has_been_written();
    the_streams_end_wakes_a_put();
    no_message_is_lost_between_two_threads();
    return check_report("test_mailbox");
}
