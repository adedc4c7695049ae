# SPDX-License-Identifier: Apache-2.0
# A volume with ext4: nomad volume create data.volume.hcl
id           = "data"
name         = "data"
type         = "csi"
plugin_id    = "skycap"
capacity_min = "10GiB"
capacity_max = "10GiB"

capability {
  access_mode     = "single-node-writer"
  attachment_mode = "file-system"
}

mount_options {
  fs_type = "ext4"
}
