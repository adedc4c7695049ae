/* SPDX-License-Identifier: Apache-2.0 */
/* Queues between a handler's thread and the loop: see mailbox.h. */
#include "rpc/grpc/mailbox.h"

#include "rpc/loop/loop_threads.h"

void
mailbox_init(struct mailbox *box)
{
    *box = (struct mailbox){0};
    pthread_mutex_init(&box->lock, NULL);
    pthread_cond_init(&box->changed, NULL);
    box->in_last = &box->in;
    box->out_last = &box->out;
}

void
mailbox_clear(struct mailbox *box, struct budget *budget)
{
    while (box->in) {
        struct message *next = box->in->next;
        message_free(box->in, budget);
        box->in = next;
    }
    while (box->out) {
        struct chunk *next = box->out->next;
        chunk_release(box->out);
        box->out = next;
    }
    pthread_cond_destroy(&box->changed);
    pthread_mutex_destroy(&box->lock);
}

/* Lock held. Returns true once until the loop has acknowledged. */
static bool
must_notify(struct mailbox *box)
{
    bool first = !box->is_notified && !box->closed;
    box->is_notified |= first;
    return first;
}

/* Lock held. A handler that runs on the loop thread first hands the loop to another thread. */
static void
wait_for_loop(struct mailbox *box)
{
    loop_threads_yield();
    pthread_cond_wait(&box->changed, &box->lock);
}

struct message *
mailbox_take(struct mailbox *box, bool *notify_loop)
{
    pthread_mutex_lock(&box->lock);
    while (!box->in && !box->in_ended && !box->closed)
        wait_for_loop(box);
    struct message *message = box->in;
    *notify_loop = false;
    if (message) {
        box->in = message->next;
        if (!box->in)
            box->in_last = &box->in;
        box->in_bytes -= message->size + FRAMING_PREFIX_BYTES;
        bool can_credit = box->held >= box->in_bytes + MAILBOX_CREDIT_BYTES;
        *notify_loop = can_credit && !box->in_ended && must_notify(box);
    }
    pthread_mutex_unlock(&box->lock);
    return message;
}

bool
mailbox_put(struct mailbox *box, struct chunk *chunk, bool *notify_loop)
{
    pthread_mutex_lock(&box->lock);
    box->out_full |= box->out_bytes >= MAILBOX_OUT_BYTES;
    while (box->out_full && !box->closed)
        wait_for_loop(box);
    bool open = !box->closed;
    *notify_loop = open && must_notify(box);
    if (open) {
        chunk->next = NULL;
        *box->out_last = chunk;
        box->out_last = &chunk->next;
        box->out_bytes += chunk->size;
    }
    pthread_mutex_unlock(&box->lock);
    if (!open)
        chunk_release(chunk);
    return open;
}

void
mailbox_end_out(struct mailbox *box, bool *notify_loop)
{
    pthread_mutex_lock(&box->lock);
    box->out_ended = true;
    *notify_loop = must_notify(box);
    pthread_mutex_unlock(&box->lock);
}

void
mailbox_wait_closed(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    while (!box->closed)
        wait_for_loop(box);
    pthread_mutex_unlock(&box->lock);
}

void
mailbox_deliver(struct mailbox *box, struct message *message)
{
    pthread_mutex_lock(&box->lock);
    message->next = NULL;
    *box->in_last = message;
    box->in_last = &message->next;
    box->in_bytes += message->size + FRAMING_PREFIX_BYTES;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

void
mailbox_end_in(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    box->in_ended = true;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

void
mailbox_close(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    box->closed = true;
    pthread_cond_broadcast(&box->changed);
    pthread_mutex_unlock(&box->lock);
}

void
mailbox_acknowledge(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    box->is_notified = false;
    pthread_mutex_unlock(&box->lock);
}

bool
mailbox_collect(struct mailbox *box, struct chunk_queue *queue)
{
    pthread_mutex_lock(&box->lock);
    struct chunk *chunk = box->out;
    box->out = NULL;
    box->out_last = &box->out;
    bool ended = box->out_ended;
    pthread_mutex_unlock(&box->lock);
    while (chunk) {
        struct chunk *next = chunk->next;
        chunk_queue_push(queue, chunk);
        chunk = next;
    }
    return ended;
}

size_t
mailbox_hold(struct mailbox *box, size_t uncredited, size_t pending)
{
    pthread_mutex_lock(&box->lock);
    /* With no complete message waiting, an incomplete one may continue, however large it is. */
    size_t held = box->in_bytes ? box->in_bytes + pending : 0;
    box->held = held < uncredited ? held : uncredited;
    held = box->held;
    pthread_mutex_unlock(&box->lock);
    return held;
}

void
mailbox_note_written(struct mailbox *box, size_t size)
{
    pthread_mutex_lock(&box->lock);
    box->out_bytes -= size;
    if (box->out_full && box->out_bytes <= MAILBOX_OUT_BYTES / 2) {
        box->out_full = false;
        pthread_cond_broadcast(&box->changed);
    }
    pthread_mutex_unlock(&box->lock);
}
