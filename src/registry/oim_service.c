/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oim.v0.Registry. Its replies are the current entries: they have no mark for an expired one, and
 * nobody could call what is there.
 */
#include <string.h>

#include "base/clock.h"
#include "registry/client/path.h"
#include "registry/registry_internal.h"

/* ---- lists that grow in the call's arena ---- */

struct messages {
    struct call *call;
    const struct registry *registry;
    int64_t now_ms;
    void **items;
    size_t count;
    size_t capacity;
};

static struct messages
messages_of(struct call *call)
{
    return (struct messages){call, call_context(call), clock_unix_ms()};
}

static bool
is_current(const struct messages *messages, const struct entry *entry)
{
    return !controllers_is_expired(messages->registry->controllers, entry, messages->now_ms);
}

static void
add(struct messages *messages, void *message)
{
    if (messages->count == messages->capacity) {
        messages->capacity = messages->capacity ? 2 * messages->capacity : 64;
        void **items = arena_alloc(call_arena(messages->call), messages->capacity * sizeof *items);
        if (messages->count)
            memcpy(items, messages->items, messages->count * sizeof *items);
        messages->items = items;
    }
    messages->items[messages->count++] = message;
}

/* One block for a message and its two texts, because there may be 100,000 of them. */
static void *
make(struct messages *messages, size_t message_size, const char *first, size_t first_size,
     const char *second, char *texts[2])
{
    size_t second_size = strlen(second);
    char *block =
        arena_alloc(call_arena(messages->call), message_size + first_size + second_size + 2);
    texts[0] = block + message_size;
    texts[1] = texts[0] + first_size + 1;
    memcpy(texts[0], first, first_size);
    texts[0][first_size] = '\0';
    memcpy(texts[1], second, second_size + 1);
    add(messages, block);
    return block;
}

/* ---- controllers ---- */

static struct error *
register_controller(struct call *call, const Oim__V0__RegisterControllerRequest *request,
                    Oim__V0__RegisterControllerReply *reply)
{
    (void)reply;
    struct error *error = path_check_id(request->controller_id);
    if (error)
        return error;
    const struct entry entry = {.path = path_of_address(request->controller_id, call_arena(call)),
                                .value = request->address};
    return requests_set(call, &entry);
}

static struct error *
add_controller(void *context, const struct entry *entry)
{
    struct messages *messages = context;
    size_t id_size;
    char *texts[2];
    if (!path_is_address(entry->path, &id_size) || !is_current(messages, entry))
        return NULL;
    Oim__V0__DBEntry *message =
        make(messages, sizeof *message, entry->path, id_size, entry->value, texts);
    oim__v0__dbentry__init(message);
    message->controller_id = texts[0];
    message->address = texts[1];
    return call_charge_arena(messages->call);
}

static struct error *
get_controllers(struct call *call, const Oim__V0__GetControllerRequest *request,
                Oim__V0__GetControllerReply *reply)
{
    (void)request;
    struct messages messages = messages_of(call);
    struct error *error = requests_check_reader(call, "");
    if (!error)
        error = entries_walk(messages.registry->options.store, "", add_controller, &messages);
    reply->entries = (Oim__V0__DBEntry **)messages.items;
    reply->n_entries = messages.count;
    return error;
}

/* ---- values ---- */

static struct error *
set_value(struct call *call, const Oim__V0__SetValueRequest *request, Oim__V0__SetValueReply *reply)
{
    (void)reply;
    if (!request->value)
        return error_new(CODE_INVALID_ARGUMENT, "the value is missing");
    const struct entry entry = {.path = request->value->path, .value = request->value->value};
    return requests_set(call, &entry);
}

static struct error *
add_value(void *context, const struct entry *entry)
{
    struct messages *messages = context;
    char *texts[2];
    if (!is_current(messages, entry))
        return NULL;
    Oim__V0__Value *message =
        make(messages, sizeof *message, entry->path, strlen(entry->path), entry->value, texts);
    oim__v0__value__init(message);
    message->path = texts[0];
    message->value = texts[1];
    return call_charge_arena(messages->call);
}

static struct error *
get_values(struct call *call, const Oim__V0__GetValuesRequest *request,
           Oim__V0__GetValuesReply *reply)
{
    struct messages messages = messages_of(call);
    const char *path;
    struct error *error = path_normalize(request->path, call_arena(call), &path);
    if (!error)
        error = requests_check_reader(call, path);
    if (!error)
        error = entries_walk(messages.registry->options.store, path, add_value, &messages);
    reply->values = (Oim__V0__Value **)messages.items;
    reply->n_values = messages.count;
    return error;
}

const struct oim_v0_registry registry_oim_handlers = {
    .register_controller = {register_controller},
    .get_controllers = {get_controllers},
    .set_value = {set_value},
    .get_values = {get_values},
};
