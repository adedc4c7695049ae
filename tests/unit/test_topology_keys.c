/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of topologies: what they are told as stays, whatever connections come and go. */
#include "connections/forward/topology_keys.h"

#include "check.h"
#include "connection_sets.h"

#define FILE_OF(more) "driver: csi\noptions: {endpoint: 'unix:///x'}\n" more
#define KEY "x.io/zone"

static struct arena arena;
static struct runtime *runtime;
static const struct log log_of_errors = {.fd = 2, .level = LOG_ERROR};

/* A process, with the store that it shares with others. */
static struct router
make_router(struct store *store, bool is_node)
{
    return (struct router){.topology_keys = topology_keys_new(),
                           .store = store,
                           .shared = store,
                           .is_node = is_node,
                           .log = &log_of_errors};
}

struct member {
    const char *name;
    const char *value; /* of KEY, as its driver tells it; NULL: it tells nothing */
};

static struct connection_set *
make_set(const struct member *members, size_t count)
{
    struct connection_set *set = connection_set_new(count);
    for (size_t i = 0; i < count; i++)
        add_connection(
            set,
            silent_driver_new(runtime, "node", members[i].value ? KEY : NULL, members[i].value),
            members[i].name, FILE_OF(""));
    return set;
}

/* What the keys of these are told as, with blanks between them. */
static const char *
claim(const struct router *router, const struct member *members, size_t count)
{
    const char *text = "";
    struct connection_set *set = make_set(members, count);
    CHECK(!topology_keys_claim(router, set, &arena));
    for (size_t i = 0; i < count; i++) {
        struct text_map keys = topology_keys_claimed(router, set->slots[i].connection, &arena);
        const char *told = text_map_find(&keys, KEY);
        text = arena_print(&arena, "%s%s%s", text, i ? " " : "", told ? told : "-");
    }
    connection_set_release(set);
    return text;
}

#define CLAIM(router, ...)                                                                         \
    claim(router, (const struct member[]){__VA_ARGS__},                                            \
          sizeof((const struct member[]){__VA_ARGS__}) / sizeof(struct member))

static void
keys_stay_when_files_come_and_go(void)
{
    struct store *store;
    CHECK(!store_open("memory:", NULL, &store));
    struct router router = make_router(store, true);
    CHECK_TEXT(CLAIM(&router, {"m", "1"}), KEY);
    CHECK_TEXT(CLAIM(&router, {"a", "2"}, {"m", "1"}), "a." KEY " " KEY);
    CHECK_TEXT(CLAIM(&router, {"a", "2"}), "a." KEY);
    CHECK_TEXT(CLAIM(&router, {"a", "2"}, {"m", "3"}, {"z", "3"}), "a." KEY " " KEY " " KEY);
    /* One that cannot be compared with may tell something else elsewhere. */
    CHECK_TEXT(CLAIM(&router, {"c", "3"}), "c." KEY);
    CHECK_TEXT(CLAIM(&router, {"m", NULL}, {"z", "4"}), "- " KEY);
    topology_keys_free(router.topology_keys);
    /* The next process reads it. */
    router = make_router(store, true);
    CHECK_TEXT(CLAIM(&router, {"a", "2"}, {"m", "1"}, {"z", "1"}), "a." KEY " " KEY " " KEY);
    topology_keys_free(router.topology_keys);
    store_close(store);
}

static void
connections_that_fall_out_are_told_apart(void)
{
    struct store *store;
    CHECK(!store_open("memory:", NULL, &store));
    struct router one = make_router(store, true), two = make_router(store, true);
    CHECK_TEXT(CLAIM(&one, {"a", "1"}, {"b", "1"}), KEY " " KEY);
    one.log = two.log = &(struct log){.fd = -1, .level = LOG_ERROR};
    CHECK_TEXT(CLAIM(&two, {"a", "1"}, {"b", "2"}), KEY " b." KEY);
    CHECK_TEXT(CLAIM(&one, {"a", "1"}, {"b", "1"}), KEY " b." KEY);
    topology_keys_free(one.topology_keys);
    topology_keys_free(two.topology_keys);
    store_close(store);
}

static void
a_new_name_keeps_the_keys(void)
{
    struct store *store;
    CHECK(!store_open("memory:", NULL, &store));
    struct router router = make_router(store, true);
    CHECK_TEXT(CLAIM(&router, {"a", "1"}, {"b", "2"}), KEY " b." KEY);
    struct connection_set *set = connection_set_new(1);
    struct connection *renamed = add_connection(set, silent_driver_new(runtime, "node", KEY, "2"),
                                                "new", FILE_OF("aliases: [b]\n"));
    CHECK(!topology_keys_claim(&router, set, &arena));
    struct text_map keys = topology_keys_claimed(&router, renamed, &arena);
    CHECK_TEXT(text_map_find(&keys, KEY), "b." KEY);
    connection_set_release(set);
    CHECK_TEXT(CLAIM(&router, {"new", "2"}), "b." KEY); /* also without the alias */
    topology_keys_free(router.topology_keys);
    store_close(store);
}

/* The driver beside a controller tells of no node. */
static void
a_controller_reads_what_nodes_have_told(void)
{
    struct store *store;
    struct text_map keys;
    CHECK(!store_open("memory:", NULL, &store));
    struct router node = make_router(store, true), controller = make_router(store, false);
    const struct method *create = service_find_method("csi.v1.Controller/CreateVolume");
    const struct method *delete = service_find_method("csi.v1.Controller/DeleteVolume");
    struct connection_set *set = make_set((struct member[]){{"a", NULL}, {"b", NULL}}, 2);
    struct connection *b = set->slots[1].connection;
    CHECK(topology_keys_are_at_hand(&controller, b, delete));
    CHECK(!topology_keys_are_at_hand(&controller, b, create));
    CHECK(!topology_keys_read(&controller, set, b, create, &arena, &keys));
    CHECK_NUMBER(keys.count, 0);
    CHECK_TEXT(CLAIM(&node, {"a", "1"}, {"b", "2"}), KEY " b." KEY);
    CHECK(!topology_keys_read(&controller, set, b, create, &arena, &keys));
    CHECK_NUMBER(keys.count, 1);
    CHECK_TEXT(text_map_find(&keys, KEY), "b." KEY);
    connection_set_release(set);
    topology_keys_free(node.topology_keys);
    topology_keys_free(controller.topology_keys);
    store_close(store);
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK(!runtime_open(&(struct runtime_options){.log = &log_of_errors}, &runtime));
    keys_stay_when_files_come_and_go();
    connections_that_fall_out_are_told_apart();
    a_new_name_keeps_the_keys();
    a_controller_reads_what_nodes_have_told();
    runtime_close(runtime);
    arena_clear(&arena);
    return check_report("topology keys");
}
