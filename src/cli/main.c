/* SPDX-License-Identifier: Apache-2.0 */
/* skycap. A new command is one file and one line in this table. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/completion.h"
#include "velero/plugin.h"

static const struct command skycap_command = {
    .help =
        "A CSI driver, storage router, and OIM registry and controller. Documents that messages "
        "name, such as\ndocs/upgrade.md, are in the source, and are installed in share/doc/skycap.",
    .below =
        (const struct command *const[]){
            &serve_command,
            &volume_command,
            &snapshot_command,
            &op_command,
            &connection_command,
            &node_command,
            &registry_command,
            &repository_command,
            &oim_command,
            &parameters_command,
            &probe_command,
            &doctor_command,
            &pki_command,
            &velero_command,
            &call_command,
            &completion_command,
            &version_command,
            NULL,
        },
    .asking = "",
};

/* Velero starts a plugin with flags of its own and without a command. */
static bool
is_started_by_velero(int count, char **arguments)
{
    return plugin_is_started_by_host() && (count < 2 || arguments[1][0] == '-');
}

int
main(int count, char **arguments)
{
    enum exit_code exit_code;
    if (is_started_by_velero(count, arguments))
        return plugin_run(count, arguments);
    if (count > 1 && strcmp(arguments[1], "--version") == 0)
        arguments[1] = "version";
    if (count > 1 && strcmp(arguments[1], "complete") == 0) { /* for the scripts of completion */
        completion_print(&skycap_command, count - 2, arguments + 2);
        return EXIT_OK;
    }
    struct error *error AUTO(error_cleanup) =
        command_run(&skycap_command, "skycap", count, arguments, &exit_code);
    if (error)
        fprintf(stderr, "skycap: %s\n", error->message);
    return exit_code;
}
