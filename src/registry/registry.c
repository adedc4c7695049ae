/* SPDX-License-Identifier: Apache-2.0 */
/* A place for the registry, until it is there. */
#include "registry/registry.h"

struct error *
registry_open(const struct registry_options *options, struct registry **out)
{
    (void)options;
    *out = NULL;
    return error_new(CODE_UNIMPLEMENTED, "the registry is not there yet");
}

void
registry_add(struct registry *registry, struct server *server)
{
    (void)registry;
    (void)server;
}

bool
registry_wants_to_pass(const struct registry *registry, const struct call *call)
{
    (void)registry;
    (void)call;
    return false;
}

void
registry_stop(struct registry *registry)
{
    (void)registry;
}

void
registry_close(struct registry *registry)
{
    (void)registry;
}

void
registry_print_metrics(struct registry *registry, struct buffer *out)
{
    (void)registry;
    (void)out;
}
