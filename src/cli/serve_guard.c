/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before every call, on the loop. What carries "controllerid" goes to that controller, wherever it
 * is; the registry's own services judge their calls themselves, because it is the path that counts
 * there; everybody may ask for health and reflection; and all the rest, an OIM controller above
 * all, is for the registry: also methods that this server does not have, which a connection may
 * pass on.
 */
#include "cli/serve_guard.h"

#include <string.h>

#include "registry/rights.h"

static bool
judges_itself(const char *path)
{
    static const char *const services[] = {"/oim.v0.Registry/", "/skycap.v1.Registry/",
                                           "/grpc.health.v1.", "/grpc.reflection."};
    for (size_t i = 0; i < COUNT_OF(services); i++)
        if (!strncmp(path, services[i], strlen(services[i])))
            return true;
    return false;
}

/* The controller in a registry's own process is called without a detour, and by the same right. */
static bool
is_passed_to_own(const struct serve_guard *guard, const struct call *call)
{
    const char *id = metadata_find(call_metadata(call), "controllerid");
    if (!guard->registry || !guard->own_controller || !id || strcmp(id, guard->own_controller) != 0)
        return false;
    struct error *error AUTO(error_cleanup) = rights_check_pass(call_peer(call), id);
    return !error;
}

static struct error *
judge(struct call *call, void *context, bool *to_fallback)
{
    const struct serve_guard *guard = context;
    if (guard->registry && registry_wants_to_pass(guard->registry, call)) {
        *to_fallback = true;
        return NULL;
    }
    bool is_judged_later =
        call_method(call) ? judges_itself(call_path(call)) : guard->registry != NULL;
    if (guard->is_open || is_judged_later || is_passed_to_own(guard, call))
        return NULL;
    return rights_check_is(call_peer(call), RIGHTS_REGISTRY);
}

void
serve_guard_add(struct serve_guard *guard, struct server *server)
{
    server_set_guard(server, &(struct guard){judge, guard});
}
