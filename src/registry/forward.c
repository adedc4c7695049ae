/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards calls to the controller that the header "controllerid" names. Loop thread. */
#include <string.h>

#include "drivers/driver.h"
#include "registry/registry_internal.h"
#include "registry/rights.h"

#define CONTROLLER_ID "controllerid"

static bool
begins_with(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

static bool
is_own_method(const char *path)
{
    return begins_with(path, "/oim.v0.Registry/") || begins_with(path, "/skycap.v1.Registry/") ||
           begins_with(path, "/skycap.v1.ClusterStore/");
}

static bool
is_own_controller(const struct registry *registry, const char *id)
{
    return registry->options.own_controller && !strcmp(registry->options.own_controller, id);
}

bool
registry_should_forward(const struct registry *registry, const struct call *call)
{
    const struct metadata *metadata = call_metadata(call);
    const char *id = metadata_find(metadata, CONTROLLER_ID);
    if (!id || is_own_method(call_path(call)))
        return false;
    return metadata_count(metadata, CONTROLLER_ID) > 1 || !is_own_controller(registry, id);
}

static struct error *
unknown_method(const struct call *call)
{
    return error_new(CODE_UNIMPLEMENTED, "unknown method %s", call_path(call));
}

/* ---- loops ---- */

/* With TLS a controller proves its name, which a registry cannot. */
static bool
may_go_in_circles(const struct registry *registry)
{
    return !registry->options.tls;
}

/* Each process that forwards a call adds its id. A call that comes back would loop forever. */
static struct error *
check_circle(const struct registry *registry, const struct call *call, const char *id)
{
    const struct metadata *metadata = call_metadata(call);
    for (const struct metadata_entry *entry = metadata->first; entry; entry = entry->next)
        if (!strcmp(entry->key, DRIVER_VIA) && !strcmp(entry->value, registry->instance))
            return error_new(CODE_FAILED_PRECONDITION,
                             "the address of controller \"%s\" leads back to this registry: "
                             "register the one at which the controller itself listens",
                             id);
    return NULL;
}

/* ---- forwarding ---- */

struct error *
registry_forward(struct call *call)
{
    const struct registry *registry = call_context(call);
    const char *id = metadata_find(call_metadata(call), CONTROLLER_ID);
    if (is_own_method(call_path(call)))
        return unknown_method(call);
    if (!id)
        return error_new(CODE_UNIMPLEMENTED,
                         "unknown method %s of the registry; to call a controller, name it in the "
                         "header " CONTROLLER_ID,
                         call_path(call));
    if (metadata_count(call_metadata(call), CONTROLLER_ID) > 1)
        return error_new(CODE_INVALID_ARGUMENT,
                         "the header " CONTROLLER_ID " must have one value, and has several");
    struct error *error =
        registry->options.is_open ? NULL : rights_check_forward(call_peer(call), id);
    if (!error && is_own_controller(registry, id))
        error = unknown_method(call);
    if (!error)
        error = follower_check(registry->follower);
    if (!error && may_go_in_circles(registry))
        error = check_circle(registry, call, id);
    if (error)
        return error;
    if (may_go_in_circles(registry))
        call_add_field(call, DRIVER_VIA, registry->instance);
    return controllers_forward(registry->controllers, id, call);
}
