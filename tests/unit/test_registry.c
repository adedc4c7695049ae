/* SPDX-License-Identifier: Apache-2.0 */
/* src/registry: what is set, read and listed, over gRPC. */
#include "registry_ends.h"

/* ---- the two forms of the same entries ---- */

static void
a_controller_is_added_overwritten_and_removed(void)
{
    struct office office;
    office_open(&office);
    CHECK_TEXT(controllers_of(&office), "");
    CHECK_CODE(register_controller(&office, "host-1", "10.0.0.1:8999"), CODE_OK);
    CHECK_CODE(register_controller(&office, "host-0", "unix:///run/c.sock"), CODE_OK);
    CHECK_TEXT(controllers_of(&office), "host-0=unix:///run/c.sock host-1=10.0.0.1:8999");
    CHECK_CODE(register_controller(&office, "host-1", "10.0.0.2:8999"), CODE_OK);
    CHECK_TEXT(controllers_of(&office), "host-0=unix:///run/c.sock host-1=10.0.0.2:8999");
    CHECK_CODE(register_controller(&office, "host-0", ""), CODE_OK);
    CHECK_TEXT(controllers_of(&office), "host-1=10.0.0.2:8999");
    CHECK_CODE(register_controller(&office, "host-0", ""), CODE_OK);
    office_close(&office);
}

static void
registering_and_setting_the_address_are_the_same(void)
{
    struct office office;
    office_open(&office);
    CHECK_CODE(register_controller(&office, "host-0", "a:1"), CODE_OK);
    CHECK_TEXT(values_of(&office, ""), "host-0/address=a:1");
    CHECK_CODE(set_value(&office, "/host-0//address/", "b:2"), CODE_OK);
    CHECK_TEXT(controllers_of(&office), "host-0=b:2");
    CHECK_CODE(set_value(&office, "host-0/address", ""), CODE_OK);
    CHECK_TEXT(controllers_of(&office), "");
    office_close(&office);
}

static void
values_are_found_by_whole_elements_and_in_order(void)
{
    struct office office;
    office_open(&office);
    CHECK_CODE(set_value(&office, "foo/x", "1"), CODE_OK);
    CHECK_CODE(set_value(&office, "foo", "2"), CODE_OK);
    CHECK_CODE(set_value(&office, "foo-bar", "3"), CODE_OK);
    CHECK_CODE(set_value(&office, "foobar", "4"), CODE_OK);
    CHECK_CODE(set_value(&office, "foo/x/y", "5"), CODE_OK);
    CHECK_CODE(set_value(&office, "a", "6"), CODE_OK);
    CHECK_TEXT(values_of(&office, "foo"), "foo=2 foo/x=1 foo/x/y=5");
    CHECK_TEXT(values_of(&office, "//foo///x/"), "foo/x=1 foo/x/y=5");
    CHECK_TEXT(values_of(&office, "fo"), "");
    CHECK_TEXT(values_of(&office, "foo/x/y/z"), "");
    CHECK_TEXT(values_of(&office, ""), "a=6 foo=2 foo-bar=3 foo/x=1 foo/x/y=5 foobar=4");
    CHECK_TEXT(values_of(&office, "/"), "a=6 foo=2 foo-bar=3 foo/x=1 foo/x/y=5 foobar=4");
    CHECK_TEXT(controllers_of(&office), "");
    office_close(&office);
}

/* ---- what is refused ---- */

static void
bad_requests_are_invalid(void)
{
    struct office office;
    Oim__V0__SetValueRequest nothing = OIM__V0__SET_VALUE_REQUEST__INIT;
    Oim__V0__SetValueReply *reply;
    static char long_id[202], long_value[4098], long_path[482];
    memset(long_id, 'i', sizeof long_id - 1);
    memset(long_value, 'v', sizeof long_value - 1);
    memset(long_path, 'p', sizeof long_path - 1);
    office_open(&office);
    CHECK_CODE(ask(&office, OIM_V0_REGISTRY_SET_VALUE, &nothing.base, &reply),
               CODE_INVALID_ARGUMENT);
    CHECK_CODE(set_value(&office, "", "x"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(set_value(&office, "//", "x"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(set_value(&office, "a/../b", "x"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(set_value(&office, "./b", "x"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(set_value(&office, long_path, "x"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(set_value(&office, "a", long_value), CODE_INVALID_ARGUMENT);
    CHECK_TEXT(values_of(&office, ".."), "INVALID_ARGUMENT");
    CHECK_CODE(register_controller(&office, "", "a:1"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(register_controller(&office, "..", "a:1"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(register_controller(&office, "a/b", "a:1"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(register_controller(&office, "a\nb", "a:1"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(register_controller(&office, "h\303\264st", "a:1"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(register_controller(&office, " host", "a:1"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(set_value(&office, "host /address", "a:1"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(register_controller(&office, "a host", "a:1"), CODE_OK);
    CHECK_CODE(register_controller(&office, "a host", ""), CODE_OK);
    CHECK_CODE(register_controller(&office, long_id, "a:1"), CODE_INVALID_ARGUMENT);
    long_id[200] = '\0';
    CHECK_CODE(register_controller(&office, long_id, "a:1"), CODE_OK);
    CHECK_CODE(register_controller(&office, long_id, ""), CODE_OK);
    CHECK_TEXT(values_of(&office, ""), "");
    office_close(&office);
}

static void
an_address_that_cannot_be_called_is_refused_and_the_forms_are_told(void)
{
    static const char *const bad[] = {"nonsense", "host",       "host:",      "host:0",
                                      ":80",      "http://a:1", "host:99999", "unix:"};
    struct office office;
    office_open(&office);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct error *error AUTO(error_cleanup) = register_controller(&office, "h", bad[i]);
        CHECK(error && error->code == CODE_INVALID_ARGUMENT && strstr(error->message, "HOST:PORT"));
        CHECK_CODE(set_value(&office, "h/address", bad[i]), CODE_INVALID_ARGUMENT);
    }
    CHECK_CODE(set_value(&office, "h/other", "nonsense"), CODE_OK);
    CHECK_CODE(set_value(&office, "h/x/address", "nonsense"), CODE_OK);
    CHECK_TEXT(controllers_of(&office), "");
    CHECK_CODE(register_controller(&office, "h", "ipv4:///some-name:8999"), CODE_OK);
    office_close(&office);
}

/* ---- time to live ---- */

static Skycap__V1__ListEntriesReply *
list(struct office *office, const char *path, uint32_t max, const char *token)
{
    Skycap__V1__ListEntriesRequest request = SKYCAP__V1__LIST_ENTRIES_REQUEST__INIT;
    Skycap__V1__ListEntriesReply *reply = NULL;
    request.path = (char *)path;
    request.max_entries = max;
    request.starting_token = (char *)token;
    succeed(ask(office, SKYCAP_V1_REGISTRY_LIST_ENTRIES, &request.base, &reply));
    return reply;
}

static void
a_time_to_live_is_kept_told_and_renewed(void)
{
    struct office office;
    Skycap__V1__AnnounceReply *first, *second;
    office_open(&office);
    time_t now = time(NULL);
    CHECK_CODE(announce(&office, "h", "a:1", 60000, &first), CODE_OK);
    CHECK(first->expires && first->expires->seconds >= now + 60 &&
          first->expires->seconds <= now + 62);
    sleep_ms(5);
    CHECK_CODE(announce(&office, "h", "a:1", 120000, &second), CODE_OK);
    Skycap__V1__ListEntriesReply *reply = list(&office, "", 0, "");
    CHECK_NUMBER(reply->n_entries, 1);
    CHECK_NUMBER(reply->entries[0]->expires->seconds, second->expires->seconds);
    CHECK(!reply->entries[0]->is_expired);
    CHECK(reply->entries[0]->registered && reply->entries[0]->registered->seconds >= now);
    CHECK_CODE(announce(&office, "h", "a:1", 0, &first), CODE_OK);
    CHECK(!first->expires);
    CHECK(!list(&office, "", 0, "")->entries[0]->expires);
    CHECK_CODE(announce(&office, "h", "", 60000, &first), CODE_OK);
    CHECK(!first->expires);
    CHECK_NUMBER(list(&office, "", 0, "")->n_entries, 0);
    CHECK_CODE(announce(&office, "h", "a:1", 999, &first), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce(&office, "h", "a:1", -5000, &first), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce(&office, "h", "a:1", INT64_C(400000000000), &first), CODE_INVALID_ARGUMENT);
    office_close(&office);
}

static void
what_has_expired_is_listed_only_where_it_can_be_marked(void)
{
    struct office office;
    Skycap__V1__AnnounceReply *reply;
    office_open(&office);
    CHECK_CODE(announce(&office, "h", "a:1", 1000, &reply), CODE_OK);
    CHECK(!list(&office, "", 0, "")->entries[0]->is_expired);
    sleep_ms(1050);
    CHECK(list(&office, "", 0, "")->entries[0]->is_expired);
    CHECK_TEXT(controllers_of(&office), "");
    CHECK_TEXT(values_of(&office, ""), "");
    CHECK_CODE(announce(&office, "h", "a:1", 5000, &reply), CODE_OK);
    CHECK(!list(&office, "", 0, "")->entries[0]->is_expired);
    CHECK_TEXT(controllers_of(&office), "h=a:1");
    office_close(&office);
}

/* ---- nodes ---- */

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
a_node_is_announced_with_its_attributes_and_removed(void)
{
    struct office office;
    office_open(&office);
    CHECK_CODE(announce_node(&office, "n", "a:1", 60000, PAIRS("zone", "b", "arch", "x")), CODE_OK);
    Skycap__V1__ListEntriesReply *reply = list(&office, "nodes", 0, "");
    CHECK_NUMBER(reply->n_entries, 1);
    CHECK_TEXT(reply->entries[0]->path, "nodes/n/address");
    CHECK_TEXT(reply->entries[0]->value, "a:1");
    CHECK_TEXT(attributes_of(&office, reply->entries[0]), " arch=x zone=b");
    CHECK(reply->entries[0]->expires && !reply->entries[0]->is_expired);
    CHECK_TEXT(controllers_of(&office), "");
    CHECK_TEXT(values_of(&office, "nodes"), "nodes/n/address=a:1");
    CHECK_CODE(announce_node(&office, "n", "a:2", 60000, NULL), CODE_OK);
    CHECK_TEXT(attributes_of(&office, list(&office, "", 0, "")->entries[0]), "");
    CHECK_CODE(announce_node(&office, "n", "", 0, NULL), CODE_OK);
    CHECK_TEXT(values_of(&office, ""), "");
    office_close(&office);
}

/* Whatever the header says. */
static void
nothing_is_passed_on_to_a_node(void)
{
    static const struct csi_v1_identity handlers = {.probe = {answer_probe}};
    struct office office;
    struct ends behind;
    office_open(&office);
    ends_open(&behind,
              &(struct ends_setup){.service = &csi_v1_identity_service, .handlers = &handlers});
    CHECK_CODE(announce_node(&office, "n", behind.address, 60000, NULL), CODE_OK);
    CHECK_CODE(probe_controller(&office, "n"), CODE_UNAVAILABLE);
    CHECK_CODE(probe_controller(&office, "nodes/n"), CODE_UNAVAILABLE);
    CHECK_CODE(probe_controller(&office, "nodes/n/address"), CODE_UNAVAILABLE);
    CHECK_CODE(register_controller(&office, "n", behind.address), CODE_OK);
    CHECK_CODE(probe_controller(&office, "n"), CODE_OK);
    CHECK_CODE(probe_controller(&office, "nodes/n"), CODE_UNAVAILABLE);
    office_close(&office);
    ends_close(&behind);
}

static void
bad_announcements_of_nodes_are_invalid(void)
{
    static char long_id[130], long_key[130], long_value[4097];
    struct office office;
    Skycap__V1__AnnounceRequest both = SKYCAP__V1__ANNOUNCE_REQUEST__INIT;
    Skycap__V1__AnnounceReply *reply;
    memset(long_id, 'i', sizeof long_id - 1);
    memset(long_key, 'k', sizeof long_key - 1);
    memset(long_value, 'v', sizeof long_value - 1);
    office_open(&office);
    both.address = (char *)"a:1";
    CHECK_CODE(ask(&office, SKYCAP_V1_REGISTRY_ANNOUNCE, &both.base, &reply),
               CODE_INVALID_ARGUMENT);
    both.controller_id = both.node_id = (char *)"n";
    CHECK_CODE(ask(&office, SKYCAP_V1_REGISTRY_ANNOUNCE, &both.base, &reply),
               CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "a/b", "a:1", 0, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "..", "a:1", 0, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, long_id, "a:1", 0, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "n", "nonsense", 0, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(set_value(&office, "nodes/n/address", "nonsense"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "n", "a:1", 999, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "n", "a:1", 0, PAIRS("", "x")), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "n", "a:1", 0, PAIRS("a\n", "x")), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "n", "a:1", 0, PAIRS("\303\264", "x")),
               CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "n", "a:1", 0, PAIRS(long_key, "x")), CODE_INVALID_ARGUMENT);
    CHECK_CODE(announce_node(&office, "n", "a:1", 0, PAIRS("k", long_value)),
               CODE_INVALID_ARGUMENT);
    CHECK_TEXT(values_of(&office, ""), "");
    long_id[128] = long_key[128] = long_value[4096 - 128] = '\0';
    CHECK_CODE(announce_node(&office, long_id, "a:1", 0, PAIRS(long_key, long_value)), CODE_OK);
    office_close(&office);
}

static void
attributes_are_counted(void)
{
    static char keys[65][8];
    const char *pairs[2 * 65 + 1] = {0};
    struct office office;
    office_open(&office);
    for (int i = 0; i < 65; i++) {
        snprintf(keys[i], sizeof keys[i], "k%02d", i);
        pairs[2 * i] = keys[i];
        pairs[2 * i + 1] = "x";
    }
    CHECK_CODE(announce_node(&office, "n", "a:1", 0, pairs), CODE_INVALID_ARGUMENT);
    pairs[2 * 64] = NULL;
    CHECK_CODE(announce_node(&office, "n", "a:1", 0, pairs), CODE_OK);
    CHECK_NUMBER(list(&office, "nodes", 0, "")->entries[0]->n_attributes, 64);
    office_close(&office);
}

/* ---- pages ---- */

static void
pages_go_on_where_the_last_one_ended_whatever_is_deleted(void)
{
    struct office office;
    office_open(&office);
    const char *paths[] = {"p", "p/1", "p/2", "p/3", "p/4", "p-x", "q"};
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        succeed(set_value(&office, paths[i], "v"));
    Skycap__V1__ListEntriesReply *page = list(&office, "p", 1, "");
    CHECK_NUMBER(page->n_entries, 1);
    CHECK_TEXT(page->entries[0]->path, "p");
    page = list(&office, "p", 2, page->next_token);
    CHECK_NUMBER(page->n_entries, 2);
    CHECK_TEXT(page->entries[1]->path, "p/2");
    succeed(set_value(&office, "p/2", ""));
    succeed(set_value(&office, "p/3", ""));
    page = list(&office, "p", 2, page->next_token);
    CHECK_NUMBER(page->n_entries, 1);
    CHECK_TEXT(page->entries[0]->path, "p/4");
    CHECK_TEXT(page->next_token, "");
    CHECK_NUMBER(list(&office, "", 0, "")->n_entries, 5);
    CHECK_NUMBER(list(&office, "q", 1, "")->n_entries, 1);
    CHECK_TEXT(list(&office, "q", 1, "")->next_token, "");
    office_close(&office);
}

static void
a_page_of_large_values_is_cut(void)
{
    struct office office;
    static char value[4097];
    memset(value, 'v', sizeof value - 1);
    office_open(&office);
    for (int i = 0; i < 400; i++)
        succeed(set_value(&office, arena_print(&office.arena, "p/%03d", i), value));
    size_t total = 0, pages = 0;
    const char *token = "";
    do {
        Skycap__V1__ListEntriesReply *page = list(&office, "", 0, token);
        total += page->n_entries;
        token = page->next_token;
        pages++;
    } while (token[0] && pages < 10);
    CHECK_NUMBER(total, 400);
    CHECK_NUMBER(pages, 2);
    office_close(&office);
}

/* oim.v0 has no pages, so a reply has everything; it is charged while it is collected. */
static void
replies_without_pages_have_a_limit(void)
{
    enum { VALUES = 300, SIZE = 3000 };
    struct office office;
    static char value[SIZE + 1];
    Oim__V0__GetValuesRequest request = OIM__V0__GET_VALUES_REQUEST__INIT;
    Oim__V0__GetValuesReply *reply;
    office_open(&office);
    memset(value, 'x', SIZE);
    for (int i = 0; i < VALUES; i++)
        CHECK_CODE(set_value(&office, arena_print(&office.arena, "many/%d", i), value), CODE_OK);
    CHECK_CODE(ask(&office, OIM_V0_REGISTRY_GET_VALUES, &request.base, &reply), CODE_OK);
    CHECK_NUMBER((long long)reply->n_values, VALUES);
    struct pool *pool = &runtime_loop(office.runtime)->admission.bytes;
    pool->limit = 1 << 20; /* the client may have half of it */
    struct error *error = ask(&office, OIM_V0_REGISTRY_GET_VALUES, &request.base, &reply);
    CHECK(error && error->code == CODE_RESOURCE_EXHAUSTED);
    CHECK(error && strstr(error->message, "ask for less at a time"));
    error_free(error);
    request.path = (char *)"many/7";
    CHECK_CODE(ask(&office, OIM_V0_REGISTRY_GET_VALUES, &request.base, &reply), CODE_OK);
    office_close(&office);
}

static void
a_token_of_something_else_is_refused(void)
{
    struct office office;
    Skycap__V1__ListEntriesRequest request = SKYCAP__V1__LIST_ENTRIES_REQUEST__INIT;
    Skycap__V1__ListEntriesReply *reply;
    office_open(&office);
    request.path = (char *)"p";
    request.starting_token = (char *)"q/1";
    CHECK_CODE(ask(&office, SKYCAP_V1_REGISTRY_LIST_ENTRIES, &request.base, &reply),
               CODE_INVALID_ARGUMENT);
    request.starting_token = (char *)"p//1";
    CHECK_CODE(ask(&office, SKYCAP_V1_REGISTRY_LIST_ENTRIES, &request.base, &reply),
               CODE_INVALID_ARGUMENT);
    office_close(&office);
}

/* ---- metrics ---- */

static void
metrics_count_controllers_and_nodes(void)
{
    struct office office;
    struct buffer text AUTO(buffer_clear) = {0};
    Skycap__V1__AnnounceReply *reply;
    office_open(&office);
    succeed(register_controller(&office, "a", "a:1"));
    succeed(register_controller(&office, "b", "a:1"));
    succeed(register_controller(&office, "b", ""));
    succeed(announce(&office, "c", "a:1", 1000, &reply));
    succeed(announce_node(&office, "n", "a:1", 1000, NULL));
    succeed(announce_node(&office, "a", "a:1", 0, NULL));
    sleep_ms(1050);
    registry_print_metrics(office.registry, &text);
    CHECK(strstr(buffer_text(&text), "\nskycap_registry_controllers 2\n"));
    CHECK(strstr(buffer_text(&text), "\nskycap_registry_controllers_expired 1\n"));
    CHECK(strstr(buffer_text(&text), "\nskycap_registry_nodes 2\n"));
    CHECK(strstr(buffer_text(&text), "\nskycap_registry_nodes_expired 1\n"));
    CHECK(strstr(buffer_text(&text), "\nskycap_registry_channels 0\n"));
    office_close(&office);
}

int
main(void)
{
    a_controller_is_added_overwritten_and_removed();
    registering_and_setting_the_address_are_the_same();
    values_are_found_by_whole_elements_and_in_order();
    bad_requests_are_invalid();
    an_address_that_cannot_be_called_is_refused_and_the_forms_are_told();
    a_time_to_live_is_kept_told_and_renewed();
    what_has_expired_is_listed_only_where_it_can_be_marked();
    a_node_is_announced_with_its_attributes_and_removed();
    nothing_is_passed_on_to_a_node();
    bad_announcements_of_nodes_are_invalid();
    attributes_are_counted();
    pages_go_on_where_the_last_one_ended_whatever_is_deleted();
    a_page_of_large_values_is_cut();
    replies_without_pages_have_a_limit();
    a_token_of_something_else_is_refused();
    metrics_count_controllers_and_nodes();
    return check_report("test_registry");
}
