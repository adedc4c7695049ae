/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine needs from the node: see volumes/volume_use.h. */
#include "node/volume_use.h"

#include "node/doctor.h"
#include "node/flush.h"
#include "node/parameters.h"
#include "node/use.h"

const struct volume_use node_volume_use = {
    .list = use_list,
    .flush = flush_volume,
    .apply_parameters = parameters_apply_all,
    .renew_limits = parameters_renew_limits,
    .sweep = doctor_sweep,
};
