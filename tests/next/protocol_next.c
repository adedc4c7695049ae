/* SPDX-License-Identifier: Apache-2.0 */
/* For the test of rolling upgrades: the program as it is, but of another version of the protocol. */
#include "cluster/protocol.h"

const struct protocol_range protocol_own = {.oldest = 1, .newest = 2};
