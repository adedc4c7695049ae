/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Repositories, for the snapshots of this node. The context is the controller. */
#ifndef CSI_REPOSITORIES_H
#define CSI_REPOSITORIES_H

#include "proto/repositories.rpc.h"

extern const struct skycap_v1_repositories repositories_handlers;

#endif
