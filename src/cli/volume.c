/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume. */
#include "cli/command.h"

const struct command volume_command = {
    .name = "volume",
    .summary = "create, clone, grow, publish and delete volumes",
    .help = "Works with the volumes of a server. VOLUME is an id, or the name that the volume was "
            "created with.",
    .below =
        (const struct command *const[]){
            &volume_create_command,
            &volume_list_command,
            &volume_show_command,
            &volume_clone_command,
            &volume_move_command,
            &volume_recover_command,
            &volume_expand_command,
            &volume_modify_command,
            &volume_delete_command,
            &volume_publish_command,
            &volume_unpublish_command,
            NULL,
        },
};
