/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC's length-prefixed messages: a flag byte, a four-byte length, the message. The reader accepts
 * bytes in pieces of any size. It checks each length against the limit first, and allocates memory
 * only as bytes arrive.
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
    size_t charged; /* bytes charged to the budget */
    bool is_compressed;
    uint8_t bytes[];
};

/* The budget charge of an arena; grows with the messages in it. */
struct charge {
    struct budget *budget;
    size_t size;
    size_t free; /* bytes of the arena that are not charged */
};

enum message_encoding {
    ENCODING_IDENTITY, /* no grpc-encoding, or identity */
    ENCODING_GZIP,
    ENCODING_UNKNOWN,
};

struct message_reader {
    struct budget *budget;
    size_t max_message_bytes;
    enum message_encoding encoding;
    uint8_t prefix[FRAMING_PREFIX_BYTES];
    size_t prefix_filled;
    size_t expected; /* size of the current message */
    size_t capacity;
    struct message *partial;
};

void message_reader_init(struct message_reader *reader, struct budget *budget,
                         size_t max_message_bytes);
void message_reader_clear(struct message_reader *reader);

/*
 * Consumes some of the bytes (`*taken`) and sets *out to a message when one is complete, otherwise
 * to NULL. Call until all bytes are consumed. RESOURCE_EXHAUSTED: the message is too large or the
 * budget is used up. INTERNAL: not gRPC framing.
 */
MUST_CHECK struct error *message_reader_feed(struct message_reader *reader, const uint8_t *bytes,
                                             size_t size, size_t *taken, struct message **out);

/* Call at the end of the stream. INTERNAL: the last message is incomplete. */
MUST_CHECK struct error *message_reader_finish(const struct message_reader *reader);

/* Bytes received of the incomplete message. */
size_t message_reader_pending(const struct message_reader *reader);

void message_free(struct message *message, struct budget *budget);

/*
 * Replaces a compressed message by its plaintext; leaves an uncompressed one alone. Charges the
 * largest possible plaintext first. May take long, so it must not run on the loop thread.
 * RESOURCE_EXHAUSTED: larger than `limit`, or the budget is used up. INTERNAL: not gzip. On error
 * the message is unchanged.
 */
MUST_CHECK struct error *message_inflate(struct message **message, struct budget *budget,
                                         size_t limit);

/* Encodes a message with its prefix. RESOURCE_EXHAUSTED: larger than the length field can say. */
MUST_CHECK struct error *framing_pack(const ProtobufCMessage *message, struct chunk **out);

/*
 * Decodes an uncompressed message into the arena, whose limit bounds the memory that a hostile
 * message can demand (RESOURCE_EXHAUSTED). INTERNAL, as in other gRPC servers: the bytes do not
 * parse, or a string is not UTF-8. INVALID_ARGUMENT: a string contains a NUL, which would truncate
 * it. `charge` covers the whole arena (NULL: not charged); RESOURCE_EXHAUSTED if its budget
 * refuses.
 */
MUST_CHECK struct error *framing_unpack(const ProtobufCMessageDescriptor *type,
                                        const struct message *message, struct arena *arena,
                                        struct charge *charge, ProtobufCMessage **out);

/* Charges the arena and `more` bytes. Returns false, and charges nothing, if that is refused. */
bool charge_arena(struct charge *charge, const struct arena *arena, size_t more);

/* Call after the arena was cleared. */
void charge_clear(struct charge *charge);

#endif
