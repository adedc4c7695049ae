/* SPDX-License-Identifier: Apache-2.0 */
/* src/registry/watch.c, feed.c and follower.c: being told of changes, also of those that another registry made. */
#include "base/clock.h"
#include "proto/records.pb-c.h"
#include "registry/entries.h"
#include "registry_ends.h"

/* ---- a watch, as lines ---- */

static struct client_call *
begin_watch(struct office *office, const char *path)
{
    struct client_call *call;
    Skycap__V1__WatchRequest request = SKYCAP__V1__WATCH_REQUEST__INIT;
    request.path = (char *)path;
    succeed(client_call_open(office->channel, SKYCAP_V1_REGISTRY_WATCH,
                             &(struct call_options){.timeout_ns = 2 * PATIENCE_MS * MS}, &call));
    succeed(client_call_send(call, &request.base));
    client_call_close_send(call);
    return call;
}

/* "set PATH VALUE[ KEY=VALUE...]", "expired PATH VALUE...", "removed PATH", "complete", "anew", "end". */
static const char *
next_line(struct office *office, struct client_call *call)
{
    Skycap__V1__WatchReply *reply;
    succeed(client_call_recv(call, &office->arena, &reply));
    if (!reply)
        return "end";
    if (reply->what_case == SKYCAP__V1__WATCH_REPLY__WHAT_ENTRY)
        return arena_print(&office->arena, "%s %s %s%s",
                           reply->entry->is_expired ? "expired" : "set", reply->entry->path,
                           reply->entry->value, attributes_of(office, reply->entry));
    if (reply->what_case == SKYCAP__V1__WATCH_REPLY__WHAT_REMOVED)
        return arena_print(&office->arena, "removed %s", reply->removed);
    if (reply->what_case == SKYCAP__V1__WATCH_REPLY__WHAT_IS_ANEW)
        return "anew";
    return reply->is_complete ? "complete" : "nothing";
}

static void
end_watch(struct client_call *call)
{
    client_call_cancel(call);
    CHECK_CODE(client_call_finish(call), CODE_CANCELLED);
    client_call_free(call);
}

static void
a_watch_tells_what_is_there_then_each_change(void)
{
    struct office office;
    office_open(&office);
    succeed(set_value(&office, "b/x", "1"));
    succeed(set_value(&office, "a", "2"));
    succeed(set_value(&office, "bb", "3"));
    struct client_call *all = begin_watch(&office, "");
    struct client_call *some = begin_watch(&office, "/b/");
    CHECK_TEXT(next_line(&office, all), "set a 2");
    CHECK_TEXT(next_line(&office, all), "set b/x 1");
    CHECK_TEXT(next_line(&office, all), "set bb 3");
    CHECK_TEXT(next_line(&office, all), "complete");
    CHECK_TEXT(next_line(&office, some), "set b/x 1");
    CHECK_TEXT(next_line(&office, some), "complete");
    succeed(set_value(&office, "a", "4"));
    succeed(set_value(&office, "b/x", ""));
    succeed(set_value(&office, "b", "5"));
    succeed(set_value(&office, "a", ""));
    CHECK_TEXT(next_line(&office, all), "set a 4");
    CHECK_TEXT(next_line(&office, all), "removed b/x");
    CHECK_TEXT(next_line(&office, all), "set b 5");
    CHECK_TEXT(next_line(&office, all), "removed a");
    CHECK_TEXT(next_line(&office, some), "removed b/x");
    CHECK_TEXT(next_line(&office, some), "set b 5");
    end_watch(all);
    end_watch(some);
    office_close(&office);
}

static void
an_expiry_is_told_once_and_a_renewal_is_news(void)
{
    struct office office;
    Skycap__V1__AnnounceReply *reply;
    office_open(&office);
    struct client_call *watch = begin_watch(&office, "");
    CHECK_TEXT(next_line(&office, watch), "complete");
    uint64_t start = timers_now();
    succeed(announce(&office, "h", "a:1", 1000, &reply));
    CHECK_TEXT(next_line(&office, watch), "set h/address a:1");
    CHECK_TEXT(next_line(&office, watch), "expired h/address a:1");
    CHECK(ms_since(start) >= 999 && ms_since(start) < 3000);
    struct client_call *late = begin_watch(&office, "h");
    CHECK_TEXT(next_line(&office, late), "expired h/address a:1");
    CHECK_TEXT(next_line(&office, late), "complete");
    succeed(announce(&office, "h", "a:1", 60000, &reply));
    CHECK_TEXT(next_line(&office, watch), "set h/address a:1");
    CHECK_TEXT(next_line(&office, late), "set h/address a:1");
    end_watch(watch);
    end_watch(late);
    office_close(&office);
}

/* Renewals by this registry and by another one. What is told is followed by a mark of our own. */
static void
a_mere_renewal_is_no_news(void)
{
    static const char *const first[] = {"zone", "a", NULL}, *const other[] = {"zone", "b", NULL};
    struct office office;
    office_open(&office);
    struct client_call *watch = begin_watch(&office, "");
    CHECK_TEXT(next_line(&office, watch), "complete");
    succeed(announce_node(&office, "n", "a:1", 60000, first));
    CHECK_TEXT(next_line(&office, watch), "set nodes/n/address a:1 zone=a");
    for (int i = 0; i < 20; i++)
        succeed(announce_node(&office, "n", "a:1", 60000 + i, first));
    succeed(set_value(&office, "mark", "1"));
    CHECK_TEXT(next_line(&office, watch), "set mark 1");
    succeed(announce_node(&office, "n", "a:1", 60000, other));
    CHECK_TEXT(next_line(&office, watch), "set nodes/n/address a:1 zone=b");
    succeed(announce_node(&office, "n", "a:2", 60000, other));
    CHECK_TEXT(next_line(&office, watch), "set nodes/n/address a:2 zone=b");
    succeed(announce_node(&office, "n", "a:2", 0, other)); /* from now on it never expires */
    CHECK_TEXT(next_line(&office, watch), "set nodes/n/address a:2 zone=b");
    succeed(announce_node(&office, "n", "", 0, NULL));
    CHECK_TEXT(next_line(&office, watch), "removed nodes/n/address");
    succeed(announce_node(&office, "n", "a:2", 0, other));
    CHECK_TEXT(next_line(&office, watch), "set nodes/n/address a:2 zone=b");
    end_watch(watch);
    office_close(&office);
}

static void
a_node_that_expires_is_told_with_its_attributes(void)
{
    static const char *const pairs[] = {"zone", "a", NULL};
    struct office office;
    office_open(&office);
    struct client_call *watch = begin_watch(&office, "nodes");
    CHECK_TEXT(next_line(&office, watch), "complete");
    succeed(announce_node(&office, "n", "a:1", 1000, pairs));
    CHECK_TEXT(next_line(&office, watch), "set nodes/n/address a:1 zone=a");
    CHECK_TEXT(next_line(&office, watch), "expired nodes/n/address a:1 zone=a");
    succeed(announce_node(&office, "n", "a:1", 60000, pairs));
    CHECK_TEXT(next_line(&office, watch), "set nodes/n/address a:1 zone=a");
    succeed(set_value(&office, "nodes/n/rack", "7"));
    CHECK_TEXT(next_line(&office, watch), "set nodes/n/rack 7");
    end_watch(watch);
    office_close(&office);
}

/*
 * The sweep comes a second after the one before at the earliest: a watch that begins in between lists
 * an entry as expired of whose expiry nobody was told. Its renewal is told all the same.
 */
static void
a_renewal_of_what_was_listed_as_expired_is_news(void)
{
    struct office office;
    office_open(&office);
    succeed(announce_node(&office, "a", "a:1", 1000, NULL));
    sleep_ms(400);
    succeed(announce_node(&office, "b", "a:1", 1000, NULL));
    sleep_ms(1010); /* "a" was swept some 400 ms ago */
    struct client_call *watch = begin_watch(&office, "nodes/b");
    CHECK_TEXT(next_line(&office, watch), "expired nodes/b/address a:1");
    CHECK_TEXT(next_line(&office, watch), "complete");
    succeed(announce_node(&office, "b", "a:1", 60000, NULL));
    const char *line = next_line(&office, watch);
    if (!strcmp(line, "expired nodes/b/address a:1")) /* where the sweep was early after all */
        line = next_line(&office, watch);
    CHECK_TEXT(line, "set nodes/b/address a:1");
    end_watch(watch);
    office_close(&office);
}

/*
 * The client gives 1 MiB of window and receives nothing. What exceeds that, and 256 KiB on the way, waits in the feed, which has as much room. A
 * change waits there until the entry would have expired if it had not been renewed, which is no news.
 */
static void
a_change_that_waits_does_not_become_an_expiry(void)
{
    enum { LARGE_ONES = 345 };
    static char value[4001];
    struct office office;
    unsigned lines = 0;
    const char *line;
    office_open(&office);
    memset(value, 'v', sizeof value - 1);
    struct client_call *slow = begin_watch(&office, "");
    CHECK_TEXT(next_line(&office, slow), "complete");
    for (int i = 0; i < LARGE_ONES; i++) {
        succeed(set_value(&office, "large", value));
        sleep_ms(1);
    }
    succeed(announce_node(&office, "n", "a:1", 1000, NULL));
    sleep_ms(500);
    succeed(announce_node(&office, "n", "a:1", 60000, NULL));
    sleep_ms(700);
    do
        line = next_line(&office, slow);
    while (!strncmp(line, "set large ", 10) && ++lines <= LARGE_ONES);
    CHECK_NUMBER(lines, LARGE_ONES);
    CHECK_TEXT(line, "set nodes/n/address a:1");
    end_watch(slow);
    office_close(&office);
}

/* One that does not receive is sent everything anew later; the other gets each change in time. */
static void
a_slow_watcher_holds_nobody_and_begins_anew(void)
{
    struct office office;
    static char value[2001];
    office_open(&office);
    memset(value, 'v', sizeof value - 1);
    struct client_call *slow = begin_watch(&office, "");
    struct client_call *quick = begin_watch(&office, "");
    CHECK_TEXT(next_line(&office, slow), "complete");
    CHECK_TEXT(next_line(&office, quick), "complete");
    for (int i = 0; i < 4000; i++) {
        struct arena arena AUTO(arena_clear);
        Skycap__V1__WatchReply *reply;
        arena_init(&arena, NULL, 0, SIZE_MAX);
        succeed(set_value(&office, i % 2 ? "a" : "b", value));
        succeed(client_call_recv(quick, &arena, &reply));
        if (reply->what_case != SKYCAP__V1__WATCH_REPLY__WHAT_ENTRY)
            CHECK_TEXT("the quick one has missed something", "");
    }
    succeed(set_value(&office, "last", "1"));
    unsigned begins = 0, marks = 0, lines = 0;
    bool has_last = false;
    for (; (!marks || !has_last) && lines < 5000; lines++) {
        const char *line = next_line(&office, slow);
        begins += !strcmp(line, "anew");
        marks += !strcmp(line, "complete");
        has_last |= !strcmp(line, "set last 1");
        CHECK(marks <= begins);
    }
    CHECK(begins && marks && has_last);
    CHECK(lines < 4000);
    end_watch(slow);
    end_watch(quick);
    office_close(&office);
}

static void
watches_end_when_the_registry_stops(void)
{
    struct office office;
    office_open(&office);
    struct client_call *watch = begin_watch(&office, "");
    CHECK_TEXT(next_line(&office, watch), "complete");
    uint64_t start = timers_now();
    registry_stop(office.registry);
    CHECK_CODE(client_call_finish(watch), CODE_UNAVAILABLE);
    CHECK(ms_since(start) < 1000);
    client_call_free(watch);
    office_close(&office);
}

/* ---- another registry on the same store ---- */

static struct error *
write_row(struct store *store, const char *path, const char *value, int64_t expires_ms)
{
    struct entry entry = {
        .path = path, .value = value, .registered_ms = clock_unix_ms(), .expires_ms = expires_ms};
    return entries_set(store, &entry);
}

static bool
becomes(struct office *office, const char *id, enum code code)
{
    for (int i = 0; i < 200; i++) {
        if (take_code(probe_controller(office, id)) == code)
            return true;
        sleep_ms(10);
    }
    return false;
}

static void
what_another_registry_writes_counts_here_too(void)
{
    static const struct csi_v1_identity handlers = {.probe = {answer_probe}};
    struct office office;
    struct ends behind;
    office_open(&office);
    ends_open(&behind,
              &(struct ends_setup){.service = &csi_v1_identity_service, .handlers = &handlers});
    struct client_call *watch = begin_watch(&office, "");
    CHECK_TEXT(next_line(&office, watch), "complete");
    CHECK_CODE(probe_controller(&office, "h"), CODE_UNAVAILABLE);
    succeed(write_row(office.store, "h/address", behind.address, 0));
    CHECK(becomes(&office, "h", CODE_OK));
    CHECK_TEXT(next_line(&office, watch),
               arena_print(&office.arena, "set h/address %s", behind.address));
    succeed(write_row(office.store, "h/address", "", 0));
    CHECK(becomes(&office, "h", CODE_UNAVAILABLE));
    CHECK_TEXT(next_line(&office, watch), "removed h/address");
    end_watch(watch);
    office_close(&office);
    ends_close(&behind);
}

/* The store remembers so many changes only: the follower lists anew when it missed some, and loses nothing. */
static void
a_burst_that_outruns_the_follower_is_made_good(void)
{
    enum { ROUNDS = 60, ROWS = 100 };
    struct office office;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    office_open(&office);
    succeed(write_row(office.store, "gone/address", "unix-abstract:x", 0));
    CHECK(becomes(&office, "gone", CODE_UNAVAILABLE));
    for (int round = 0; round < ROUNDS; round++) {
        struct store_change changes[ROWS];
        for (int i = 0; i < ROWS; i++) {
            Skycap__Records__RegistryRecord record = SKYCAP__RECORDS__REGISTRY_RECORD__INIT;
            record.value = (char *)"unix-abstract:x";
            changes[i] = (struct store_change){
                .key = arena_print(&arena, "registry/r%d-%d/address", round, i),
                .expected = STORE_ANY};
            uint8_t *bytes = arena_alloc(&arena, protobuf_c_message_get_packed_size(&record.base));
            changes[i].value_size = protobuf_c_message_pack(&record.base, bytes);
            changes[i].value = bytes;
        }
        succeed(store_write(office.store, changes, ROWS, NULL));
    }
    succeed(write_row(office.store, "gone/address", "", 0));
    struct buffer text AUTO(buffer_clear) = {0};
    for (int i = 0; i < 300; i++) {
        buffer_clear(&text);
        registry_print_metrics(office.registry, &text);
        if (strstr(buffer_text(&text), "\nskycap_registry_controllers 6000\n"))
            break;
        sleep_ms(10);
    }
    CHECK(strstr(buffer_text(&text), "\nskycap_registry_controllers 6000\n"));
    struct error *error AUTO(error_cleanup) = probe_controller(&office, "gone");
    CHECK(error && strstr(error->message, "is not registered"));
    office_close(&office);
}

int
main(void)
{
    a_watch_tells_what_is_there_then_each_change();
    an_expiry_is_told_once_and_a_renewal_is_news();
    a_mere_renewal_is_no_news();
    a_node_that_expires_is_told_with_its_attributes();
    a_renewal_of_what_was_listed_as_expired_is_news();
    a_change_that_waits_does_not_become_an_expiry();
    a_slow_watcher_holds_nobody_and_begins_anew();
    watches_end_when_the_registry_stops();
    what_another_registry_writes_counts_here_too();
    a_burst_that_outruns_the_follower_is_made_good();
    return check_report("test_registry_watch");
}
