/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading single values from JSON, for message_json_parse.c. Errors are INVALID_ARGUMENT, "PATH:
 * PROBLEM", or RESOURCE_EXHAUSTED if the allocator has no memory.
 */
#ifndef MESSAGE_JSON_SCALAR_H
#define MESSAGE_JSON_SCALAR_H

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "base/error.h"

/* A value in the text and the path to it. */
struct location {
    const struct location *outer; /* NULL at the top */
    json_t *json;
    const char *name; /* field name or map key; NULL for a list element */
    bool is_key;
    size_t index;
    unsigned depth;
    ProtobufCAllocator *allocator;
};

MUST_CHECK struct error *location_fail(const struct location *location, const char *problem);

/* The same, followed by the text in quotes. */
MUST_CHECK struct error *location_fail_quoting(const struct location *location, const char *problem,
                                               const char *text);

/* Returns zeroed memory, or NULL if the allocator has none. */
void *location_allocate(const struct location *location, size_t size);
MUST_CHECK struct error *location_out_of_memory(void);

/* Any value but a message. `slot` has room for message_field_value_size. */
MUST_CHECK struct error *message_json_read_scalar(const struct location *location,
                                                  const ProtobufCFieldDescriptor *field,
                                                  void *slot);

/* The location's name as the key of a map. */
MUST_CHECK struct error *message_json_read_key(const struct location *location,
                                               const ProtobufCFieldDescriptor *field, void *slot);

#endif
