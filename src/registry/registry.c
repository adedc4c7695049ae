/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the registry: see registry.h. */
#include "registry/registry.h"

#include <stdlib.h>

#include "base/memory.h"
#include "registry/registry_internal.h"

struct error *
registry_open(const struct registry_options *options, struct registry **out)
{
    struct registry *registry = memory_zeroed(sizeof *registry);
    registry->options = *options;
    driver_make_instance(registry->instance);
    registry->controllers = controllers_new(options->runtime, options->tls, options->is_open);
    feed_init(&registry->feed);
    struct follower_options follower = {options->store, registry->controllers, &registry->feed,
                                        options->log};
    struct error *error = follower_open(&follower, &registry->follower);
    if (error) {
        registry_close(registry);
        return error_wrap(error, "read the registry");
    }
    *out = registry;
    return NULL;
}

struct error *
registry_check(const struct registry *registry)
{
    return follower_check(registry->follower);
}

void
registry_add(struct registry *registry, struct server *server)
{
    server_add_service(server, &oim_v0_registry_service, &registry_oim_handlers, registry);
    server_add_service(server, &skycap_v1_registry_service, &registry_handlers, registry);
    server_add_service(server, &skycap_v1_cluster_store_service, &registry_rows_handlers, registry);
    server_set_fallback(
        server, &(struct fallback){.run = registry_forward, .on_loop = true, .context = registry});
}

void
registry_stop(struct registry *registry)
{
    atomic_store(&registry->is_stopped, true);
    follower_stop(registry->follower);
}

void
registry_close(struct registry *registry)
{
    if (!registry)
        return;
    follower_close(registry->follower);
    controllers_free(registry->controllers);
    feed_clear(&registry->feed);
    free(registry);
}

static void
print_gauge(struct buffer *out, const char *name, const char *help, size_t value)
{
    buffer_print(out, "# HELP %s %s\n# TYPE %s gauge\n%s %zu\n", name, help, name, name, value);
}

void
registry_print_metrics(struct registry *registry, struct buffer *out)
{
    struct controllers_counts counts = controllers_count(registry->controllers);
    print_gauge(out, "skycap_registry_controllers", "Controllers that are registered.",
                counts.registered);
    print_gauge(out, "skycap_registry_controllers_expired",
                "Those of them that have not renewed their registration in time.", counts.expired);
    print_gauge(out, "skycap_registry_nodes", "Nodes that are registered.", counts.nodes);
    print_gauge(out, "skycap_registry_nodes_expired",
                "Those of them that have not renewed their registration in time.",
                counts.nodes_expired);
    print_gauge(out, "skycap_registry_channels", "Controllers with an open channel.",
                counts.channels);
    print_gauge(out, "skycap_registry_watches", "Clients that watch.",
                atomic_load(&registry->watches));
}
