/* SPDX-License-Identifier: Apache-2.0 */
/* The store on etcd: all that is true of every store, and what is its own. */
#include "etcd_ends.h"
#include "store/etcd_internal.h"
#include "store_facts.h"

/* Less than any time that is waited for etcd; enough for a machine that has much else to do. */
#define PROMPT_MS 2000

static struct store *meter; /* tells etcd's revision */

/* Nobody else writes to this etcd: the mark of the new prefix is the next write, and the first entry the one after it. */
static struct store *
open_on_etcd(size_t number)
{
    char prefix[16];
    snprintf(prefix, sizeof prefix, "fact/%zu", number);
    revision_before = revision_of(meter) + 1;
    return open_etcd_store(prefix);
}

/* ---- urls ---- */

static void
urls_that_are_none_are_refused(void)
{
    static const char *const wrong[] = {
        "etcd:",           "etcd://",         "etcd:///p",        "etcd:127.0.0.1:1",
        "etcd://host",     "etcd://host:x",   "etcd://:2379",     "etcd://a:1,",
        "etcd://a:1,,b:2", "etcd://host:0",   "etcd://unix:x",    "etcd://::1:2379",
        "etcd://[::1:1",   "etcd://h:1/a\nb", "etcd://h:1/a\xff", "etcd://host:99999",
    };
    const struct store_options options = {.runtime = etcd_runtime};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct store *opened;
        struct error *error = store_open(wrong[i], &options, &opened);
        if (!error)
            fprintf(stderr, "%s was taken\n", wrong[i]);
        CHECK_SAYS(error, CODE_INVALID_ARGUMENT, "say etcd://HOST:PORT");
        CHECK(!opened);
    }
}

static void
a_runtime_is_needed(void)
{
    struct store *opened;
    CHECK_SAYS(store_open(etcd_url("p"), NULL, &opened), CODE_INVALID_ARGUMENT, "network");
    CHECK_SAYS(store_open(etcd_url("p"), &(struct store_options){0}, &opened),
               CODE_INVALID_ARGUMENT, "network");
}

static void
members_that_are_gone_are_passed_over(void)
{
    char url[160];
    struct store *opened;
    snprintf(url, sizeof url, "etcd://[::1]:%u,127.0.0.1:%u,localhost:%u/several", find_free_port(),
             find_free_port(), etcd_port);
    CHECK_OK(store_open(url, &(struct store_options){.runtime = etcd_runtime}, &opened));
    CHECK_OK(put(opened, "a", "1", STORE_ANY, NULL));
    store_close(opened);
}

static void
a_store_opens_although_nobody_answers(void)
{
    char url[64];
    uint64_t revision;
    struct store_watch *watch;
    snprintf(url, sizeof url, "etcd://127.0.0.1:%u", find_free_port());
    double start = now_ms();
    CHECK_OK(store_open(url, &(struct store_options){.runtime = etcd_runtime}, &store));
    CHECK_SAYS(store_revision(store, &revision), CODE_UNAVAILABLE, "does not answer");
    CHECK_SAYS(put(store, "a", "1", STORE_ANY, NULL), CODE_UNAVAILABLE, "does not answer");
    CHECK_SAYS(store_watch_open(store, "", 0, &watch), CODE_UNAVAILABLE, "does not answer");
    store_close(store);
    CHECK(now_ms() - start < PROMPT_MS);
}

static void
a_store_goes_on_when_etcd_has_answered(void)
{
    struct store_watch *watch = NULL;
    struct arena arena;
    struct store_list list;
    freeze_etcd();
    CHECK_OK(try_etcd_store("late", &store));
    arena_init(&arena, NULL, 0, 0);
    CHECK_SAYS(store_list(store, "", NULL, 0, &arena, &list), CODE_UNAVAILABLE, "does not answer");
    kill(etcd_process, SIGCONT);
    CHECK_NUMBER(first_answer(store), CODE_OK);
    CHECK_OK(put(store, "a", "1", STORE_ABSENT, NULL));
    CHECK_OK(store_watch_open(store, "", revision_of(store), &watch));
    CHECK_OK(put(store, "a", "2", STORE_ANY, NULL));
    CHECK(!strncmp(next_of(watch, 10000), "a=2@", 4));
    store_watch_close(watch);
    store_close(store);
    arena_clear(&arena);
}

/* Both begin with nothing: the mark decides whose it is. */
static void
a_newer_program_that_began_meanwhile_is_noticed(void)
{
    uint64_t revision;
    struct store *around = open_etcd_store("around"), *older = open_etcd_store("around/both");
    CHECK_NUMBER(revision_of(older), 0);
    CHECK_OK(put(around, "both/", "2", STORE_ANY, NULL));
    CHECK_SAYS(put(older, "a", "1", STORE_ANY, NULL), CODE_FAILED_PRECONDITION, "newer");
    CHECK_SAYS(store_revision(older, &revision), CODE_FAILED_PRECONDITION, "newer");
    CHECK_SAYS(put(older, "a", "1", STORE_ANY, NULL), CODE_FAILED_PRECONDITION, "newer");
    CHECK_TEXT(get(around, "both/a"), NULL);
    store_close(older);
    store_close(around);
}

/* Found by the first call that is answered, if nobody answered before. */
static void
a_store_of_a_newer_program_is_refused_also_later(void)
{
    struct store *around = open_etcd_store("around");
    CHECK_OK(put(around, "late/", "2", STORE_ANY, NULL));
    freeze_etcd();
    CHECK_OK(try_etcd_store("around/late", &store));
    kill(etcd_process, SIGCONT);
    CHECK_NUMBER(first_answer(store), CODE_FAILED_PRECONDITION);
    CHECK_SAYS(put(store, "a", "1", STORE_ANY, NULL), CODE_FAILED_PRECONDITION, "newer");
    CHECK_TEXT(get(around, "late/a"), NULL);
    store_close(store);
    store_close(around);
}

static void *
stop_soon(void *unused)
{
    sleep_ms(200);
    store_stop(store);
    return unused;
}

static void
who_waits_for_etcd_is_sent_on(void)
{
    pthread_t thread;
    store = open_etcd_store("stopped");
    freeze_etcd();
    CHECK(!pthread_create(&thread, NULL, stop_soon, NULL));
    double start = now_ms();
    CHECK_SAYS(put(store, "a", "1", STORE_ANY, NULL), CODE_UNAVAILABLE, "does not answer");
    CHECK_SAYS(put(store, "a", "1", STORE_ANY, NULL), CODE_UNAVAILABLE, "does not answer");
    CHECK(now_ms() - start < 1500);
    pthread_join(thread, NULL);
    store_close(store);
    kill(etcd_process, SIGCONT);
    store = open_etcd_store("stopped");
    CHECK_NUMBER(first_answer(store), CODE_OK);
    store_close(store);
}

/* ---- prefixes ---- */

static void
prefixes_are_stores_of_their_own(void)
{
    struct store *one = open_etcd_store("one"), *inner = open_etcd_store("one/two/");
    struct store *usual = open_etcd_store(""), *named = open_etcd_store("skycap");
    CHECK_NUMBER(revision_of(one), 0);
    CHECK_OK(put(inner, "a", "inner", STORE_ANY, NULL));
    CHECK_NUMBER(revision_of(one), 0);
    CHECK(revision_of(inner) > 0);
    CHECK_OK(put(one, "a", "outer", STORE_ABSENT, NULL));
    CHECK_TEXT(get(inner, "a"), "inner");
    CHECK_TEXT(get(one, "two/a"), "inner");
    CHECK_OK(put(usual, "a", "usual", STORE_ABSENT, NULL));
    CHECK_TEXT(get(named, "a"), "usual");
    store_close(one);
    store_close(inner);
    store_close(usual);
    store_close(named);
}

static void
a_store_that_was_emptied_is_not_new(void)
{
    uint64_t written, emptied;
    struct store *first = open_etcd_store("emptied");
    CHECK_NUMBER(revision_of(first), 0);
    CHECK_OK(put(first, "a", "1", STORE_ANY, &written));
    CHECK_OK(put(first, "a", NULL, STORE_ANY, &emptied));
    CHECK_NUMBER(emptied, written + 1);
    store_close(first);
    first = open_etcd_store("emptied");
    CHECK_NUMBER(revision_of(first), emptied);
    store_close(first);
}

/* With what is around it: keys of the inner store, and its mark, are keys of the outer one. */
static void
revisions_do_not_go_back_when_all_is_deleted(void)
{
    uint64_t written;
    struct store *outer = open_etcd_store("deleted"), *inner = open_etcd_store("deleted/inner");
    CHECK_OK(put(inner, "a", "1", STORE_ANY, NULL));
    const struct store_change all[] = {text_change("inner/", NULL, STORE_ANY),
                                       text_change("inner/a", NULL, STORE_ANY)};
    CHECK_OK(store_write(outer, all, 2, &written));
    CHECK_TEXT(get(inner, "a"), NULL);
    CHECK_NUMBER(revision_of(inner), written);
    store_close(inner);
    store_close(outer);
}

static void
a_store_of_a_newer_program_is_refused(void)
{
    struct store *around = open_etcd_store("around"), *opened;
    CHECK_OK(put(around, "newer/", "2", STORE_ANY, NULL));
    CHECK_SAYS(try_etcd_store("around/newer", &opened), CODE_FAILED_PRECONDITION, "newer");
    store_close(around);
}

/* ---- two stores ---- */

static void
changes_of_one_are_seen_by_the_other(void)
{
    uint64_t before, last = 0;
    struct store *writer = open_etcd_store("pair"), *other = open_etcd_store("pair");
    CHECK_OK(put(writer, "n", "first", STORE_ANY, &before));
    store = other;
    struct store_watch *seen = NULL;
    CHECK_OK(store_watch_open(other, "n", before, &seen));
    for (int i = 0; i < 200; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        CHECK_OK(put(i % 3 ? writer : other, "n", text, STORE_ANY, NULL));
    }
    for (int i = 0; i < 200; i++) {
        struct arena arena;
        struct store_entry entry = {0};
        arena_init(&arena, NULL, 0, 0);
        CHECK_OK(store_watch_next(seen, 10000, &arena, &entry));
        CHECK(entry.key && atoi((const char *)entry.value) == i && entry.revision > last);
        last = entry.revision;
        arena_clear(&arena);
    }
    store_watch_close(seen);
    store_close(writer);
    store_close(other);
}

static void
a_watch_opened_behind_a_write_does_not_tell_it_again(void)
{
    uint64_t revision;
    store = open_etcd_store("behind");
    revision_before = 0;
    for (int i = 0; i < 50; i++) {
        struct store_watch *opened;
        CHECK_OK(put(store, "a", "old", STORE_ANY, &revision));
        CHECK_OK(store_watch_open(store, "", revision, &opened));
        CHECK_OK(put(store, "a", "new", STORE_ANY, NULL));
        CHECK(!strncmp(next_of(opened, 10000), "a=new@", 6));
        store_watch_close(opened);
    }
    store_close(store);
}

/* ---- lists ---- */

static void
check_list(size_t count, size_t limit, size_t expected)
{
    struct arena arena;
    struct store_list found;
    arena_init(&arena, NULL, 0, 0);
    CHECK_OK(store_list(store, "n/", NULL, limit, &arena, &found));
    CHECK_NUMBER(found.count, expected);
    CHECK(found.has_more == (expected < count));
    for (size_t i = 0; i < found.count; i++) {
        char key[32];
        snprintf(key, sizeof key, "n/%05zu", i);
        CHECK_TEXT(found.entries[i].key, key);
    }
    arena_clear(&arena);
}

/* As if etcd was restored between two calls that follow each other at once. */
static void
an_answer_of_an_earlier_state_is_refused(void)
{
    struct store *older = open_etcd_store("earlier");
    struct etcd_client *client = &((struct etcd_store *)older)->client;
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK_OK(put(older, "a", "first", STORE_ANY, NULL));
    atomic_fetch_add(&client->heard, 1000);
    struct error *error = put(older, "a", "second", STORE_ANY, NULL);
    CHECK(error && error->in_doubt);
    CHECK_SAYS(error, CODE_UNAVAILABLE, "start skycap anew");
    CHECK_SAYS(store_get(older, "a", &arena, &entry), CODE_UNAVAILABLE, "start skycap anew");
    arena_clear(&arena);
    store_close(older);
}

/* The same with a read. */
static void
an_earlier_state_is_not_told(void)
{
    struct store *older = open_etcd_store("earlier");
    struct etcd_client *client = &((struct etcd_store *)older)->client;
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    CHECK_OK(put(older, "a", "first", STORE_ANY, NULL));
    atomic_fetch_add(&client->heard, 1000);
    CHECK_SAYS(store_get(older, "a", &arena, &entry), CODE_UNAVAILABLE, "start skycap anew");
    arena_clear(&arena);
    store_close(older);
}

static void
a_long_list_comes_whole_and_in_order(void)
{
    enum { ENTRIES = 1300 };
    static char keys[ENTRIES][16];
    store = open_etcd_store("long");
    for (int i = 0; i < ENTRIES;) {
        struct store_change changes[STORE_MAX_CHANGES];
        size_t n = 0;
        for (; n < STORE_MAX_CHANGES && i < ENTRIES; n++, i++) {
            snprintf(keys[i], sizeof keys[i], "n/%05d", i);
            changes[n] = text_change(keys[i], "x", STORE_ABSENT);
        }
        CHECK_OK(store_write(store, changes, n, NULL));
    }
    check_list(ENTRIES, 0, ENTRIES);
    check_list(ENTRIES, ENTRIES, ENTRIES);
    check_list(ENTRIES, ENTRIES - 1, ENTRIES - 1);
    check_list(ENTRIES, 512, 512);
    check_list(ENTRIES, 1, 1);
    store_close(store);
}

/* Together they are more than one message may have. */
static void
a_list_of_large_entries_comes_whole(void)
{
    enum { ENTRIES = 9 };
    static uint8_t large[STORE_MAX_VALUE];
    store = open_etcd_store("large");
    for (int i = 0; i < ENTRIES; i++) {
        char key[16];
        snprintf(key, sizeof key, "n/%05d", i);
        CHECK_OK(store_write(store, &(struct store_change){key, large, sizeof large, STORE_ABSENT},
                             1, NULL));
    }
    check_list(ENTRIES, 0, ENTRIES);
    check_list(ENTRIES, 7, 7);
    store_close(store);
}

/* ---- closing ---- */

static void
closing_is_prompt(void)
{
    for (int i = 0; i < 20; i++) {
        store = open_etcd_store("prompt");
        if (i % 2)
            sleep_ms(20);
        double start = now_ms();
        store_close(store);
        CHECK(now_ms() - start < PROMPT_MS);
    }
}

static void
closing_is_prompt_when_etcd_hangs(void)
{
    store = open_etcd_store("hangs");
    sleep_ms(50);
    freeze_etcd();
    double start = now_ms();
    CHECK_SAYS(put(store, "a", "1", STORE_ANY, NULL), CODE_UNAVAILABLE, "does not answer");
    CHECK(now_ms() - start < 3000);
    start = now_ms();
    store_close(store);
    CHECK(now_ms() - start < PROMPT_MS);
    kill(etcd_process, SIGCONT);
}

int
main(void)
{
    require_etcd();
    make_test_directory();
    start_etcd();
    is_etcd = true;
    meter = open_etcd_store("meter");
    CHECK_OK(put(meter, "a", "1", STORE_ANY, NULL));
    check_facts("etcd", open_on_etcd);
    store_close(meter);
    urls_that_are_none_are_refused();
    a_runtime_is_needed();
    members_that_are_gone_are_passed_over();
    a_store_opens_although_nobody_answers();
    a_store_goes_on_when_etcd_has_answered();
    a_newer_program_that_began_meanwhile_is_noticed();
    a_store_of_a_newer_program_is_refused_also_later();
    who_waits_for_etcd_is_sent_on();
    prefixes_are_stores_of_their_own();
    a_store_that_was_emptied_is_not_new();
    revisions_do_not_go_back_when_all_is_deleted();
    a_store_of_a_newer_program_is_refused();
    changes_of_one_are_seen_by_the_other();
    a_watch_opened_behind_a_write_does_not_tell_it_again();
    an_answer_of_an_earlier_state_is_refused();
    an_earlier_state_is_not_told();
    a_long_list_comes_whole_and_in_order();
    a_list_of_large_entries_comes_whole();
    closing_is_prompt();
    closing_is_prompt_when_etcd_hangs();
    stop_etcd();
    remove_test_directory();
    return check_report("test_store_etcd");
}
