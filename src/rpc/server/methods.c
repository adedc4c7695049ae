/* SPDX-License-Identifier: Apache-2.0 */
/* A server's methods by path: see methods.h. */
#include "rpc/server/methods.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define INITIAL_SLOTS 64

/* Hashes the last 16 bytes: paths of a service differ only at their ends. */
static size_t
hash_path(const char *path)
{
    uint64_t end[2] = {0};
    size_t size = strlen(path);
    size_t part = size < sizeof end ? size : sizeof end;
    memcpy(end, path + size - part, part);
    uint64_t hash = (end[0] * UINT64_C(0x9e3779b97f4a7c15)) ^ (end[1] + size);
    return (hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static struct server_method *
find_slot(struct server_method *slots, size_t count, const char *path)
{
    size_t i = hash_path(path) & (count - 1);
    while (slots[i].method && strcmp(slots[i].method->path, path) != 0)
        i = (i + 1) & (count - 1);
    return &slots[i];
}

struct server_method *
methods_find(const struct methods *methods, const char *path)
{
    struct server_method *slot = find_slot(methods->slots, methods->slot_count, path);
    return slot->method ? slot : NULL;
}

/* Grows the table for `more` methods; at least half of the slots stay empty. */
static void
grow(struct methods *methods, size_t more)
{
    size_t slots = methods->slot_count;
    while (slots < 2 * (methods->count + more))
        slots *= 2;
    if (slots == methods->slot_count)
        return;
    struct server_method *grown = memory_zeroed(slots * sizeof *grown);
    for (size_t i = 0; i < methods->slot_count; i++)
        if (methods->slots[i].method)
            *find_slot(grown, slots, methods->slots[i].method->path) = methods->slots[i];
    free(methods->slots);
    methods->slots = grown;
    methods->slot_count = slots;
}

void
methods_add_service(struct methods *methods, const struct service *service, const void *handlers,
                    void *context, struct metrics *metrics)
{
    grow(methods, service->method_count);
    methods->count += service->method_count;
    for (size_t i = 0; i < service->method_count; i++) {
        const struct method *method = &service->methods[i];
        if (!method->exists(handlers))
            continue;
        *find_slot(methods->slots, methods->slot_count, method->path) = (struct server_method){
            .method = method,
            .handlers = handlers,
            .context = context,
            /* A handler that receives a stream may block at any time. */
            .on_loop = !method_is_client_streaming(method) && method->on_loop(handlers),
            .metrics = metrics_method(metrics, method->path),
        };
    }
}

void
methods_init(struct methods *methods)
{
    *methods = (struct methods){.slots = memory_zeroed(INITIAL_SLOTS * sizeof *methods->slots),
                                .slot_count = INITIAL_SLOTS};
}

void
methods_clear(struct methods *methods)
{
    free(methods->slots);
}
