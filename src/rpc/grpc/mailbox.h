/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread that runs a handler (or calls a peer) and the loop thread meet: messages in, chunks out, each bounded.
 *
 * The thread blocks in mailbox_take until a message is there, and in mailbox_put while too much waits to be sent: that is the
 * back pressure. The loop never blocks. Functions of the thread's side say when the loop must be told (by a task).
 */
#ifndef RPC_GRPC_MAILBOX_H
#define RPC_GRPC_MAILBOX_H

#include <pthread.h>
#include <stdbool.h>

#include "rpc/grpc/framing.h"
#include "rpc/http2/chunk.h"

/* mailbox_put waits once this many bytes wait to be sent, until half of them have gone: then there is something to do for a while. */
#define MAILBOX_OUT_BYTES (256u * 1024)

/* The loop is told of taken messages when it can give back so much window: its peer, which has more of it, does not wait for less. */
#define MAILBOX_CREDIT_BYTES (32u * 1024)

struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct message *in;
    struct message **in_last;
    size_t in_bytes;
    size_t held;   /* bytes for which the peer has no window back */
    bool in_ended; /* the peer will send no more */
    struct chunk *out;
    struct chunk **out_last;
    size_t out_bytes; /* put and not yet written to the socket */
    bool out_ended;   /* the thread will put no more */
    bool out_full;    /* puts wait */
    bool told;        /* the loop has been told of news and has not collected it yet */
    bool closed;      /* the stream is over: takes give what is left, puts are dropped */
};

void mailbox_init(struct mailbox *box);
void mailbox_clear(struct mailbox *box, struct budget *budget);

/* ---- the thread's side ---- */

/* The next message, or NULL when there will be none. `*tell_loop`: window can be given back. */
struct message *mailbox_take(struct mailbox *box, bool *tell_loop);

/* Takes the chunk. False: the stream is over. */
bool mailbox_put(struct mailbox *box, struct chunk *chunk, bool *tell_loop);

/* No more puts. `*tell_loop` as above. */
void mailbox_end_out(struct mailbox *box, bool *tell_loop);

/* Blocks until the loop has closed the mailbox. */
void mailbox_wait_closed(struct mailbox *box);

/* ---- the loop's side ---- */

void mailbox_deliver(struct mailbox *box, struct message *message);
void mailbox_end_in(struct mailbox *box);
void mailbox_close(struct mailbox *box);

/* The loop has got the word that it was told to expect; the next news is told again. */
void mailbox_hear(struct mailbox *box);

/* Moves what was put behind the queue; tells whether it was the last. */
bool mailbox_collect(struct mailbox *box, struct chunk_queue *queue);

/* For how many of `uncredited` bytes no window can be given back: those of messages that wait to be taken, and behind them `pending` bytes of
   the next. */
size_t mailbox_hold(struct mailbox *box, size_t uncredited, size_t pending);

/* `size` bytes have been written to the socket. */
void mailbox_note_written(struct mailbox *box, size_t size);

#endif
