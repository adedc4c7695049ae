/* SPDX-License-Identifier: Apache-2.0 */
/* src/registry/controllers.c: what is known of controllers, whatever the order in which it is told. */
#include "registry/controllers.h"

#include "rpc_ends.h"

static struct ends ends;

static void
note(struct controllers *controllers, const char *path, const char *value, uint64_t revision,
     int64_t expires_ms)
{
    struct entry entry = {
        .path = path, .value = value, .revision = revision, .expires_ms = expires_ms};
    controllers_note(controllers, &entry);
}

static void
list(struct controllers *controllers, const char *path, uint64_t revision)
{
    struct entry entry = {.path = path, .value = "x:1", .revision = revision};
    controllers_note_listed(controllers, &entry);
}

static size_t
registered(struct controllers *controllers)
{
    return controllers_count(controllers).registered;
}

static void
the_higher_revision_wins(void)
{
    struct controllers *controllers = controllers_new(ends.runtime, NULL, false);
    note(controllers, "a/address", "x:1", 5, 0);
    note(controllers, "a/address", "", 4, 0);
    CHECK_NUMBER(registered(controllers), 1);
    note(controllers, "a/address", "", 7, 0);
    CHECK_NUMBER(registered(controllers), 0);
    note(controllers, "a/address", "y:1", 6, 0);
    CHECK_NUMBER(registered(controllers), 0);
    note(controllers, "b/address", "", 9, 0); /* a removal of what is not known yet */
    note(controllers, "b/address", "y:1", 8, 0);
    CHECK_NUMBER(registered(controllers), 0);
    note(controllers, "a/address", "y:1", 10, 0);
    CHECK_NUMBER(registered(controllers), 1);
    controllers_free(controllers);
}

static void
only_addresses_count(void)
{
    struct controllers *controllers = controllers_new(ends.runtime, NULL, false);
    note(controllers, "a/pci", "x:1", 1, 0);
    note(controllers, "address", "x:1", 2, 0);
    note(controllers, "a/b/address", "x:1", 3, 0);
    CHECK_NUMBER(registered(controllers), 0);
    controllers_free(controllers);
}

static void
what_a_list_does_not_have_is_gone_unless_it_is_younger(void)
{
    struct controllers *controllers = controllers_new(ends.runtime, NULL, false);
    note(controllers, "stays/address", "x:1", 1, 0);
    note(controllers, "goes/address", "x:1", 2, 0);
    controllers_begin_list(controllers);
    list(controllers, "stays/address", 1);
    note(controllers, "new/address", "x:1", 4, 0);
    note(controllers, "goes/address", "x:1", 2,
         0); /* by who wrote it, late: it has been removed since */
    controllers_end_list(controllers, 3);
    CHECK_NUMBER(registered(controllers), 2);
    controllers_begin_list(controllers);
    controllers_end_list(controllers, 3);
    CHECK_NUMBER(registered(controllers), 1); /* the new one */
    controllers_free(controllers);
}

static void
count_told(void *context, const struct entry *entry)
{
    CHECK_TEXT(entry->path, "a/address");
    CHECK_TEXT(entry->value, "x:1");
    ++*(unsigned *)context;
}

static void
an_expiry_is_told_once_and_the_next_one_is_known(void)
{
    struct controllers *controllers = controllers_new(ends.runtime, NULL, false);
    unsigned told = 0;
    struct controllers_sweep sweep = {
        .now_ms = 999, .idle_ns = MS, .tell = count_told, .context = &told};
    note(controllers, "a/address", "x:1", 1, 1000);
    note(controllers, "b/address", "x:1", 2, 5000);
    note(controllers, "c/address", "x:1", 3, 0);
    controllers_sweep(controllers, &sweep);
    CHECK_NUMBER(told, 0);
    CHECK_NUMBER(sweep.next_ms, 1000);
    sweep.now_ms = 1000;
    controllers_sweep(controllers, &sweep);
    controllers_sweep(controllers, &sweep);
    CHECK_NUMBER(told, 1);
    CHECK_NUMBER(sweep.next_ms, 5000);
    note(controllers, "a/address", "x:1", 4, 2000);
    sweep.now_ms = 2000;
    controllers_sweep(controllers, &sweep);
    CHECK_NUMBER(told, 2);
    controllers_free(controllers);
}

static bool
change(struct controllers *controllers, const char *value, uint64_t revision, int64_t expires_ms)
{
    struct entry entry = {
        .path = "nodes/n/address", .value = value, .revision = revision, .expires_ms = expires_ms};
    return controllers_note_change(controllers, &entry);
}

/* Whether the writer notes it before the change comes, or after it, or not at all. */
static void
only_what_differs_from_the_last_change_is_news(void)
{
    const int64_t later = INT64_C(1) << 50;
    struct controllers *controllers = controllers_new(ends.runtime, NULL, false);
    CHECK(change(controllers, "x:1", 1, later));
    CHECK(!change(controllers, "x:1", 2, later + 1));
    note(controllers, "nodes/n/address", "x:1", 3, later + 2);
    CHECK(!change(controllers, "x:1", 3, later + 2));
    note(controllers, "nodes/n/address", "y:1", 4, later);
    note(controllers, "nodes/n/address", "x:1", 5, later);
    CHECK(change(controllers, "y:1", 4, later));
    CHECK(change(controllers, "x:1", 5, later));
    CHECK(change(controllers, "x:1", 6, 0));
    note(controllers, "nodes/n/address", "", 7, 0);
    note(controllers, "nodes/n/address", "x:1", 8, 0);
    CHECK(change(controllers, "", 7, 0));
    CHECK(change(controllers, "x:1", 8, 0));
    CHECK(!change(controllers, "x:1", 9, 0));
    controllers_free(controllers);
}

static void
what_has_expired_is_no_longer_known(void)
{
    const int64_t later = INT64_C(1) << 50;
    struct controllers *controllers = controllers_new(ends.runtime, NULL, false);
    CHECK(change(controllers, "x:1", 1, 1)); /* long ago */
    CHECK(change(controllers, "x:1", 2, later));
    CHECK(!change(controllers, "x:1", 3, later));
    CHECK_NUMBER(controllers_count(controllers).nodes, 1);
    CHECK_NUMBER(controllers_count(controllers).registered, 0);
    controllers_free(controllers);
}

static void
what_was_listed_is_known(void)
{
    struct controllers *controllers = controllers_new(ends.runtime, NULL, false);
    controllers_begin_list(controllers);
    list(controllers, "nodes/n/address", 1);
    controllers_end_list(controllers, 1);
    CHECK(!change(controllers, "x:1", 2, 0));
    CHECK(change(controllers, "x:2", 3, 0));
    controllers_free(controllers);
}

static void
many_are_found_again(void)
{
    enum { MANY = 20000 };
    struct controllers *controllers = controllers_new(ends.runtime, NULL, false);
    char path[32];
    for (uint64_t i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "c-%d/address", (int)i);
        note(controllers, path, "x:1", i + 1, 0);
    }
    CHECK_NUMBER(registered(controllers), MANY);
    for (uint64_t i = 0; i < MANY; i += 2) {
        snprintf(path, sizeof path, "c-%d/address", (int)i);
        note(controllers, path, "", MANY + i + 1, 0);
    }
    CHECK_NUMBER(registered(controllers), MANY / 2);
    controllers_free(controllers);
}

int
main(void)
{
    ends_open_runtime(&ends, (struct runtime_options){0});
    the_higher_revision_wins();
    only_addresses_count();
    what_a_list_does_not_have_is_gone_unless_it_is_younger();
    an_expiry_is_told_once_and_the_next_one_is_known();
    only_what_differs_from_the_last_change_is_news();
    what_has_expired_is_no_longer_known();
    what_was_listed_is_known();
    many_are_found_again();
    ends_close(&ends);
    return check_report("test_controllers");
}
