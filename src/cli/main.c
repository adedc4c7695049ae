/* SPDX-License-Identifier: Apache-2.0 */
/* skycap. A new command is one file and one line in this table. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

static const struct command skycap_command = {
    .help = "A CSI driver, storage router, and OIM registry and controller.",
    .below =
        (const struct command *const[]){
            &serve_command,
            &volume_command,
            &snapshot_command,
            &op_command,
            &connection_command,
            &node_command,
            &registry_command,
            &oim_command,
            &probe_command,
            &doctor_command,
            &pki_command,
            &call_command,
            &version_command,
            NULL,
        },
    .asking = "",
};

int
main(int count, char **arguments)
{
    enum exit_code exit_code;
    if (count > 1 && strcmp(arguments[1], "--version") == 0)
        arguments[1] = "version";
    struct error *error AUTO(error_cleanup) =
        command_run(&skycap_command, "skycap", count, arguments, &exit_code);
    if (error)
        fprintf(stderr, "skycap: %s\n", error->message);
    return exit_code;
}
