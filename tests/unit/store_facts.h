/* SPDX-License-Identifier: Apache-2.0 */
/* What src/store/store.h promises, of every store. */
#ifndef UNIT_STORE_FACTS_H
#define UNIT_STORE_FACTS_H

#include <pthread.h>

#include "store/history.h"
#include "store_ends.h"

static struct store *store; /* an empty one for each fact */

/*
 * What differs between stores. Facts count the store's own writes from 1, whatever the revision that it gives the first: etcd's count all writes to
 * etcd. Others than etcd tell of a change before the write returns.
 */
static __attribute__((unused)) uint64_t revision_before; /* that of the first write, less one */
static __attribute__((unused)) bool is_etcd;
/* A store on a registry has lower ones. */
static struct {
    size_t key, value, changes;
} limits = {STORE_MAX_KEY, STORE_MAX_VALUE, STORE_MAX_CHANGES};
static
    __attribute__((unused)) bool is_on_registry; /* it cannot be watched, and a prefix is UTF-8 */

/* Which of the store's writes it was; 0: none. */
static uint64_t
number_of(uint64_t revision)
{
    return revision ? revision - revision_before : 0;
}

static uint64_t
write_count(void)
{
    return number_of(revision_of(store));
}

#define AT_ONCE_MS (is_etcd ? 10000u : 0u)
#define NO_MORE_MS (is_etcd ? 100u : 0u)

/* ---- reading and writing ---- */

static void
a_value_is_read_as_it_was_written(void)
{
    static uint8_t large[STORE_MAX_VALUE];
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)(i * 31 + i / 256);
    const struct store_change changes[] = {
        {"empty", large, 0, STORE_ABSENT},
        {"zeros", (const uint8_t *)"\0a\0", 3, STORE_ABSENT},
        {"large", large, limits.value, STORE_ABSENT},
    };
    uint64_t revision = 0;
    CHECK_OK(store_write(store, changes, COUNT_OF(changes), &revision));
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct arena arena;
        struct store_entry entry = {0};
        arena_init(&arena, NULL, 0, 0);
        CHECK_OK(store_get(store, changes[i].key, &arena, &entry));
        CHECK_TEXT(entry.key, changes[i].key);
        CHECK_NUMBER(entry.value_size, changes[i].value_size);
        CHECK(entry.value && !memcmp(entry.value, changes[i].value, changes[i].value_size));
        CHECK_NUMBER(entry.revision, revision);
        arena_clear(&arena);
    }
}

static void
what_is_not_there_is_not_found(void)
{
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, NULL, 0, 0);
    CHECK_SAYS(store_get(store, "volume/none", &arena, &entry), CODE_NOT_FOUND, "volume/none");
    CHECK_OK(put(store, "volume/none", "x", STORE_ANY, NULL));
    CHECK_OK(put(store, "volume/none", NULL, STORE_ANY, NULL));
    CHECK_CODE(store_get(store, "volume/none", &arena, &entry), CODE_NOT_FOUND);
    CHECK_CODE(store_get(store, "volume", &arena, &entry), CODE_NOT_FOUND);
    bool found = true;
    CHECK_OK(store_find(store, "volume/none", &arena, &entry, &found));
    CHECK(!found);
    CHECK_OK(put(store, "volume/one", "x", STORE_ANY, NULL));
    CHECK_OK(store_find(store, "volume/one", &arena, &entry, &found));
    CHECK(found && entry.value_size == 1);
    CHECK_CODE(store_find(store, "", &arena, &entry, &found), CODE_INVALID_ARGUMENT);
    arena_clear(&arena);
}

static void
every_write_gets_the_next_revision(void)
{
    uint64_t revision;
    CHECK_NUMBER(write_count(), 0);
    CHECK_OK(put(store, "a", "1", STORE_ANY, &revision));
    CHECK_NUMBER(number_of(revision), 1);
    CHECK_OK(put(store, "b", "1", STORE_ANY, &revision));
    CHECK_NUMBER(number_of(revision), 2);
    CHECK_OK(put(store, "a", NULL, STORE_ANY, &revision));
    CHECK_NUMBER(number_of(revision), 3);
    CHECK_CODE(put(store, "b", "2", STORE_ABSENT, &revision), CODE_ABORTED);
    CHECK_NUMBER(write_count(), 3);
    /* etcd counts what has changed something. */
    CHECK_OK(put(store, "nothing", NULL, STORE_ANY, &revision));
    CHECK_NUMBER(number_of(revision), is_etcd ? 3 : 4);
    CHECK_NUMBER(write_count(), is_etcd ? 3 : 4);
}

static void
a_write_finds_what_it_expects_or_is_aborted(void)
{
    uint64_t first, second;
    CHECK_CODE(put(store, "a", "x", 1, NULL), CODE_ABORTED);
    CHECK_CODE(put(store, "a", NULL, 1, NULL), CODE_ABORTED);
    CHECK_OK(put(store, "a", NULL, STORE_ABSENT, NULL));
    CHECK_OK(put(store, "a", "1", STORE_ABSENT, &first));
    CHECK_CODE(put(store, "a", "2", STORE_ABSENT, NULL), CODE_ABORTED);
    CHECK_CODE(put(store, "a", NULL, STORE_ABSENT, NULL), CODE_ABORTED);
    CHECK_CODE(put(store, "a", "2", first + 1, NULL), CODE_ABORTED);
    CHECK_TEXT(get(store, "a"), "1");
    CHECK_OK(put(store, "a", "2", first, &second));
    CHECK_CODE(put(store, "a", "3", first, NULL), CODE_ABORTED);
    CHECK_CODE(put(store, "a", NULL, first, NULL), CODE_ABORTED);
    CHECK_TEXT(get(store, "a"), "2");
    CHECK_OK(put(store, "a", NULL, second, NULL));
    CHECK_TEXT(get(store, "a"), NULL);
    CHECK_CODE(put(store, "a", "3", second, NULL), CODE_ABORTED);
}

static void
a_write_is_made_as_a_whole_or_not_at_all(void)
{
    uint64_t revision;
    CHECK_OK(put(store, "kept", "old", STORE_ANY, &revision));
    struct store_change changes[] = {
        text_change("new", "1", STORE_ABSENT),
        text_change("kept", NULL, revision),
        text_change("missing", "1", 77),
    };
    CHECK_SAYS(store_write(store, changes, 3, NULL), CODE_ABORTED, "missing");
    CHECK_TEXT(get(store, "new"), NULL);
    CHECK_TEXT(get(store, "kept"), "old");
    changes[2].expected = STORE_ABSENT;
    CHECK_OK(store_write(store, changes, 3, &revision));
    CHECK_NUMBER(number_of(revision), 2);
    CHECK_TEXT(get(store, "new"), "1");
    CHECK_TEXT(get(store, "kept"), NULL);
    CHECK_TEXT(get(store, "missing"), "1");
}

/* ---- limits ---- */

static void
keys_have_limits(void)
{
    char key[STORE_MAX_KEY + 2];
    struct arena arena;
    struct store_entry entry;
    memset(key, 'k', sizeof key);
    key[limits.key + 1] = '\0';
    arena_init(&arena, NULL, 0, 0);
    CHECK_CODE(put(store, key, "x", STORE_ANY, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(store_get(store, key, &arena, &entry), CODE_INVALID_ARGUMENT);
    CHECK_CODE(put(store, "", "x", STORE_ANY, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(store_get(store, "", &arena, &entry), CODE_INVALID_ARGUMENT);
    CHECK_CODE(put(store, "bad\xff", "x", STORE_ANY, NULL), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(write_count(), 0);
    key[limits.key] = '\0';
    CHECK_OK(put(store, key, "x", STORE_ANY, NULL));
    CHECK_TEXT(get(store, key), "x");
    arena_clear(&arena);
}

static void
writes_have_limits(void)
{
    static uint8_t large[STORE_MAX_VALUE + 1];
    static char keys[STORE_MAX_CHANGES + 1][16];
    struct store_change changes[STORE_MAX_CHANGES + 1];
    for (int i = 0; i <= STORE_MAX_CHANGES; i++) {
        snprintf(keys[i], sizeof keys[i], "%d", i);
        changes[i] = text_change(keys[i], "x", STORE_ANY);
    }
    CHECK_CODE(store_write(store, changes, 0, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(store_write(store, changes, limits.changes + 1, NULL), CODE_INVALID_ARGUMENT);
    CHECK_CODE(store_write(store, &(struct store_change){"a", large, limits.value + 1, STORE_ANY},
                           1, NULL),
               CODE_INVALID_ARGUMENT);
    struct store_change twice[] = {text_change("b", "1", STORE_ANY), changes[0],
                                   text_change("b", NULL, STORE_ANY)};
    CHECK_SAYS(store_write(store, twice, 3, NULL), CODE_INVALID_ARGUMENT, "\"b\" twice");
    struct store_change heavy[16];
    for (size_t i = 0; i < COUNT_OF(heavy); i++)
        heavy[i] = (struct store_change){keys[i], large, limits.value, STORE_ANY};
    size_t most = STORE_MAX_WRITE / limits.value;
    if (most < COUNT_OF(heavy))
        CHECK_CODE(store_write(store, heavy, most + 1, NULL), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(write_count(), 0);
    most = most < COUNT_OF(heavy) ? most : COUNT_OF(heavy);
    if (is_etcd && !is_on_registry)
        CHECK_SAYS(store_write(store, heavy, most, NULL), CODE_INVALID_ARGUMENT,
                   "--max-request-bytes");
    else
        CHECK_OK(store_write(store, heavy, most, NULL));
    CHECK_OK(store_write(store, changes, limits.changes, NULL));
    CHECK_TEXT(get(store, keys[limits.changes - 1]), "x");
}

/* ---- lists ---- */

/* The keys of a list, with a comma behind each and a "+" at the end where there are more. */
static const char *
list(const char *prefix, const char *after, size_t limit)
{
    static char text[1024];
    struct arena arena;
    struct store_list found;
    size_t size = 0;
    arena_init(&arena, NULL, 0, 0);
    CHECK_OK(store_list(store, prefix, after, limit, &arena, &found));
    text[0] = '\0';
    for (size_t i = 0; i < found.count; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s,", found.entries[i].key);
    if (found.has_more)
        snprintf(text + size, sizeof text - size, "+");
    arena_clear(&arena);
    return text;
}

static void
fill(const char *const *keys)
{
    for (; *keys; keys++)
        CHECK_OK(put(store, *keys, *keys, STORE_ANY, NULL));
}

static void
a_list_has_what_begins_with_the_prefix_in_order_of_bytes(void)
{
    fill((const char *const[]){"b", "a/\xc3\xa9", "a/Z", "a", "a/z", "a/zz", "a0", "a/", "B",
                               "a\xf4\x8f\xbf\xbf", NULL});
    CHECK_TEXT(list("a/", NULL, 0), "a/,a/Z,a/z,a/zz,a/\xc3\xa9,");
    CHECK_TEXT(list("a", NULL, 0), "a,a/,a/Z,a/z,a/zz,a/\xc3\xa9,a0,a\xf4\x8f\xbf\xbf,");
    CHECK_TEXT(list("", NULL, 0), "B,a,a/,a/Z,a/z,a/zz,a/\xc3\xa9,a0,a\xf4\x8f\xbf\xbf,b,");
    CHECK_TEXT(list("a\xf4\x8f\xbf\xbf", NULL, 0), "a\xf4\x8f\xbf\xbf,");
    if (!is_on_registry)
        CHECK_TEXT(list("a\xff\xff", NULL, 0), "");
    CHECK_TEXT(list("c", NULL, 0), "");
    CHECK_TEXT(list("a/zzz", NULL, 0), "");
}

static void
a_list_goes_on_behind_the_last_key(void)
{
    fill((const char *const[]){"p/1", "p/2", "p/3", "p/4", "q/1", "o/1", NULL});
    CHECK_TEXT(list("p/", NULL, 2), "p/1,p/2,+");
    CHECK_TEXT(list("p/", "p/2", 2), "p/3,p/4,");
    CHECK_TEXT(list("p/", "p/4", 2), "");
    CHECK_TEXT(list("p/", NULL, 4), "p/1,p/2,p/3,p/4,");
    CHECK_TEXT(list("p/", NULL, 3), "p/1,p/2,p/3,+");
    CHECK_TEXT(list("p/", "p/2x", 0), "p/3,p/4,");
    CHECK_TEXT(list("p/", "a", 1), "p/1,+");
    CHECK_TEXT(list("p/", "p/", 1), "p/1,+");
    CHECK_TEXT(list("p/", "q", 1), "");
    /* The key that a page ended with may be gone when the next one is asked for, and others may have come. */
    CHECK_OK(put(store, "p/2", NULL, STORE_ANY, NULL));
    CHECK_OK(put(store, "p/1x", "", STORE_ANY, NULL));
    CHECK_OK(put(store, "p/2x", "", STORE_ANY, NULL));
    CHECK_TEXT(list("p/", "p/2", 2), "p/2x,p/3,+");
}

static void
a_list_has_values_and_revisions(void)
{
    struct arena arena;
    struct store_list found;
    arena_init(&arena, NULL, 0, 0);
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "n/%03d", i);
        CHECK_OK(put(store, key, key, STORE_ABSENT, NULL));
    }
    CHECK_OK(store_list(store, "n/", NULL, 0, &arena, &found));
    CHECK_NUMBER(found.count, 300);
    CHECK(!found.has_more);
    for (size_t i = 0; i < found.count; i++) {
        const struct store_entry *entry = &found.entries[i];
        CHECK_NUMBER(number_of(entry->revision), i + 1);
        CHECK_NUMBER(entry->value_size, 5);
        CHECK_TEXT((const char *)entry->value, entry->key); /* a NUL stands behind each value */
    }
    arena_clear(&arena);
}

static void
bounds_of_lists_have_limits(void)
{
    char text[STORE_MAX_KEY + 2];
    struct arena arena;
    struct store_list found;
    memset(text, 'k', sizeof text);
    text[STORE_MAX_KEY + 1] = '\0';
    arena_init(&arena, NULL, 0, 0);
    CHECK_CODE(store_list(store, text, NULL, 0, &arena, &found), CODE_INVALID_ARGUMENT);
    CHECK_CODE(store_list(store, "", text, 0, &arena, &found), CODE_INVALID_ARGUMENT);
    arena_clear(&arena);
}

#include "store_watch_facts.h"

/* ---- many threads ---- */

#define THREADS 8
#define ROUNDS 60
_Static_assert(2 * THREADS * ROUNDS <= HISTORY_CHANGES, "a slow watch still sees all");

/* Reads a number, adds one, and writes it where nobody else has done so meanwhile. */
static void
count_up(const char *key)
{
    for (;;) {
        struct arena arena;
        struct store_entry entry = {.value = (const uint8_t *)"0", .revision = STORE_ABSENT};
        char text[16];
        arena_init(&arena, NULL, 0, 0);
        error_free(store_get(store, key, &arena, &entry));
        snprintf(text, sizeof text, "%d", atoi((const char *)entry.value) + 1);
        enum code code = code_of(put(store, key, text, entry.revision, NULL));
        arena_clear(&arena);
        if (code == CODE_OK)
            return;
        EXPECT(code == CODE_ABORTED);
    }
}

static void *
count_up_often(void *argument)
{
    for (int i = 0; i < ROUNDS; i++)
        count_up("counter");
    return argument;
}

static void
run_threads(void *(*function)(void *))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, function, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_NUMBER(atomic_load(&thread_failures), 0);
}

static void
no_count_is_lost_among_threads(void)
{
    char text[16];
    snprintf(text, sizeof text, "%d", THREADS * ROUNDS);
    run_threads(count_up_often);
    CHECK_TEXT(get(store, "counter"), text);
    /* What was aborted took no revision. */
    CHECK_NUMBER(write_count(), THREADS * ROUNDS);
}

static void *
write_own(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    uint64_t last = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char key[32], other[32];
        uint64_t revision = 0;
        snprintf(key, sizeof key, "own/%u/%03d", number, i);
        snprintf(other, sizeof other, "other/%u/%03d", number, i);
        struct store_change pair[] = {text_change(key, "x", STORE_ABSENT),
                                      text_change(other, "x", STORE_ABSENT)};
        EXPECT(code_of(store_write(store, pair, 2, &revision)) == CODE_OK);
        EXPECT(revision > last);
        const char *text = get(store, key);
        EXPECT(text && !strcmp(text, "x")); /* one reads one's own write */
        EXPECT(revision_of(store) >= revision);
        last = revision;
    }
    return NULL;
}

/* Whatever the threads do, a watch sees every change once, and revisions without a gap. */
static void *
watch_all(void *argument)
{
    struct arena arena;
    struct store_entry entry = {0};
    arena_init(&arena, NULL, 0, 0);
    for (uint64_t i = 0; i < 2 * THREADS * ROUNDS; i++) {
        EXPECT(code_of(store_watch_next(argument, 60000, &arena, &entry)) == CODE_OK);
        EXPECT(number_of(entry.revision) == i / 2 + 1);
        EXPECT(entry.key && !strncmp(entry.key, i % 2 ? "other/" : "own/", 4));
        entry.key = NULL;
        arena_clear(&arena);
    }
    return NULL;
}

static void
a_watch_sees_all_that_many_threads_write(void)
{
    struct store_watch *opened = watch("", 0);
    pthread_t watcher;
    pthread_create(&watcher, NULL, watch_all, opened);
    run_threads(write_own);
    pthread_join(watcher, NULL);
    CHECK_NUMBER(atomic_load(&thread_failures), 0);
    CHECK_TEXT(next_of(opened, NO_MORE_MS), "DEADLINE_EXCEEDED");
    store_watch_close(opened);
    struct arena arena;
    struct store_list found;
    arena_init(&arena, NULL, 0, 0);
    CHECK_OK(store_list(store, "own/", NULL, 0, &arena, &found));
    CHECK_NUMBER(found.count, THREADS * ROUNDS);
    arena_clear(&arena);
}

/* ---- all of it, for each store ---- */

static void (*const facts[])(void) = {
    a_value_is_read_as_it_was_written,
    what_is_not_there_is_not_found,
    every_write_gets_the_next_revision,
    a_write_finds_what_it_expects_or_is_aborted,
    a_write_is_made_as_a_whole_or_not_at_all,
    keys_have_limits,
    writes_have_limits,
    a_list_has_what_begins_with_the_prefix_in_order_of_bytes,
    a_list_goes_on_behind_the_last_key,
    a_list_has_values_and_revisions,
    bounds_of_lists_have_limits,
    no_count_is_lost_among_threads,
    a_watch_sees_each_change_of_its_keys_in_order,
    a_watch_waits_for_a_change_but_no_longer_than_it_may,
    a_watch_that_falls_behind_is_told,
    large_changes_push_older_ones_out,
    a_watch_since_the_future_is_of_another_store,
    a_watch_sees_all_that_many_threads_write,
};

#define WATCH_FACTS 6u /* the last ones */

/* `open_next` gives an empty store. */
static void
check_facts(const char *name, struct store *(*open_next)(size_t number))
{
    for (size_t i = 0; i < COUNT_OF(facts) - (is_on_registry ? WATCH_FACTS : 0); i++) {
        unsigned failed = check_failed;
        store = open_next(i);
        facts[i]();
        CHECK_OK(store_check(store));
        store_close(store);
        if (check_failed != failed)
            fprintf(stderr, "(fact %zu, %s)\n", i, name);
    }
}

#endif
