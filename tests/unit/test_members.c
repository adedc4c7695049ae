/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a cluster, and the homes in handles. */
#include "cluster/members.h"

#include <stdint.h>
#include <string.h>

#include "check.h"
#include "volumes/handle.h"

static void
set(struct members *members, const char *id, const char *address, bool is_expired)
{
    members_set(members, &(struct member){.id = id, .address = address, .is_expired = is_expired});
}

static void
members_are_listed_by_id_and_replaced_by_id(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct members *members = members_new();
    set(members, "b", "1.2.3.4:1", false);
    set(members, "c", "1.2.3.4:2", false);
    set(members, "a", "1.2.3.4:3", false);
    set(members, "b", "1.2.3.4:4", true);
    CHECK(!members_read(members, &arena).is_known);
    members_complete(members);
    struct member_list list = members_read(members, &arena);
    CHECK(list.is_known);
    CHECK_NUMBER(list.count, 3);
    CHECK_TEXT(list.items[0].id, "a");
    CHECK_TEXT(list.items[1].address, "1.2.3.4:4");
    CHECK(list.items[1].is_expired);
    CHECK_TEXT(list.items[2].id, "c");
    members_free(members);
}

static void
members_without_a_registration_stay_until_they_are_forgotten(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct members *members = members_new();
    set(members, "a", "1.2.3.4:1", false);
    set(members, "b", "1.2.3.4:2", false);
    members_miss(members, "a");
    members_miss(members, "x");
    CHECK(!members_note(members, "b", "local"));
    CHECK(members_note(members, "c", "local"));
    CHECK(!members_note(members, "c", "local"));
    CHECK(members_note(members, "c", "fast"));
    struct member_list list = members_read(members, &arena);
    CHECK_NUMBER(list.count, 3);
    CHECK(list.items[0].is_missing && list.items[0].is_expired && list.items[0].seen_ms > 0);
    CHECK_TEXT(list.items[0].address, "1.2.3.4:1");
    CHECK(!list.items[1].is_missing);
    CHECK(list.items[2].is_missing && list.items[2].is_expired);
    CHECK(member_has_connection(&list.items[2], "local"));
    CHECK(member_has_connection(&list.items[2], "fast"));
    CHECK(!member_has_connection(&list.items[2], "loc"));
    CHECK(!members_forget(members, "b"));
    CHECK(members_forget(members, "a"));
    set(members, "c", "1.2.3.4:3", false);
    CHECK(!members_forget(members, "c"));
    list = members_read(members, &arena);
    CHECK_NUMBER(list.count, 2);
    CHECK_TEXT(list.items[0].id, "b");
    CHECK(!list.items[1].is_missing);
    members_free(members);
}

static void
handles_tell_their_home(void)
{
    struct engine engine = {.started_ms = 1700000000000};
    char home[HANDLE_HOME_SIZE], other[HANDLE_HOME_SIZE], found[HANDLE_HOME_SIZE];
    char handle[BACKEND_HANDLE_SIZE];
    handle_print_home("node-1", home);
    handle_print_home("node-2", other);
    CHECK_NUMBER(strlen(home), HANDLE_HOME_SIZE - 1);
    CHECK(strcmp(home, other) != 0);
    handle_make(&engine, handle);
    CHECK(!handle_read_home(handle, found));
    strcpy(engine.home, home);
    handle_make(&engine, handle);
    CHECK(handle_read_home(handle, found));
    CHECK_TEXT(found, home);
    strcat(handle, "-xfs"); /* of one of several back ends */
    CHECK(handle_read_home(handle, found));
    CHECK_TEXT(found, home);
    CHECK(handle_read_time(handle) >= 1700000000000);
    CHECK(!handle_read_home("", found));
    CHECK(!handle_read_home("~0123456789abcdef", found));
}

static void
keys_tell_their_home(void)
{
    char found[HANDLE_HOME_SIZE];
    CHECK(handle_read_key("01hf7v2c000123456789abc7rdwfwbk", found));
    CHECK_TEXT(found, "7rdwfwbk");
    CHECK(!handle_read_key("01hf7v2c000123456789abc", found));
    CHECK(handle_read_key("01hf7v2c000123456789abc@7rdwfwbk", found));
    CHECK_TEXT(found, "7rdwfwbk");
    CHECK(handle_read_key("01hf7v2c000123456789abc-xfs@7rdwfwbk", found));
    CHECK(!handle_read_key("01hf7v2c000123456789abc@", found));
    CHECK(!handle_read_key("01hf7v2c000123456789abc@7rdwfwb", found));
    CHECK(!handle_read_key("01hf7v2c000123456789abc@7rdwfwbkk", found));
    CHECK(!handle_read_key("01hf7v2c000123456789abc@7rdwf/bk", found));
}

/* Stored ids contain it. */
static void
the_home_of_a_node_never_changes(void)
{
    char home[HANDLE_HOME_SIZE];
    handle_print_home("node-1", home);
    CHECK_TEXT(home, "7rdwfwbk");
}

int
main(void)
{
    members_are_listed_by_id_and_replaced_by_id();
    members_without_a_registration_stay_until_they_are_forgotten();
    handles_tell_their_home();
    keys_tell_their_home();
    the_home_of_a_node_never_changes();
    return check_report("test_members");
}
