/* SPDX-License-Identifier: Apache-2.0 */
/* Connection files: every key, what it is without it, and what is said of one that is wrong. The drivers are the test's own. */
#include "connections/config/spec.h"

#include <string.h>

#include "base/memory.h"
#include "check.h"

static struct arena arena;

/* ---- drivers ---- */

static struct error *
check_plain(const struct setting *settings)
{
    static const char *const known[] = {"endpoint", "plain", NULL};
    struct error *error = settings_check_keys(settings, known);
    if (!error && settings_find(settings, "plain"))
        error = error_new(CODE_INVALID_ARGUMENT, "there is no socket");
    return error;
}

static const struct driver_ops drivers[] = {{.name = "local"},
                                            {.name = "csi", .check = check_plain}};

const struct driver_ops *
driver_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(drivers); i++)
        if (strcmp(drivers[i].name, name) == 0)
            return &drivers[i];
    return NULL;
}

const char *
driver_names(void)
{
    return "local, csi";
}

/* ---- helpers ---- */

/* What is wrong with the file, "" for nothing. */
static const char *
trouble_of(const char *text)
{
    struct connection_spec *spec = NULL;
    struct error *error AUTO(error_cleanup) = spec_read("fast", text, strlen(text), &arena, &spec);
    CHECK(!error == !!spec);
    CHECK(!error || error->code == CODE_INVALID_ARGUMENT);
    return error ? arena_string(&arena, error->message) : "";
}

/* The line `text` behind a good first one. */
static const char *
trouble_with(const char *text)
{
    return trouble_of(arena_print(&arena, "driver: local\n%s\n", text));
}

static const struct connection_spec *
read_good(const char *text)
{
    static const struct connection_spec nothing = {.name = ""};
    struct connection_spec *spec = NULL;
    struct error *error AUTO(error_cleanup) = spec_read("fast", text, strlen(text), &arena, &spec);
    CHECK_TEXT(error ? error->message : "", "");
    return spec ? spec : &nothing;
}

static bool
is_name(const char *name)
{
    struct error *error AUTO(error_cleanup) = spec_check_name(name);
    return !error;
}

/* ---- names ---- */

static void
test_names(void)
{
    static const char *const good[] = {"a", "0", "fast", "a-b", "a-", "abcdefghij0123456789"};
    static const char *const bad[] = {"",
                                      "-a",
                                      "A",
                                      "a_b",
                                      "a.b",
                                      "a/b",
                                      "..",
                                      ".",
                                      "../etc/x",
                                      "a b",
                                      "\xc3\xa4",
                                      "a\n",
                                      "abcdefghij0123456789x",
                                      "v:a"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK(is_name(good[i]));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(!is_name(bad[i]));
    char longer[301];
    memset(longer, 'x', 300);
    longer[300] = '\0';
    CHECK(!is_name(longer));
    struct error *error AUTO(error_cleanup) = spec_check_name("../\n\xff");
    CHECK_TEXT(error->message, "\"../\\n\xef\xbf\xbd\" is not a connection name: use 1 to 20 "
                               "lowercase letters, digits and dashes, and no dash at the start");
    struct connection_spec *spec = NULL;
    struct error *refused AUTO(error_cleanup) = spec_read("No", "driver: local", 13, &arena, &spec);
    CHECK(refused && strstr(refused->message, "\"No\" is not a connection name"));
}

/* ---- good files ---- */

static void
test_defaults(void)
{
    const struct connection_spec *spec = read_good("driver: local\n");
    CHECK_TEXT(spec->name, "fast");
    CHECK(spec->driver == &drivers[0]);
    CHECK(!spec->options);
    CHECK(!spec->is_default);
    CHECK_NUMBER(spec->priority, 0);
    CHECK_NUMBER(spec->labels.count, 0);
    CHECK_NUMBER(spec->aliases.count, 0);
    CHECK_NUMBER(spec->parameters.count, 0);
    CHECK_NUMBER(spec->secrets, SPEC_SECRETS_ALL);
    CHECK_NUMBER(spec->without_controller, 0);
    CHECK_NUMBER(spec->without_node, 0);
    CHECK_NUMBER(spec->without_group, 0);
    CHECK_NUMBER(spec->capacity_bytes, INT64_MAX);
    CHECK_NUMBER(spec->topology_count, 0);
    CHECK_NUMBER(spec->max_calls, 64);
    CHECK_NUMBER(spec->timeout_ms, 300000);
}

static void
test_every_key(void)
{
    const struct connection_spec *spec =
        read_good("driver: csi\n"
                  "options: {endpoint: \"unix:///run/csi/hostpath.sock\"}\n"
                  "default: true\n"
                  "priority: -10\n"
                  "labels: {media: ssd, example.com/tier: \"1\", empty: \"\"}\n"
                  "aliases: [old-name, older]\n"
                  "parameters:\n"
                  "  fsType: xfs\n"
                  "  replicas: 3\n"
                  "secrets: scoped\n"
                  "capabilities:\n"
                  "  without: [CLONE_VOLUME, EXPAND_VOLUME, STAGE_UNSTAGE_VOLUME,\n"
                  "            CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT]\n"
                  "capacity: 10Ti\n"
                  "topology:\n"
                  "- {example.com/zone: a, rack: \"7\"}\n"
                  "- example.com/zone: b\n"
                  "max-calls: 1024\n"
                  "timeout: 90s\n");
    CHECK(spec->driver == &drivers[1]);
    CHECK_TEXT(settings_find(spec->options, "endpoint")->text, "unix:///run/csi/hostpath.sock");
    CHECK(spec->is_default);
    CHECK_NUMBER(spec->priority, -10);
    CHECK_NUMBER(spec->labels.count, 3);
    CHECK_TEXT(text_map_find(&spec->labels, "example.com/tier"), "1");
    CHECK_NUMBER(spec->aliases.count, 2);
    CHECK_TEXT(spec->aliases.items[1], "older");
    CHECK_TEXT(text_map_find(&spec->parameters, "replicas"), "3");
    CHECK_NUMBER(spec->secrets, SPEC_SECRETS_SCOPED);
    CHECK_NUMBER(spec->without_controller, 1 << 7 | 1 << 9);
    CHECK_NUMBER(spec->without_node, 1 << 1 | 1 << 3);
    CHECK_NUMBER(spec->without_group, 1 << 1);
    CHECK_NUMBER(spec->capacity_bytes, INT64_C(10) << 40);
    CHECK_NUMBER(spec->topology_count, 2);
    CHECK_TEXT(text_map_find(&spec->topology[0], "rack"), "7");
    CHECK_TEXT(text_map_find(&spec->topology[1], "example.com/zone"), "b");
    CHECK_NUMBER(spec->max_calls, 1024);
    CHECK_NUMBER(spec->timeout_ms, 90000);
}

static void
test_variants(void)
{
    CHECK_NUMBER(read_good("{\"driver\":\"local\",\"max-calls\":1}")->max_calls, 1);
    CHECK_NUMBER(read_good("driver: local\ncapacity: unlimited\n")->capacity_bytes, INT64_MAX);
    CHECK_NUMBER(read_good("driver: local\ncapacity: 0\n")->capacity_bytes, 0);
    CHECK_NUMBER(read_good("driver: local\nsecrets: none\n")->secrets, SPEC_SECRETS_NONE);
    CHECK_NUMBER(read_good("driver: local\nsecrets: all\n")->secrets, SPEC_SECRETS_ALL);
    CHECK_TEXT(read_good("driver: local\naliases: old\n")->aliases.items[0], "old");
    CHECK_NUMBER(
        read_good("driver: local\ncapabilities: {without: GET_CAPACITY}\n")->without_controller,
        1 << 4);
    CHECK_NUMBER(read_good("driver: local\noptions: {}\nlabels: {}\ntopology: []\n"
                           "capabilities: {}\naliases: []\n")
                     ->topology_count,
                 0);
}

/* ---- bad files ---- */

static void
test_drivers(void)
{
    CHECK_TEXT(trouble_of(""), "line 1: driver: it is missing; there are: local, csi");
    CHECK_TEXT(trouble_of("\nmax-calls: 1\n"),
               "line 2: driver: it is missing; there are: local, csi");
    CHECK_TEXT(trouble_of("driver: proxy\n"), "line 1: driver: \"proxy\" is none of: local, csi");
    CHECK_TEXT(trouble_of("driver: [csi]\n"),
               "line 1: driver: this is a list, and should be one text");
    CHECK_TEXT(trouble_of("driver:\n"), "line 1: driver: there is no value: leave the key out, or "
                                        "write \"\" for an empty text");
    CHECK_TEXT(trouble_with("options: 5"),
               "line 2: options: this is a text, and should be a map, like {key: value}");
    CHECK_TEXT(trouble_of("driver: csi\noptions:\n  endpoint: x\n  socket: y\n"),
               "line 4: \"socket\" is not known here; there are: endpoint, plain");
    CHECK_TEXT(trouble_of("driver: csi\noptions: {plain: x}\n"),
               "line 2: options: there is no socket");
    CHECK_TEXT(trouble_of("- driver: csi\n"),
               "line 1: this should be a map of keys, like \"driver: local\"");
    CHECK_TEXT(trouble_of("driver: *x\n"),
               "line 1: aliases (*name) are not supported: write the value itself");
}

static void
test_wrong_values(void)
{
    CHECK_TEXT(trouble_with("proxy: {configFolder: /x}"),
               "line 2: \"proxy\" is not known here; there are: driver, options, default, "
               "priority, labels, aliases, parameters, secrets, capabilities, capacity, topology, "
               "max-calls, timeout");
    CHECK_TEXT(trouble_with("default: yes"), "line 2: default: \"yes\" is none of: false, true");
    CHECK_TEXT(trouble_with("priority: high"),
               "line 2: priority: \"high\" is no number from -1000000 to 1000000");
    CHECK_TEXT(trouble_with("max-calls: 0"),
               "line 2: max-calls: \"0\" is no number from 1 to 1024");
    CHECK_TEXT(trouble_with("max-calls: 1025"),
               "line 2: max-calls: \"1025\" is no number from 1 to 1024");
    CHECK_TEXT(trouble_with("timeout: 5"), "line 2: timeout: \"5\" is no time from 1ms to 24h: use "
                                           "a number with ms, s, m or h behind");
    CHECK_TEXT(trouble_with("secrets: some"),
               "line 2: secrets: \"some\" is none of: all, scoped, none");
    CHECK_TEXT(trouble_with("capacity: much"),
               "line 2: capacity: \"much\" is no size: use \"unlimited\", a number of bytes, or "
               "like 10Gi");
    CHECK_TEXT(trouble_with("capacity: [1]"),
               "line 2: capacity: this is a list, and should be one text");
    CHECK_TEXT(trouble_with("parameters: {\"\": x}"), "line 2: parameters: a name is empty");
    CHECK_TEXT(trouble_with("parameters: {a: {b: c}}"),
               "line 2: a: this is a map, and should be one text");
}

static void
test_wrong_capabilities(void)
{
    CHECK_TEXT(trouble_with("capabilities: [CLONE_VOLUME]"),
               "line 2: capabilities: this is a list, and should be a map, like {key: value}");
    CHECK_TEXT(trouble_with("capabilities: {with: CLONE_VOLUME}"),
               "line 2: \"with\" is not known here; there are: controller, node, group, services, "
               "expansion, without");
    const char *all =
        "CREATE_DELETE_VOLUME, PUBLISH_UNPUBLISH_VOLUME, LIST_VOLUMES, GET_CAPACITY, "
        "CREATE_DELETE_SNAPSHOT, LIST_SNAPSHOTS, CLONE_VOLUME, PUBLISH_READONLY, EXPAND_VOLUME, "
        "LIST_VOLUMES_PUBLISHED_NODES, VOLUME_CONDITION, GET_VOLUME, SINGLE_NODE_MULTI_WRITER, "
        "MODIFY_VOLUME, GET_SNAPSHOT, GET_VOLUME_HEALTH, LIST_VOLUME_HEALTH, "
        "STAGE_UNSTAGE_VOLUME, GET_VOLUME_STATS, VOLUME_MOUNT_GROUP, GET_STORAGE_HEALTH, "
        "CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT";
    CHECK_TEXT(trouble_with("capabilities:\n  without: [CLONE_VOLUME, UNKNOWN]"),
               arena_print(&arena, "line 3: without: \"UNKNOWN\" is none of: %s", all));
    CHECK_TEXT(trouble_with("capabilities: {without: clone_volume}"),
               arena_print(&arena, "line 2: without: \"clone_volume\" is none of: %s", all));
}

static void
test_wrong_labels(void)
{
    const char *told = "a label and its value have at most 63 letters, digits and characters of "
                       ". _ / -";
    char longer[65];
    memset(longer, 'x', 64);
    longer[64] = '\0';
    CHECK_TEXT(trouble_with("labels: {media: \"a b\"}"),
               arena_print(&arena, "line 2: media: %s", told));
    CHECK_TEXT(trouble_with("labels: {\"me=dia\": ssd}"),
               arena_print(&arena, "line 2: \"me=dia\": %s", told));
    CHECK_TEXT(trouble_with("labels: {\"\": ssd}"), arena_print(&arena, "line 2: \"\": %s", told));
    CHECK_TEXT(trouble_with(arena_print(&arena, "labels:\n  a: b\n  c: %s", longer)),
               arena_print(&arena, "line 4: c: %s", told));
    CHECK_TEXT(trouble_with(arena_print(&arena, "labels: {%.63s: %.63s}", longer, longer)), "");
}

static void
test_wrong_aliases(void)
{
    CHECK_TEXT(trouble_with("aliases: [Old_1.b]"), "");
    CHECK_TEXT(trouble_with("aliases: [_Old]"),
               "line 2: aliases: \"_Old\" is not an alias: use 1 to 63 letters, digits and "
               ". _ -, with a letter or a digit at the start");
    CHECK_TEXT(trouble_with("aliases: [fast]"),
               "line 2: aliases: fast is the connection's own name");
    CHECK_TEXT(trouble_with("aliases: [a, b, a]"), "line 2: aliases: a is listed twice");
    struct buffer many AUTO(buffer_clear) = {0};
    for (int i = 0; i < 65; i++)
        buffer_print(&many, "%sa%d", i ? ", " : "aliases: [", i);
    buffer_append_text(&many, "]");
    CHECK_TEXT(trouble_with(buffer_text(&many)), "line 2: aliases: there are more than 64");
}

static void
test_wrong_topology(void)
{
    const char *place =
        "a topology value has at most 63 letters, digits and characters of . _ -, with a "
        "letter or a digit at both ends";
    CHECK_TEXT(trouble_with("topology: {zone: a}"),
               "line 2: topology: this is a map, and should be a list");
    CHECK_TEXT(trouble_with("topology: [zone]"),
               "line 2: this is a text, and should be a map, like {key: value}");
    CHECK_TEXT(trouble_with("topology:\n- zone: a\n- {}"), "line 4: topology: the map is empty");
    CHECK_TEXT(trouble_with("topology: [{zone: [a]}]"),
               "line 2: zone: this is a list, and should be one text");
    static const char *const keys[] = {"a/b/c", "/zone", "zone/", "-zone", "zo ne", "", "a-/zone"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        CHECK(strstr(trouble_with(arena_print(&arena, "topology: [{\"%s\": a}]", keys[i])),
                     "a topology key looks like example.com/zone"));
    CHECK_TEXT(trouble_with("topology: [{zone: \"a/b\"}]"),
               arena_print(&arena, "line 2: zone: %s", place));
    CHECK_TEXT(trouble_with("topology: [{zone: a-}]"),
               arena_print(&arena, "line 2: zone: %s", place));
    CHECK_TEXT(trouble_with("topology: [{zone: \"\"}]"),
               arena_print(&arena, "line 2: zone: %s", place));
}

static void
test_sizes(void)
{
    char *text AUTO(memory_cleanup) = memory_new(SPEC_MAX_FILE_BYTES + 1);
    memset(text, '\n', SPEC_MAX_FILE_BYTES + 1);
    memcpy(text, "driver: local", 13);
    struct connection_spec *spec = NULL;
    struct error *good AUTO(error_cleanup) =
        spec_read("fast", text, SPEC_MAX_FILE_BYTES, &arena, &spec);
    CHECK(!good && spec);
    struct error *error AUTO(error_cleanup) =
        spec_read("fast", text, SPEC_MAX_FILE_BYTES + 1, &arena, &spec);
    CHECK_TEXT(error ? error->message : "", "the file is larger than 256 KiB");
    memset(text, 'x', 4096);
    text[4095] = '\0';
    CHECK_TEXT(trouble_with(arena_print(&arena, "parameters: {a: %s}", text)), "");
    text[4095] = 'x';
    text[4096] = '\0';
    CHECK_TEXT(trouble_with(arena_print(&arena, "parameters: {a: %s}", text)),
               "line 2: parameters: together they have more than 4096 bytes");
}

/* ---- what has changed ---- */

static void
test_same_driver(void)
{
    const struct connection_spec *spec =
        read_good("driver: csi\noptions: {endpoint: x}\npriority: 1\n");
    CHECK(spec_same_driver(
        spec, read_good("# moved\npriority: 2\ndefault: true\noptions:\n  endpoint: x\ndriver: "
                        "csi\n")));
    CHECK(!spec_same_driver(spec, read_good("driver: csi\noptions: {endpoint: y}\n")));
    CHECK(!spec_same_driver(spec, read_good("driver: csi\n")));
    CHECK(!spec_same_driver(spec, read_good("driver: local\noptions: {endpoint: x}\n")));
    CHECK(
        !spec_same_driver(spec, read_good("driver: csi\noptions: {endpoint: x}\nmax-calls: 65\n")));
    CHECK(!spec_same_driver(spec, read_good("driver: csi\noptions: {endpoint: x}\ntimeout: 1m\n")));
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    test_names();
    test_defaults();
    test_every_key();
    test_variants();
    test_drivers();
    test_wrong_values();
    test_wrong_capabilities();
    test_wrong_labels();
    test_wrong_aliases();
    test_wrong_topology();
    test_sizes();
    test_same_driver();
    arena_clear(&arena);
    return check_report("test_spec");
}
