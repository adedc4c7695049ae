/* SPDX-License-Identifier: Apache-2.0 */
/* skycap version */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "cli/command.h"
#include "cli/options.h"

static struct error *
run(int count, char **arguments, enum exit_code *exit_code)
{
    (void)exit_code;
    const char *format = "text";
    const struct option table[] = {
        {"output", 'o', "FORMAT", OPTION_TEXT, &format,
         "output format, text or json; default text"},
    };
    const struct options options = {
        .usage = "skycap version [options]",
        .summary =
            "Prints the version of this program and of the CSI specification that it serves.",
        .table = table,
        .count = COUNT_OF(table),
    };
    int rest;
    bool helped;
    struct error *error = options_parse(&options, count, arguments, &rest, &helped);
    if (error || helped)
        return error;
    if (rest < count)
        return error_new(CODE_INVALID_ARGUMENT, "unexpected argument \"%s\"", arguments[rest]);
    if (strcmp(format, "json") == 0)
        puts("{\"version\":\"" SKYCAP_VERSION "\",\"csi\":\"1.13.0\"}");
    else if (strcmp(format, "text") == 0)
        puts("skycap " SKYCAP_VERSION " (CSI 1.13.0)");
    else
        return error_new(CODE_INVALID_ARGUMENT, "--output: \"%s\" is neither text nor json",
                         format);
    return NULL;
}

const struct command version_command = {"version", "print the version", run};
