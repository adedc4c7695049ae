/* SPDX-License-Identifier: Apache-2.0 */
/* skycap version. */
#include <stdio.h>

#include "base/version.h"
#include "cli/client.h"

static struct error *
print(struct client *client)
{
    puts(client->as_json ? "{\"version\":\"" SKYCAP_VERSION "\",\"csi\":\"1.13.0\"}"
                         : "skycap " SKYCAP_VERSION " (CSI 1.13.0)");
    return NULL;
}

const struct command version_command = {
    .name = "version",
    .summary = "print the version",
    .help = "Prints the version of this program and of the CSI specification that it serves.",
    .more_flags = COMMAND_OUTPUT_FLAG,
    .run = print,
};
