/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a plugin: see host_environment.h. */
#include "velero/host_environment.h"

#include <string.h>
#include <unistd.h>

#include "velero/velero.h"

#define MIN_PORT "10000" /* for plugins that listen on TCP; the range of Velero */
#define MAX_PORT "25000"

/* Set below, or not for a plugin: what an outer host or our service manager has set for us. */
static bool
is_left_out(const char *entry)
{
    static const char *const names[] = {VELERO_COOKIE_NAME "=",
                                        "PLUGIN_",
                                        VELERO_EXTRA_KINDS "=",
                                        "TMPDIR=",
                                        "NOTIFY_SOCKET=",
                                        "WATCHDOG_",
                                        "LISTEN_"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Plugins older than PLUGIN_UNIX_SOCKET_DIR make their socket in TMPDIR. */
const char *const *
host_environment_make(const char *directory, const char *certificate, struct arena *arena)
{
    const char *own[] = {
        VELERO_COOKIE_NAME "=" VELERO_COOKIE_VALUE,
        VELERO_PROTOCOL_VERSIONS "=2",
        "PLUGIN_MIN_PORT=" MIN_PORT,
        "PLUGIN_MAX_PORT=" MAX_PORT,
        VELERO_EXTRA_KINDS "=" VELERO_KIND_SNAPSHOTTER_V2,
        arena_print(arena, VELERO_SOCKET_DIRECTORY "=%s", directory),
        arena_print(arena, "TMPDIR=%s", directory),
        certificate ? arena_print(arena, VELERO_CLIENT_CERTIFICATE "=%s", certificate) : NULL,
    };
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    const char **all = arena_alloc(arena, (count + COUNT_OF(own) + 1) * sizeof *all);
    for (size_t i = 0; i < count; i++)
        if (!is_left_out(environ[i]))
            all[used++] = arena_string(arena, environ[i]);
    for (size_t i = 0; i < COUNT_OF(own) && own[i]; i++)
        all[used++] = own[i];
    all[used] = NULL;
    return all;
}
