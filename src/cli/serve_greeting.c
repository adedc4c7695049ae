/* SPDX-License-Identifier: Apache-2.0 */
/* The greeting: see serve_greeting.h. */
#include "cli/serve_greeting.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size_text.h"
#include "base/version.h"

static bool
is_wanted(const struct serve_settings *settings)
{
    const char *manager = getenv("NOTIFY_SOCKET");
    return (settings->greets || isatty(STDOUT_FILENO)) && !(manager && manager[0]);
}

static void
print_socket(const struct process *process)
{
    char text[ADDRESS_TEXT_SIZE];
    const struct address *address;
    for (size_t i = 0; (address = server_address(process->server, i)); i++) {
        address_print(address, text, sizeof text);
        printf("  %-8s%s\n", i ? "" : "socket", text);
    }
}

/* Of several back ends, the one for volumes that name none. A router has no engine here. */
static void
print_data(const struct process *process, const struct serve_settings *settings)
{
    const struct backend *backend = process->storage.backend;
    struct backend_capacity room;
    char directory[PATH_MAX], free[32];
    if (!realpath(settings->storage.directory, directory))
        return;
    printf("  %-8s%s", "data", directory);
    struct error *error AUTO(error_cleanup) =
        backend ? backend_capacity(process->storage.backend, &room) : NULL;
    if (backend && !error) {
        size_text_print((int64_t)room.available_bytes, free, sizeof free);
        printf(" (%s, %s free)", backend->ops->name, free);
    }
    printf("\n");
}

static bool
was_asked_for(const struct serve_settings *settings)
{
    const struct text_list *names = &settings->storage.backends;
    return names->count && strcmp(names->items[0], "auto") != 0;
}

/*
 * Whoever has named no back end expects instant clones. A data directory keeps its back end, so
 * this is told at each start; the log tells the reason at the first.
 */
static void
print_cost(const struct process *process, const struct serve_settings *settings)
{
    const struct backend *backend = process->storage.backend;
    if (!backend || strcmp(backend->ops->name, "dir") != 0 || was_asked_for(settings))
        return;
    printf("  %-8scopy %s: volumes are plain directories, and this data directory\n"
           "          stays so. For instant clones, start skycap%s with an empty data directory;\n"
           "          if btrfs does not work there, the log says why\n",
           "clones", backend->cuts_images ? "file by file" : "every byte",
           geteuid() == 0 ? "" : " as root");
}

/* Beyond the loopback there is a page only with a token. */
static void
print_page(const struct process *process, const struct serve_settings *settings)
{
    struct address address;
    struct error *error AUTO(error_cleanup) =
        process->http ? address_parse(settings->http, &address) : NULL;
    if (!process->http || error)
        return;
    bool has_colon = strchr(address.host, ':');
    bool has_page = http_is_loopback(process->http) || process->http_token;
    printf("  %-8shttp://%s%s%s:%u%s\n", has_page ? "page" : "metrics", has_colon ? "[" : "",
           address.host[0] ? address.host : "localhost", has_colon ? "]" : "",
           http_port(process->http), has_page ? "/" : "/metrics");
    if (process->http_token)
        printf("  %-8s%s (the page asks for it before it changes things)\n", "token",
               settings->http_token_file);
}

/* Commands find the default socket, and that of `make run` in its directory, by themselves. */
static bool
is_found_by_itself(const struct process *process, const struct serve_settings *settings)
{
    char own[PATH_MAX], there[PATH_MAX];
    const struct address *address = server_address(process->server, 0);
    return serve_settings_has_default_endpoint(settings) ||
           (realpath("run/csi.sock", own) && realpath(address->path, there) &&
            strcmp(own, there) == 0);
}

/* Only root can mount, so others create a volume without a place. */
static void
print_next(const struct process *process, const struct serve_settings *settings)
{
    char text[ADDRESS_TEXT_SIZE] = "";
    bool is_root = geteuid() == 0;
    if (!(settings->roles & ROLE_CONTROLLER) || !(settings->roles & ROLE_NODE))
        return;
    if (!is_found_by_itself(process, settings))
        address_print(server_address(process->server, 0), text, sizeof text);
    printf("Try next, in another terminal:\n  %s volume create hello --size 1Gi%s%s%s\n",
           program_invocation_name, is_root ? " --publish /mnt/hello" : "",
           text[0] ? " --endpoint " : "", text);
    if (!is_root)
        printf("Without root, volumes are plain directories and cannot be mounted; as root they "
               "can.\n");
}

void
serve_greet(const struct process *process, const struct serve_settings *settings)
{
    if (!is_wanted(settings))
        return;
    printf("Skycap %s is ready. Ctrl-C stops it; volumes stay.\n", SKYCAP_VERSION);
    print_socket(process);
    print_data(process, settings);
    print_cost(process, settings);
    print_page(process, settings);
    print_next(process, settings);
    fflush(stdout);
}
