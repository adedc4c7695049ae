/* SPDX-License-Identifier: Apache-2.0 */
/* skycap-velero: the plugin as a program of its own, which can copy itself into a directory. */
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/new_file.h"
#include "velero/plugin.h"

#define NAME "skycap-velero"
#define SIZE_LIMIT ((size_t)64 << 20)

static struct error *
install(const char *directory)
{
    struct buffer program AUTO(buffer_clear) = {0};
    struct buffer path AUTO(buffer_clear) = {0};
    struct new_file file AUTO(new_file_clear) = {0};
    struct error *error = files_read_all("/proc/self/exe", SIZE_LIMIT, &program);
    buffer_print(&path, "%s/" NAME, directory);
    if (!error)
        error = new_file_write(&file, buffer_text(&path), 0755, program.bytes, program.size);
    return error ? error : new_file_put(&file, true);
}

int
main(int count, char **arguments)
{
    if (plugin_is_started_by_host() || count != 3 || strcmp(arguments[1], "install") != 0)
        return plugin_run(count, arguments);
    struct error *error AUTO(error_cleanup) = install(arguments[2]);
    if (error)
        fprintf(stderr, NAME ": %s\n", error->message);
    return error ? 1 : 0;
}
