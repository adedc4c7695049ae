/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of connections for tests: their files are texts, their drivers say what the test wants and do nothing. */
#ifndef UNIT_CONNECTION_SETS_H
#define UNIT_CONNECTION_SETS_H

#include <stdlib.h>

#include "base/memory.h"
#include "connections/config/connection.h"

static inline void
silent_close(struct driver *driver)
{
    driver_clear(driver);
    free(driver);
}

static const struct driver_ops silent_driver = {.name = "csi", .close = silent_close};

/* A driver that calls this node `node_id` and says that it is where `key` is `value` (NULL: it says nothing). */
static inline struct driver *
silent_driver_new(struct runtime *runtime, const char *node_id, const char *key, const char *value)
{
    struct driver *driver = memory_zeroed(sizeof *driver);
    struct driver_facts *facts = driver_facts_new();
    driver_init(driver, &silent_driver,
                &(struct driver_options){.connection = "silent", .runtime = runtime});
    facts->is_known = facts->is_ready = true;
    facts->services =
        UINT64_C(1) << CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS;
    facts->node_id = node_id;
    if (key)
        text_map_set(&facts->topology, &facts->arena, key, value);
    driver_set_facts(driver, facts);
    return driver;
}

/* Puts a connection with this file behind those that are there; names must come in their order. */
static inline struct connection *
add_connection(struct connection_set *set, struct driver *driver, const char *name,
               const char *text)
{
    static struct connection_counters counters;
    struct arena arena;
    struct connection_spec *spec;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = spec_read(name, text, strlen(text), &arena, &spec);
    CHECK(!error);
    if (error) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
    struct connection *connection = connection_new(&arena, spec, driver, &counters);
    set->slots[set->count++] = (struct connection_slot){connection->spec->name, connection, NULL};
    return connection;
}

#endif
