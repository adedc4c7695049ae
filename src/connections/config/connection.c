/* SPDX-License-Identifier: Apache-2.0 */
/* Connections and sets of them: see connection.h. */
#include "connections/config/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "volumes/handle.h"

struct connection *
connection_new(struct arena *arena, struct connection_spec *spec, struct driver *driver,
               struct connection_counters *counters)
{
    struct connection *connection = memory_zeroed(sizeof *connection);
    atomic_init(&connection->references, 1);
    connection->arena = *arena;
    arena_init(arena, NULL, 0, SIZE_MAX);
    connection->spec = spec;
    connection->driver = driver;
    connection->counters = counters;
    connection->place = spec->name;
    connection->loaded_ms = (uint64_t)clock_unix_ms();
    return connection;
}

struct connection *
connection_share(struct connection *connection)
{
    atomic_fetch_add_explicit(&connection->references, 1, memory_order_relaxed);
    return connection;
}

void
connection_release(struct connection *connection)
{
    if (!connection ||
        atomic_fetch_sub_explicit(&connection->references, 1, memory_order_acq_rel) != 1)
        return;
    driver_release(connection->driver);
    arena_clear(&connection->arena);
    free(connection);
}

/* ---- what it can ---- */

bool
connection_is_known(const struct connection *connection)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return connection->spec->capabilities.is_fixed || facts->is_known;
}

bool
connection_is_told(const struct connection *connection)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return connection_is_known(connection) || facts->is_remembered;
}

bool
connection_is_awaited(const struct connection *connection)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return !connection_is_told(connection) && !facts->leads_back;
}

bool
connection_is_node_awaited(const struct connection *connection)
{
    const struct spec_capabilities *fixed = &connection->spec->capabilities;
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    bool has_topology =
        fixed->services >>
            CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS &
        1;
    return !facts->is_node_known && !facts->is_remembered && !facts->leads_back &&
           (!fixed->is_fixed || has_topology);
}

struct error *
connection_unknown_error(const struct connection *connection)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);
    return error_new(CODE_UNAVAILABLE,
                     "connection \"%s\" has not been reached yet, and its capabilities are unknown "
                     "(`capabilities:` in its file can list them): %s",
                     connection->spec->name,
                     facts->trouble ? facts->trouble : "it is being probed");
}

#define CAPABILITIES(function, member, without)                                                    \
    uint64_t function(const struct connection *connection)                                         \
    {                                                                                              \
        const struct connection_spec *spec = connection->spec;                                     \
        struct driver_facts *facts AUTO(driver_facts_cleanup) = driver_facts(connection->driver);  \
        uint64_t bits = spec->capabilities.is_fixed ? spec->capabilities.member : facts->member;   \
        return bits & ~(without);                                                                  \
    }

CAPABILITIES(connection_services, services, UINT64_C(0))
CAPABILITIES(connection_expansion, expansion, UINT64_C(0))
CAPABILITIES(connection_controller_capabilities, controller, spec->without_controller)
CAPABILITIES(connection_node_capabilities, node, spec->without_node)
CAPABILITIES(connection_group_capabilities, group, spec->without_group)

bool
connection_can(const struct connection *connection,
               Csi__V1__ControllerServiceCapability__RPC__Type capability)
{
    return connection_controller_capabilities(connection) >> (unsigned)capability & 1;
}

/* ---- sets ---- */

struct connection_set *
connection_set_new(size_t count)
{
    struct connection_set *set = memory_zeroed(sizeof *set);
    atomic_init(&set->references, 1);
    arena_init(&set->arena, NULL, 0, SIZE_MAX);
    set->slots = arena_zeroed(&set->arena, count * sizeof *set->slots);
    return set;
}

struct connection_set *
connection_set_share(struct connection_set *set)
{
    atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);
    return set;
}

void
connection_set_release(struct connection_set *set)
{
    if (!set || atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < set->count; i++)
        connection_release(set->slots[i].connection);
    for (size_t i = 0; i < set->elsewhere_count; i++)
        connection_release(set->elsewhere[i]);
    arena_clear(&set->arena);
    free(set);
}

void
connection_set_cleanup(struct connection_set **set)
{
    connection_set_release(*set);
}

struct connection *
connection_set_find(const struct connection_set *set, const char *name)
{
    struct connection *by_alias = NULL;
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        if (!connection)
            continue;
        if (strcmp(set->slots[i].name, name) == 0)
            return connection;
        if (!by_alias && spec_has_alias(connection->spec, name))
            by_alias = connection;
    }
    return by_alias;
}

struct error *
connection_set_check_nodes(const struct connection_set *set)
{
    if (!set->is_waiting)
        return NULL;
    return error_new(CODE_UNAVAILABLE, "the other nodes of the cluster are not known yet: the "
                                       "registry has not answered since this node was started");
}

struct error *
connection_set_check_missing(const struct connection_set *set)
{
    if (!set->missing || !set->missing[0])
        return NULL;
    return error_new(CODE_UNAVAILABLE,
                     "nodes of the cluster are not registered any more, and may have it: %s. Start "
                     "them, or forget those that do not come back: skycap node forget",
                     set->missing);
}

static int
compare_place(const void *place, const void *item)
{
    return strcmp(place, (*(struct connection *const *)item)->place);
}

struct connection *
connection_set_find_place(const struct connection_set *set, const char *place)
{
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        if (connection && strcmp(connection->place, place) == 0)
            return connection;
    }
    struct connection **found =
        bsearch(place, set->elsewhere, set->elsewhere_count, sizeof *set->elsewhere, compare_place);
    return found ? *found : NULL;
}

/* `own` is NULL: the driver is not known, so the handle may be of either form. */
static bool
read_home(const struct connection *own, const char *handle, char home[HANDLE_HOME_SIZE])
{
    bool has_suffix = strchr(handle, '@') != NULL;
    if (own && own->spec->driver->speaks_our_ids == has_suffix)
        return false;
    return has_suffix ? handle_read_key(handle, home) : handle_read_home(handle, home);
}

bool
connection_reads_home(const struct connection *connection, const char *handle)
{
    char home[HANDLE_HOME_SIZE];
    return read_home(connection, handle, home);
}

/* On this node a connection may have former names; on others it has the name that it has here. */
struct error *
connection_set_locate(const struct connection_set *set, const char *name, const char *handle,
                      struct connection **out)
{
    char home[HANDLE_HOME_SIZE], place[SPEC_MAX_ALIAS + 1 + sizeof home];
    *out = connection_set_find(set, name);
    bool is_ours = *out ? (*out)->spec->driver->has_homes : spec_is_alias(name);
    if (!set->home[0] || !is_ours || !read_home(*out, handle, home) || strcmp(home, set->home) == 0)
        return NULL;
    snprintf(place, sizeof place, "%s@%s", *out ? (*out)->spec->name : name, home);
    *out = connection_set_find_place(set, place);
    if (*out)
        return NULL;
    return error_new(
        CODE_UNAVAILABLE,
        "\"%s\" is on a node that is not registered: start it, or see skycap node list", handle);
}

const struct connection_slot *
connection_set_wrong(const struct connection_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (!set->slots[i].connection && spec_is_name(set->slots[i].name))
            return &set->slots[i];
    return NULL;
}

struct connection *
connection_set_default(const struct connection_set *set)
{
    struct connection *only = NULL;
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        if (!connection)
            continue;
        if (connection->spec->is_default)
            return connection;
        only = connection;
        count++;
    }
    return count == 1 && !connection_set_wrong(set) ? only : NULL;
}

struct connection *
connection_set_engine(const struct connection_set *set)
{
    struct connection *chosen = connection_set_default(set);
    if (chosen && chosen->spec->driver->speaks_our_ids)
        return chosen;
    for (size_t i = 0; i < set->count; i++) {
        struct connection *connection = set->slots[i].connection;
        if (connection && connection->spec->driver->speaks_our_ids)
            return connection;
    }
    return NULL;
}

const char *
connection_set_names(const struct connection_set *set, struct arena *arena)
{
    const char *names = "";
    for (size_t i = 0; i < set->count; i++)
        if (set->slots[i].connection)
            names = arena_print(arena, "%s%s%s", names, names[0] ? ", " : "", set->slots[i].name);
    return names[0] ? names : "none";
}
