/* SPDX-License-Identifier: Apache-2.0 */
/* The node's side of volumes/volume_use.h. */
#ifndef NODE_VOLUME_USE_H
#define NODE_VOLUME_USE_H

#include "volumes/volume_use.h"

extern const struct volume_use node_volume_use;

#endif
