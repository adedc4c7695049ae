/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two services of the registry share: permissions, checks of values, setting entries, and
 * messages.
 */
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "message/message_map.h"
#include "message/message_time.h"
#include "registry/client/path.h"
#include "registry/registry_internal.h"
#include "registry/rights.h"
#include "rpc/http2/address.h"

#define MAX_VALUE_BYTES 4096

struct error *
requests_check_reader(struct call *call, const char *path)
{
    const struct registry *registry = call_context(call);
    if (registry->options.is_open)
        return NULL;
    return rights_check_read(call_peer(call), registry->options.readers, path);
}

/* Any node may remove one that is lost. */
static bool
removes_lost_node(struct call *call, const struct entry *entry)
{
    const struct registry *registry = call_context(call);
    size_t id_size;
    struct entry_page found = {0};
    if (entry->value[0] || !path_find_node(entry->path, &id_size))
        return false;
    struct error *error AUTO(error_cleanup) = rights_check_node(call_peer(call));
    if (!error)
        error =
            entries_list(registry->options.store, entry->path, NULL, 1, call_arena(call), &found);
    return !error && found.count && strcmp(found.entries[0].path, entry->path) == 0 &&
           controllers_is_expired(registry->controllers, &found.entries[0], clock_unix_ms());
}

static struct error *
check_writer(struct call *call, const struct entry *entry)
{
    const struct registry *registry = call_context(call);
    if (registry->options.is_open || removes_lost_node(call, entry))
        return NULL;
    return rights_check_set(call_peer(call), entry->path);
}

/* Calls must be able to reach it. */
static struct error *
check_address(const char *text)
{
    struct address address;
    struct error *error = address_parse(text, &address);
    if (!error && address.kind == ADDRESS_TCP && (!address.host[0] || !address.port))
        error = error_new(CODE_INVALID_ARGUMENT, "\"%s\" has no host or no port to call", text);
    return error_wrap(error,
                      "the address must be HOST:PORT, tcp://HOST:PORT, dns:///HOST[:PORT], "
                      "passthrough:///HOST:PORT, ipv4:HOST:PORT, ipv6:[HOST]:PORT, unix:///PATH "
                      "or unix-abstract:NAME");
}

static struct error *
check_value(const char *path, const char *value, struct arena *arena)
{
    size_t id_size, size = strlen(value);
    if (size > MAX_VALUE_BYTES)
        return error_new(CODE_INVALID_ARGUMENT, "the value has %zu bytes; the limit is %d", size,
                         MAX_VALUE_BYTES);
    if (!utf8_is_valid(value, size))
        return error_new(CODE_INVALID_ARGUMENT, "the value is not valid UTF-8");
    const char *node = path_find_node(path, &id_size);
    if (!node && !path_is_address(path, &id_size))
        return NULL;
    struct error *error = node ? path_check_node_id(arena_copy(arena, node, id_size))
                               : path_check_id(arena_copy(arena, path, id_size));
    return error || !size ? error : check_address(value);
}

/*
 * While the store is unreachable, addresses that controllers announce are used without it. The
 * controllers get an error, so they announce again until the address is stored; other registries
 * see it only then. Entries without a time to live are stored or not set at all.
 */
static struct error *
set(struct registry *registry, struct entry *entry)
{
    struct error *error = entries_set(registry->options.store, entry);
    if (!error)
        controllers_note(registry->controllers, entry);
    else if (error->code == CODE_UNAVAILABLE && entry->value[0] && entry->expires_ms)
        controllers_note_unstored(registry->controllers, entry);
    return error;
}

struct error *
requests_set(struct call *call, const struct entry *wanted)
{
    struct registry *registry = call_context(call);
    struct entry entry = *wanted;
    entry.registered_ms = clock_unix_ms();
    struct error *error = path_normalize(wanted->path, call_arena(call), &entry.path);
    if (!error && !entry.path[0])
        error = error_new(CODE_INVALID_ARGUMENT, "the path is empty");
    if (!error)
        error = check_writer(call, &entry);
    if (!error)
        error = check_value(entry.path, entry.value, call_arena(call));
    return error ? error : set(registry, &entry);
}

/* ---- messages ---- */

Google__Protobuf__Timestamp *
requests_make_time(int64_t ms, struct arena *arena)
{
    return ms ? message_time_new(ms * 1000000, arena) : NULL;
}

void
requests_fill_entry(Skycap__V1__RegistryEntry *out, const struct entry *entry, bool is_expired,
                    struct arena *arena)
{
    skycap__v1__registry_entry__init(out);
    out->path = (char *)entry->path;
    out->value = (char *)entry->value;
    out->registered = requests_make_time(entry->registered_ms, arena);
    out->expires = requests_make_time(entry->expires_ms, arena);
    out->is_expired = is_expired;
    message_map_write(&entry->attributes, arena,
                      &skycap__v1__registry_entry__attributes_entry__descriptor, &out->attributes,
                      &out->n_attributes);
}
