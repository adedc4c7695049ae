/* SPDX-License-Identifier: Apache-2.0 */
/* How the source of a copy is published: see source_capability.h. */
#include "connections/copy/source_capability.h"

void
source_capability_init(struct source_capability *out, const Csi__V1__VolumeCapability *asked)
{
    csi__v1__volume_capability__init(&out->capability);
    csi__v1__volume_capability__access_mode__init(&out->access_mode);
    csi__v1__volume_capability__mount_volume__init(&out->mount);
    out->access_mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
    out->capability.access_mode = &out->access_mode;
    out->capability.access_type_case = asked->access_type_case;
    if (asked->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK)
        out->capability.block = asked->block;
    else if (asked->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
        out->capability.mount = &out->mount;
}
