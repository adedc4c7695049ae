/* SPDX-License-Identifier: Apache-2.0 */
/* A place for the OIM controller, until it is there. */
#include "oim/controller.h"

struct error *
oim_controller_open(const struct oim_controller_options *options, struct oim_controller **out)
{
    (void)options;
    *out = NULL;
    return error_new(CODE_UNIMPLEMENTED, "the OIM controller is not there yet");
}

void
oim_controller_add(struct oim_controller *controller, struct server *server)
{
    (void)controller;
    (void)server;
}

void
oim_controller_begin(struct oim_controller *controller)
{
    (void)controller;
}

void
oim_controller_stop(struct oim_controller *controller)
{
    (void)controller;
}

void
oim_controller_close(struct oim_controller *controller)
{
    (void)controller;
}
