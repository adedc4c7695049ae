/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the protocol of nodes that this program speaks: see protocol.h. */
#include "cluster/protocol.h"

const struct protocol_range protocol_own = {.oldest = 1, .newest = 1};
