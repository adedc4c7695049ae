/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers of csi.v1.Controller and its neighbours ask of their call: see controller.h. */
#include "csi/controller.h"

#define PATIENCE_MS 30000 /* of a caller that names no deadline */
#define SHORTEST_MARGIN_MS 50
#define LONGEST_MARGIN_MS 500

struct engine *
controller_engine(const struct call *call)
{
    return ((struct controller *)call_context(call))->engine;
}

uint64_t
controller_wait_ms(const struct call *call)
{
    uint64_t left = call_time_left(call);
    if (left == UINT64_MAX)
        return PATIENCE_MS;
    uint64_t left_ms = left / 1000000;
    uint64_t margin_ms = left_ms / 10;
    if (margin_ms < SHORTEST_MARGIN_MS)
        margin_ms = SHORTEST_MARGIN_MS;
    if (margin_ms > LONGEST_MARGIN_MS)
        margin_ms = LONGEST_MARGIN_MS;
    return left_ms > margin_ms ? left_ms - margin_ms : 0;
}
