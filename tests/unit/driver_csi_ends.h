/* SPDX-License-Identifier: Apache-2.0 */
/* Driver `csi` before one child, with the settings that tests of it like. */
#ifndef UNIT_DRIVER_CSI_ENDS_H
#define UNIT_DRIVER_CSI_ENDS_H

#include "driver_ends.h"

static inline const struct setting *
quick_settings(struct front *front, const struct child *child)
{
    return make_settings(&front->arena, "endpoint", child->ends.address, "probe-interval", "50ms",
                         "probe-timeout", "300ms", NULL);
}

/* Asks once and then hardly ever again. */
static inline const struct setting *
calm_settings(struct front *front, const struct child *child)
{
    return make_settings(&front->arena, "endpoint", child->ends.address, "probe-interval", "1h",
                         "probe-timeout", "300ms", NULL);
}

static inline void
open_both(struct front *front, struct child *child)
{
    child_open(child, CHILD_BOTH);
    front_prepare(front);
    front_open(front, &(struct front_setup){.settings = quick_settings(front, child)});
    CHECK(wait_for_facts(front->driver, true, NULL));
}

static inline void
close_both(struct front *front, struct child *child)
{
    gate_pass(&child->may_go);
    front_close(front);
    child_close(child);
}

#endif
