/* SPDX-License-Identifier: Apache-2.0 */
/* A server's methods by their paths: see methods.h. */
#include "rpc/server/methods.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FIRST_SLOTS 64

/* Paths differ in their ends. */
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

/* Makes room for `more` methods, with at least half of the slots empty. */
static void
make_room(struct methods *methods, size_t more)
{
    size_t slots = methods->slot_count;
    while (slots < 2 * (methods->count + more))
        slots *= 2;
    if (slots == methods->slot_count)
        return;
    struct server_method *bigger = memory_zeroed(slots * sizeof *bigger);
    for (size_t i = 0; i < methods->slot_count; i++)
        if (methods->slots[i].method)
            *find_slot(bigger, slots, methods->slots[i].method->path) = methods->slots[i];
    free(methods->slots);
    methods->slots = bigger;
    methods->slot_count = slots;
}

/* A handler that receives a stream may wait at any time, so it never runs on the loop. */
static bool
takes_one_message(const struct method *method)
{
    return method->kind == METHOD_UNARY || method->kind == METHOD_SERVER_STREAM;
}

void
methods_add_service(struct methods *methods, const struct service *service, const void *handlers,
                    void *context, struct metrics *metrics)
{
    make_room(methods, service->method_count);
    methods->count += service->method_count;
    for (size_t i = 0; i < service->method_count; i++) {
        const struct method *method = &service->methods[i];
        if (!method->exists(handlers))
            continue;
        *find_slot(methods->slots, methods->slot_count, method->path) = (struct server_method){
            .method = method,
            .handlers = handlers,
            .context = context,
            .on_loop = takes_one_message(method) && method->on_loop(handlers),
            .metrics = metrics_method(metrics, method->path),
        };
    }
}

void
methods_init(struct methods *methods)
{
    *methods = (struct methods){.slots = memory_zeroed(FIRST_SLOTS * sizeof *methods->slots),
                                .slot_count = FIRST_SLOTS};
}

void
methods_clear(struct methods *methods)
{
    free(methods->slots);
}
