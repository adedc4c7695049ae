/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues between the loop thread and a thread that runs a handler or calls a peer: messages in,
 * chunks out, both bounded.
 *
 * The thread blocks in mailbox_take until a message arrives, and in mailbox_put while too many
 * bytes wait to be sent (backpressure). The loop never blocks. The thread's functions report in
 * `*notify_loop` whether the caller must post a task to the loop.
 */
#ifndef RPC_GRPC_MAILBOX_H
#define RPC_GRPC_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>

#include "rpc/grpc/framing.h"
#include "rpc/http2/chunk.h"

/*
 * mailbox_put blocks at this many unsent bytes until half of them are sent, so that the thread then
 * has work for a while.
 */
#define MAILBOX_OUT_BYTES (256u * 1024)

/*
 * The loop is notified of taken messages only when it can return this much window. The peer has
 * more window left than this, so it does not stall.
 */
#define MAILBOX_CREDIT_BYTES (32u * 1024)

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct message *in;
    struct message **in_last;
    size_t in_bytes;
    size_t held;   /* received bytes not yet returned to the peer's window */
    bool in_ended; /* the peer sends no more */
    struct chunk *out;
    struct chunk **out_last;
    size_t out_bytes; /* queued and not yet written to the socket */
    bool out_ended;   /* the thread queues no more */
    bool out_full;    /* mailbox_put blocks */
    bool is_notified; /* the loop has been notified and has not collected yet */
    /* the stream is closed: mailbox_take drains the queue, mailbox_put drops its chunks */
    bool closed;
};

void mailbox_init(struct mailbox *box);
void mailbox_clear(struct mailbox *box, struct budget *budget);

/* ---- called by the thread ---- */

/*
 * Returns the next message, or NULL if no more will come. `*notify_loop`: window can be returned.
 */
struct message *mailbox_take(struct mailbox *box, bool *notify_loop);

/* Takes over the chunk. Returns false if the stream is closed. */
bool mailbox_put(struct mailbox *box, struct chunk *chunk, bool *notify_loop);

/* Ends the outgoing queue. */
void mailbox_end_out(struct mailbox *box, bool *notify_loop);

/* Blocks until the loop closes the mailbox. */
void mailbox_wait_closed(struct mailbox *box);

/* ---- called by the loop ---- */

void mailbox_deliver(struct mailbox *box, struct message *message);
void mailbox_end_in(struct mailbox *box);
void mailbox_close(struct mailbox *box);

/* Acknowledges a notification: the next change notifies the loop again. */
void mailbox_acknowledge(struct mailbox *box);

/*
 * Moves the queued chunks to the end of `queue`. Returns true if the thread has ended its output.
 */
bool mailbox_collect(struct mailbox *box, struct chunk_queue *queue);

/*
 * Returns how many of the `uncredited` bytes must not be returned to the window yet: those of
 * messages not taken, and the `pending` bytes of the next message after them.
 */
size_t mailbox_hold(struct mailbox *box, size_t uncredited, size_t pending);

/* Call when `size` bytes have been written to the socket. */
void mailbox_note_written(struct mailbox *box, size_t size);

#endif
