/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from JSON and back, for tests of src/rpc/message_json_*.c: csi.proto's, and one with every kind of field. */
#ifndef UNIT_JSON_CHECKS_H
#define UNIT_JSON_CHECKS_H

#include <stdlib.h>

#include "base/arena.h"
#include "check.h"
#include "message/message_json.h"
#include "message/service.h"
#include "proto/csi.pb-c.h"
#include "sample_message.h"

const struct service *const all_services[] = {NULL};
const struct secret_field all_secret_fields[] = {
    {&csi__v1__create_volume_request__descriptor, 5},
    {NULL, 0},
};

#define CREATE (&csi__v1__create_volume_request__descriptor)
#define SNAPSHOT (&csi__v1__snapshot__descriptor)

/* A heap that counts, and that ends after so many blocks. */
struct counted_heap {
    size_t blocks, left;
};

static inline void *
counted_alloc(void *data, size_t size)
{
    struct counted_heap *heap = data;
    if (!heap->left)
        return NULL;
    heap->left--;
    heap->blocks++;
    return memset(malloc(size), 0xa5, size);
}

static inline void
counted_free(void *data, void *block)
{
    struct counted_heap *heap = data;
    if (block)
        heap->blocks--;
    free(block);
}

static inline ProtobufCMessage *
parse_good(const ProtobufCMessageDescriptor *type, const char *text)
{
    ProtobufCMessage *message = NULL;
    struct error *error AUTO(error_cleanup) =
        message_json_parse(text, strlen(text), type, NULL, &message);
    CHECK_TEXT(error ? error->message : NULL, NULL);
    CHECK(message && message->descriptor == type);
    return message;
}

static inline struct sample *
parse_sample(const char *text)
{
    return (struct sample *)parse_good(&sample_type, text);
}

static inline void
free_sample(struct sample *sample)
{
    protobuf_c_message_free_unpacked(&sample->base, NULL);
}

static inline void
check_print(const ProtobufCMessage *message, unsigned flags, const char *expected)
{
    struct buffer out AUTO(buffer_clear) = {0};
    message_json_print(message, flags, &out);
    CHECK_TEXT(buffer_text(&out), expected);
}

/* The text is parsed and printed again; `expected` is NULL where it comes back as it was. */
static inline void
check_back(const ProtobufCMessageDescriptor *type, const char *text, const char *expected)
{
    ProtobufCMessage *message = parse_good(type, text);
    if (message)
        check_print(message, 0, expected ? expected : text);
    protobuf_c_message_free_unpacked(message, NULL);
}

static inline void
check_sample(const char *text, const char *expected)
{
    check_back(&sample_type, text, expected);
}

static inline void
check_refused(const ProtobufCMessageDescriptor *type, const char *text, const char *problem)
{
    struct counted_heap heap = {.left = SIZE_MAX};
    ProtobufCAllocator allocator = {counted_alloc, counted_free, &heap};
    ProtobufCMessage *message = NULL;
    struct error *error AUTO(error_cleanup) =
        message_json_parse(text, strlen(text), type, &allocator, &message);
    CHECK(error && error->code == CODE_INVALID_ARGUMENT);
    CHECK_TEXT(error ? error->message : NULL, problem);
    CHECK(!message);
    CHECK_NUMBER(heap.blocks, 0);
}

#endif
