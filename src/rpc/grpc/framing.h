/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC's length-prefixed messages: one flag byte, four bytes of length, the message. The reader takes bytes in any
 * pieces and gives whole messages; no length is believed before it has been compared with the limit, and memory grows only with
 * bytes that have really come.
 */
#ifndef RPC_GRPC_FRAMING_H
#define RPC_GRPC_FRAMING_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/error.h"
#include "rpc/http2/chunk.h"
#include "rpc/loop/loop.h"

#define FRAMING_PREFIX_BYTES 5u

struct message {
    struct message *next;
    size_t size;
    size_t charged; /* bytes counted against the budget */
    bool is_compressed;
    uint8_t bytes[];
};

/* What the decoded messages in an arena are charged; grows with them. */
struct charge {
    struct budget *budget;
    size_t size;
};

enum message_encoding {
    ENCODING_IDENTITY, /* none named */
    ENCODING_GZIP,
    ENCODING_UNKNOWN,
};

struct message_reader {
    struct budget *budget;
    size_t max_message_bytes;
    enum message_encoding encoding;
    uint8_t prefix[FRAMING_PREFIX_BYTES];
    size_t prefix_filled;
    size_t expected; /* size of the message that is being read */
    size_t capacity;
    struct message *partial;
};

void message_reader_init(struct message_reader *reader, struct budget *budget,
                         size_t max_message_bytes);
void message_reader_clear(struct message_reader *reader);

/*
 * Takes some of the bytes, tells how many in *taken, and gives a message in *out when one is complete (NULL otherwise).
 * Call until all is taken. RESOURCE_EXHAUSTED: too large, or too much waits in memory. INTERNAL: not gRPC framing.
 */
MUST_CHECK struct error *message_reader_feed(struct message_reader *reader, const uint8_t *bytes,
                                             size_t size, size_t *taken, struct message **out);

/* At the end of the stream: INTERNAL if a message has begun and not ended. */
MUST_CHECK struct error *message_reader_finish(const struct message_reader *reader);

/* Bytes of the message that has begun. */
size_t message_reader_pending(const struct message_reader *reader);

void message_free(struct message *message, struct budget *budget);

/*
 * Puts the plain message in place of a compressed one; does nothing to one that is not. What it may take is charged first. It may take long, so it is not for the loop
 * thread. RESOURCE_EXHAUSTED: larger than `limit`, or too much waits in memory. INTERNAL: not gzip. On errors the message is as it was.
 */
MUST_CHECK struct error *message_inflate(struct message **message, struct budget *budget,
                                         size_t limit);

/* A message with its prefix, ready to send. RESOURCE_EXHAUSTED when it does not fit four bytes of length. */
MUST_CHECK struct error *framing_pack(const ProtobufCMessage *message, struct chunk **out);

/*
 * Decodes a plain message into the arena, whose limit bounds what a hostile message can ask for (RESOURCE_EXHAUSTED); strings are checked
 * to be UTF-8. INTERNAL, as other gRPC servers say, for bytes that do not parse; INVALID_ARGUMENT for a string with a NUL in it, which
 * would be cut there. `charge` is for the whole arena (NULL: nobody is charged); RESOURCE_EXHAUSTED when its budget refuses.
 */
MUST_CHECK struct error *framing_unpack(const ProtobufCMessageDescriptor *type,
                                        const struct message *message, struct arena *arena,
                                        struct charge *charge, ProtobufCMessage **out);

/* The arena has been cleared. */
void charge_clear(struct charge *charge);

#endif
