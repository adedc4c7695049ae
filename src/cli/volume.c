/* SPDX-License-Identifier: Apache-2.0 */
/* skycap volume: finds the command below it and runs that. */
#include "cli/volume.h"

static const struct command table[] = {
    {"create", "create a volume", volume_run_create},
    {"list", "list all volumes, oldest first", volume_run_list},
    {"show", "show one volume", volume_run_show},
    {"clone", "create a volume with the content of another", volume_run_clone},
    {"expand", "expand a volume, which may be in use", volume_run_expand},
    {"modify", "change a volume's parameters", volume_run_modify},
    {"delete", "delete volumes and their data", volume_run_delete},
    {"publish", "mount a volume at a path of its node", volume_run_publish},
    {"unpublish", "undo a publication", volume_run_unpublish},
};

static VERB(run)
{
    static const struct verbs verbs = {"volume",
                                       "Works with the volumes of a server. VOLUME is an id, or "
                                       "the name that the volume was created "
                                       "with.",
                                       table, COUNT_OF(table)};
    return verbs_run(&verbs, count, arguments, exit_code);
}

const struct command volume_command = {"volume", "create, clone, grow, publish and delete volumes",
                                       run};
