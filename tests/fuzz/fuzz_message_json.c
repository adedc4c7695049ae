/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, taken as JSON: they are refused, or they give a message whose JSON gives the same JSON
 * again; memory that ends half-way leaks nothing. The same bytes, taken as a message from the wire:
 * what is printed is JSON to a strict reader.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/sample_message.h"
#include "message/message_json.h"
#include "message/service.h"
#include "proto/csi.pb-c.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

const struct service *const all_services[] = {NULL};
const struct secret_field all_secret_fields[] = {
    {&csi__v1__create_volume_request__descriptor, 5},
    {NULL, 0},
};

/* A heap that ends after so many blocks. */
struct short_heap {
    size_t taken, left;
};

static void *
short_alloc(void *data, size_t size)
{
    struct short_heap *heap = data;
    if (!heap->left)
        return NULL;
    heap->left--;
    heap->taken++;
    return malloc(size);
}

static void
short_free(void *data, void *block)
{
    (void)data;
    free(block);
}

static void
check_stable(const ProtobufCMessage *message, unsigned flags)
{
    struct buffer text AUTO(buffer_clear) = {0};
    struct buffer again_text AUTO(buffer_clear) = {0};
    ProtobufCMessage *again;
    message_json_print(message, flags, &text);
    struct error *error AUTO(error_cleanup) =
        message_json_parse((const char *)text.bytes, text.size, message->descriptor, NULL, &again);
    REQUIRE(!error && again);
    message_json_print(again, flags, &again_text);
    REQUIRE(text.size == again_text.size && !memcmp(text.bytes, again_text.bytes, text.size));
    protobuf_c_message_free_unpacked(again, NULL);
}

static void
check_memory_that_ends(const char *text, size_t size, const ProtobufCMessageDescriptor *type,
                       size_t blocks)
{
    struct short_heap heap = {.left = blocks};
    ProtobufCAllocator allocator = {short_alloc, short_free, &heap};
    ProtobufCMessage *message;
    struct error *error AUTO(error_cleanup) =
        message_json_parse(text, size, type, &allocator, &message);
    REQUIRE(error && error->code == CODE_RESOURCE_EXHAUSTED && !message);
}

static void
check_as_json(const char *text, size_t size, const ProtobufCMessageDescriptor *type)
{
    struct short_heap heap = {.left = SIZE_MAX};
    ProtobufCAllocator allocator = {short_alloc, short_free, &heap};
    ProtobufCMessage *message;
    struct error *error AUTO(error_cleanup) =
        message_json_parse(text, size, type, &allocator, &message);
    REQUIRE(!error == !!message);
    if (!message)
        return;
    check_stable(message, 0);
    check_stable(message, MESSAGE_JSON_PRETTY);
    protobuf_c_message_free_unpacked(message, &allocator);
    check_memory_that_ends(text, size, type, size % heap.taken);
    check_memory_that_ends(text, size, type, heap.taken - 1);
}

static void
check_as_wire(const uint8_t *data, size_t size, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, size, data);
    if (!message)
        return;
    struct buffer text AUTO(buffer_clear) = {0};
    message_json_print(message, MESSAGE_JSON_HIDE_SECRETS, &text);
    json_t *json = json_loadb((const char *)text.bytes, text.size, JSON_DECODE_ANY, NULL);
    REQUIRE(json);
    json_decref(json);
    protobuf_c_message_free_unpacked(message, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const types[] = {
        &csi__v1__create_volume_request__descriptor,
        &csi__v1__list_snapshots_response__descriptor,
        &csi__v1__probe_response__descriptor,
        &sample_type,
    };
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        check_as_json((const char *)data, size, types[i]);
        check_as_wire(data, size, types[i]);
    }
    return 0;
}
