/* SPDX-License-Identifier: Apache-2.0 */
/* How long to look: as hypervisors do it for cores that halt. See lookout.h. */
#include "rpc/loop/lookout.h"

#define LEAST_NS 25000u

void
lookout_note_event(struct lookout *lookout, uint64_t now)
{
    uint64_t waited = now - lookout->since;
    lookout->since = now;
    lookout->company -= lookout->company > 0;
    if (waited >= LOOKOUT_MOST_NS)
        lookout->window_ns = lookout->window_ns / 2 < LEAST_NS ? 0 : lookout->window_ns / 2;
    else if (waited >= lookout->window_ns)
        lookout->window_ns = lookout->window_ns ? 2 * lookout->window_ns : LEAST_NS;
    if (lookout->window_ns > LOOKOUT_MOST_NS)
        lookout->window_ns = LOOKOUT_MOST_NS;
}
