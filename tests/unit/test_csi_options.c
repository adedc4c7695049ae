/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of driver `csi`: what comes out, and what is said of what is wrong. */
#include "drivers/csi_options.h"

#include "driver_ends.h"

static struct arena arena;
static struct csi_options options;

/* The message, "" for none. */
static const char *
read_settings(const struct setting *settings)
{
    struct error *error AUTO(error_cleanup) = csi_options_read(settings, &arena, &options);
    CHECK(!error || error->code == CODE_INVALID_ARGUMENT);
    return error ? arena_string(&arena, error->message) : "";
}

#define READ(...) read_settings(make_settings(&arena, __VA_ARGS__, NULL))

static const struct setting *
list_of(const char *first, const char *second)
{
    struct setting *list = arena_zeroed(&arena, sizeof *list);
    struct setting *items = arena_zeroed(&arena, 2 * sizeof *items);
    items[0] = (struct setting){.line = 3, .text = first, .next = &items[1]};
    items[1] = (struct setting){.line = 3, .text = second};
    *list = (struct setting){SETTING_LIST, .line = 3, .first = items};
    return list;
}

static const struct setting *
unix_settings(void)
{
    return make_settings(&arena, "endpoint", "unix:///run/x.sock", NULL);
}

static void
endpoints(void)
{
    CHECK_TEXT(READ("endpoint", "unix:///run/x.sock"), "");
    CHECK_TEXT(options.endpoint, "unix:///run/x.sock");
    CHECK_TEXT(options.node_endpoint, NULL);
    CHECK_NUMBER(options.probe_interval_ms, 10000);
    CHECK_NUMBER(options.probe_timeout_ms, 5000);
    CHECK(!options.command && !options.tls.is_given);

    CHECK_TEXT(READ("endpoint", "unix:///a", "node-endpoint", "unix:///b"), "");
    CHECK_TEXT(options.endpoint, "unix:///a");
    CHECK_TEXT(options.node_endpoint, "unix:///b");

    CHECK_TEXT(READ("node-endpoint", "unix:///b"), "");
    CHECK_TEXT(options.endpoint, "unix:///b");
    CHECK_TEXT(options.node_endpoint, NULL);

    CHECK_TEXT(READ("endpoint", "unix:///a", "node-endpoint", "unix:///a"), "");
    CHECK_TEXT(options.node_endpoint, NULL); /* one channel is enough */
}

static void
wrong_endpoints(void)
{
    CHECK_TEXT(READ("probe-interval", "1s"),
               "line 1: endpoint: it is missing: set the address of the driver's socket");
    CHECK_TEXT(read_settings(NULL),
               "line 1: endpoint: it is missing: set the address of the driver's socket");
    CHECK(strstr(READ("endpoint", "ftp://x"), "line 2: endpoint: ") != NULL);
    CHECK_TEXT(READ("endpoint", "10.0.0.1:5000"),
               "line 2: endpoint: this is a network address: set `tls:` or `insecure: true`");
    CHECK_TEXT(READ("endpoint", "unix:///a", "node-endpoint", "10.0.0.1:5000"),
               "line 2: node-endpoint: this is a network address: set `tls:` or `insecure: true`");
    CHECK_TEXT(READ("endpoint", ":5000", "insecure", "true"),
               "line 2: endpoint: a host and a port to connect to are missing");
    CHECK_TEXT(READ("endpoint", "10.0.0.1:5000", "insecure", "true"), "");
    CHECK_TEXT(READ("endpoint", "unix:///a", "insecure", "true"),
               "line 2: insecure: this needs an endpoint like HOST:PORT");
    CHECK(strstr(READ("controller-endpoint", "unix:///a"),
                 "\"controller-endpoint\" is not known here") != NULL);
}

static void
tls(void)
{
    const struct setting *whole = make_settings(&arena, "ca", "/ca", "certificate", "/crt", "key",
                                                "/key", "name", "storage", NULL);
    const struct setting *tcp = make_settings(&arena, "endpoint", "10.0.0.1:5000", NULL);
    CHECK_TEXT(read_settings(add_setting(&arena, tcp, "tls", whole)), "");
    CHECK(options.tls.is_given);
    CHECK_TEXT(options.tls.files.ca_file, "/ca");
    CHECK_TEXT(options.tls.files.certificate_file, "/crt");
    CHECK_TEXT(options.tls.files.key_file, "/key");
    CHECK_TEXT(options.tls.name, "storage");

    const struct setting *part = make_settings(&arena, "ca", "/ca", "key", "/key", NULL);
    CHECK_TEXT(read_settings(add_setting(&arena, tcp, "tls", part)),
               "line 3: tls: certificate is missing: the path of a file");
    CHECK_TEXT(read_settings(add_setting(&arena, unix_settings(), "tls", whole)),
               "line 3: tls: this needs an endpoint like HOST:PORT");
    const struct setting *both =
        make_settings(&arena, "endpoint", "10.0.0.1:5000", "insecure", "true", NULL);
    CHECK_TEXT(read_settings(add_setting(&arena, both, "tls", whole)),
               "line 2: insecure: there is `tls:` too; use only one");
}

static void
command(void)
{
    const struct setting *settings = unix_settings();
    CHECK_TEXT(read_settings(add_setting(&arena, settings, "command", list_of("/bin/x", "--y"))),
               "");
    CHECK_TEXT(options.command[0], "/bin/x");
    CHECK_TEXT(options.command[1], "--y");
    CHECK_TEXT(options.command[2], NULL);
    CHECK_TEXT(READ("endpoint", "unix:///a", "command", "/bin/x"), "");
    CHECK_TEXT(options.command[1], NULL);
    CHECK_TEXT(
        READ("endpoint", "unix:///a", "command", "x"),
        "line 2: command: the first item is the absolute path of a program, like /usr/bin/x");

    const struct setting *variables = make_settings(&arena, "NAME", "value", NULL);
    settings = add_setting(&arena, settings, "environment", variables);
    CHECK_TEXT(read_settings(settings), "line 3: environment: it needs `command:`");
    settings = add_setting(&arena, settings, "command", list_of("/bin/x", "--y"));
    CHECK_TEXT(read_settings(settings), "");
    CHECK_TEXT(text_map_find(&options.environment, "NAME"), "value");
    variables = make_settings(&arena, "A=B", "value", NULL);
    CHECK_TEXT(read_settings(add_setting(
                   &arena, add_setting(&arena, unix_settings(), "environment", variables),
                   "command", list_of("/bin/x", "--y"))),
               "line 3: environment: a name is empty or has a '='");
}

/* The file's text may go while the driver stays. */
static void
texts_are_copied(void)
{
    struct arena file;
    arena_init(&file, NULL, 0, SIZE_MAX);
    const struct setting *variables =
        make_settings(&file, arena_string(&file, "NAME"), arena_string(&file, "value"), NULL);
    const struct setting *settings =
        add_setting(&file,
                    make_settings(&file, "endpoint", arena_string(&file, "unix:///a"), "command",
                                  "/bin/x", NULL),
                    "environment", variables);
    CHECK_TEXT(read_settings(settings), "");
    arena_clear(&file);
    CHECK_TEXT(options.endpoint, "unix:///a");
    CHECK_TEXT(text_map_find(&options.environment, "NAME"), "value");
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    endpoints();
    wrong_endpoints();
    tls();
    command();
    texts_are_copied();
    arena_clear(&arena);
    return check_report("csi_options");
}
