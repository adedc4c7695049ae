/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers reported last: see known_facts.h. */
#include "connections/config/known_facts.h"

#include <string.h>

#include "message/message_bytes.h"
#include "message/message_map.h"
#include "proto/records.pb-c.h"

typedef Skycap__Records__DriverFactsRecord facts_record;

static const char *
row_key(const struct connection_spec *spec, struct arena *arena)
{
    return arena_print(arena, "facts/%s", spec->name);
}

/* Facts are used only for a driver with the same endpoints. */
static const char *
endpoints_of(const struct connection_spec *spec, struct arena *arena)
{
    const struct setting *one = settings_find(spec->options, "endpoint");
    const struct setting *node = settings_find(spec->options, "node-endpoint");
    return arena_print(arena, "%s %s", one ? one->text : "", node ? node->text : "");
}

/* ---- reading ---- */

static struct driver_facts *
make_facts(const facts_record *record)
{
    struct driver_facts *facts = driver_facts_new();
    struct arena *arena = &facts->arena;
    facts->is_remembered = true;
    facts->trouble = "it has not been reached yet";
    facts->services = record->services;
    facts->expansion = record->expansion;
    facts->controller = record->controller;
    facts->node = record->node;
    facts->group = record->group;
    facts->node_id = record->node_id[0] ? arena_string(arena, record->node_id) : NULL;
    facts->max_volumes_per_node = record->max_volumes_per_node;
    struct text_map topology = message_map_read(record->topology, record->n_topology, arena);
    facts->topology = text_map_copy(&topology, arena);
    return facts;
}

struct driver_facts *
known_facts_read(struct store *store, const struct connection_spec *spec, const struct log *log)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    bool found = false;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (!spec->driver->must_ask)
        return NULL;
    struct error *error AUTO(error_cleanup) =
        store_find(store, row_key(spec, &arena), &arena, &entry, &found);
    if (error)
        log_warn(log, "cannot read what the driver reported last",
                 LOG_TEXT("connection", spec->name), LOG_TEXT("error", error->message));
    if (error || !found)
        return NULL;
    const facts_record *record = (const facts_record *)message_bytes_unpack(
        &skycap__records__driver_facts_record__descriptor, entry.value, entry.value_size, &arena);
    if (!record || strcmp(record->endpoints, endpoints_of(spec, &arena)) != 0)
        return NULL;
    return make_facts(record);
}

/* ---- writing ---- */

static const uint8_t *
pack_facts(const struct connection_spec *spec, const struct driver_facts *facts,
           struct arena *arena, size_t *size)
{
    facts_record record = SKYCAP__RECORDS__DRIVER_FACTS_RECORD__INIT;
    record.endpoints = (char *)endpoints_of(spec, arena);
    record.services = facts->services;
    record.expansion = facts->expansion;
    record.controller = facts->controller;
    record.node = facts->node;
    record.group = facts->group;
    record.node_id = (char *)(facts->node_id ? facts->node_id : "");
    record.max_volumes_per_node = facts->max_volumes_per_node;
    message_map_write(&facts->topology, arena,
                      &skycap__records__driver_facts_record__topology_entry__descriptor,
                      &record.topology, &record.n_topology);
    return message_bytes_pack(&record.base, arena, size);
}

static struct error *
write_one(struct store *store, const struct connection *connection, struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    struct store_entry entry;
    bool found;
    if (!connection->spec->driver->must_ask || !facts->is_known || !facts->is_node_known)
        return NULL;
    struct store_change change = {.key = row_key(connection->spec, arena), .expected = STORE_ANY};
    struct error *error = store_find(store, change.key, arena, &entry, &found);
    if (error)
        return error;
    change.value = pack_facts(connection->spec, facts, arena, &change.value_size);
    if (found && entry.value_size == change.value_size &&
        memcmp(entry.value, change.value, change.value_size) == 0)
        return NULL;
    return store_write(store, &change, 1, NULL);
}

struct error *
known_facts_write(struct store *store, const struct connection_set *set, struct arena *arena)
{
    struct error *error = NULL;
    for (size_t i = 0; i < set->count && !error; i++)
        if (set->slots[i].connection)
            error = write_one(store, set->slots[i].connection, arena);
    return error_wrap(error, "write what a driver can do");
}
