/* SPDX-License-Identifier: Apache-2.0 */
/* The details of an error: see plugin_error.h. */
#include "velero/plugin_error.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "message/message_bytes.h"
#include "proto/status.pb-c.h"
#include "proto/velero_v1.pb-c.h"

#define STACK_TYPE "type.googleapis.com/generated.Stack"

/* The compiler gives the path from where it ran. */
static const char *
file_of(const char *path)
{
    while (strncmp(path, "../", 3) == 0)
        path += 3;
    return path;
}

static ProtobufCBinaryData
pack_stack(const char *file, int line, const char *function, struct arena *arena)
{
    Generated__StackFrame frame = GENERATED__STACK_FRAME__INIT;
    Generated__Stack stack = GENERATED__STACK__INIT;
    frame.file = (char *)file_of(file);
    frame.line = line;
    frame.function = (char *)function;
    stack.frames = (Generated__StackFrame *[]){&frame};
    stack.n_frames = 1;
    ProtobufCBinaryData bytes;
    bytes.data = message_bytes_pack(&stack.base, arena, &bytes.len);
    return bytes;
}

struct error *
plugin_error_locate(struct error *error, const char *file, int line, const char *function)
{
    if (!error)
        return NULL;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    Google__Rpc__Detail detail = GOOGLE__RPC__DETAIL__INIT;
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    detail.type_url = (char *)STACK_TYPE;
    detail.value = pack_stack(file, line, function, &arena);
    status.code = (int32_t)error->code;
    status.message = error->message;
    status.details = (Google__Rpc__Detail *[]){&detail};
    status.n_details = 1;
    size_t size;
    const uint8_t *bytes = message_bytes_pack(&status.base, &arena, &size);
    free(error->details);
    error->details = memory_new(size);
    memcpy(error->details, bytes, size);
    error->details_size = size;
    return error;
}
