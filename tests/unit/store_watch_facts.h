/* SPDX-License-Identifier: Apache-2.0 */
/* What every store with watches does: a part of store_facts.h, which has the store. */
#ifndef STORE_WATCH_FACTS_H
#define STORE_WATCH_FACTS_H

/* The next change as "key=value@revision" ("key-@revision" for a delete), or the name of the error. */
static const char *
next_of(struct store_watch *watch, unsigned timeout_ms)
{
    static char text[256];
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, NULL, 0, 0);
    struct error *error AUTO(error_cleanup) = store_watch_next(watch, timeout_ms, &arena, &entry);
    if (error)
        snprintf(text, sizeof text, "%s", error_code_name(error->code));
    else if (!entry.value)
        snprintf(text, sizeof text, "%s-@%" PRIu64, entry.key, number_of(entry.revision));
    else
        snprintf(text, sizeof text, "%s=%.32s@%" PRIu64, entry.key, (const char *)entry.value,
                 number_of(entry.revision));
    arena_clear(&arena);
    return text;
}

/* Since that write of the store's; 0: all of them. */
static struct store_watch *
watch(const char *prefix, uint64_t since)
{
    struct store_watch *opened = NULL;
    CHECK_OK(store_watch_open(store, prefix, since ? since + revision_before : 0, &opened));
    return opened;
}

/* Waits until the last write, of that number, has been told. */
static void
wait_until_told(uint64_t number)
{
    struct store_watch *last = watch("", number - 1);
    CHECK(strcmp(next_of(last, AT_ONCE_MS), "DEADLINE_EXCEEDED") != 0);
    store_watch_close(last);
}

static void
a_watch_sees_each_change_of_its_keys_in_order(void)
{
    CHECK_OK(put(store, "a/1", "before", STORE_ANY, NULL));
    struct store_watch *all = watch("", 0), *some = watch("a/", 1);
    const struct store_change changes[] = {text_change("a/2", "", STORE_ANY),
                                           text_change("b/1", "x", STORE_ANY),
                                           text_change("a/3", NULL, STORE_ANY)};
    CHECK_OK(store_write(store, changes, 3, NULL));
    CHECK_OK(put(store, "a/1", "after", STORE_ANY, NULL));
    CHECK_OK(put(store, "a/1", NULL, STORE_ANY, NULL));
    CHECK_CODE(put(store, "a/1", "never", 99, NULL), CODE_ABORTED);
    CHECK_TEXT(next_of(all, AT_ONCE_MS), "a/1=before@1");
    CHECK_TEXT(next_of(all, AT_ONCE_MS), "a/2=@2");
    CHECK_TEXT(next_of(all, AT_ONCE_MS), "b/1=x@2");
    CHECK_TEXT(next_of(all, AT_ONCE_MS), "a/1=after@3");
    CHECK_TEXT(next_of(all, AT_ONCE_MS), "a/1-@4");
    CHECK_TEXT(next_of(all, NO_MORE_MS), "DEADLINE_EXCEEDED");
    CHECK_TEXT(next_of(some, AT_ONCE_MS), "a/2=@2");
    CHECK_TEXT(next_of(some, AT_ONCE_MS), "a/1=after@3");
    CHECK_TEXT(next_of(some, AT_ONCE_MS), "a/1-@4");
    CHECK_TEXT(next_of(some, NO_MORE_MS), "DEADLINE_EXCEEDED");
    store_watch_close(all);
    store_watch_close(some);
    store_watch_close(NULL);
}

static void *
write_later(void *key)
{
    sleep_ms(50);
    EXPECT(code_of(put(store, "other", "x", STORE_ANY, NULL)) == CODE_OK);
    sleep_ms(50);
    EXPECT(code_of(put(store, key, "x", STORE_ANY, NULL)) == CODE_OK);
    return NULL;
}

static void
a_watch_waits_for_a_change_but_no_longer_than_it_may(void)
{
    char key[] = "key";
    pthread_t thread;
    struct store_watch *opened = watch("key", 0);
    double start = now_ms();
    CHECK_TEXT(next_of(opened, 120), "DEADLINE_EXCEEDED");
    CHECK(now_ms() - start >= 119);
    pthread_create(&thread, NULL, write_later, key);
    CHECK_TEXT(next_of(opened, 60000), "key=x@2");
    pthread_join(thread, NULL);
    CHECK_NUMBER(atomic_load(&thread_failures), 0);
    store_watch_close(opened);
}

static void
a_watch_that_falls_behind_is_told(void)
{
    struct store_watch *slow = watch("", 0), *quick = watch("", 0);
    for (unsigned i = 1; i <= HISTORY_CHANGES; i++)
        CHECK_OK(put(store, "k", "x", STORE_ANY, NULL));
    CHECK_TEXT(next_of(quick, AT_ONCE_MS), "k=x@1");
    CHECK_OK(put(store, "k", "last", STORE_ANY, NULL));
    wait_until_told(HISTORY_CHANGES + 1);
    CHECK_TEXT(next_of(slow, AT_ONCE_MS), "OUT_OF_RANGE");
    CHECK_TEXT(next_of(slow, AT_ONCE_MS), "OUT_OF_RANGE");
    CHECK_TEXT(next_of(quick, AT_ONCE_MS), "k=x@2");
    struct store_watch *opened;
    CHECK_CODE(store_watch_open(store, "", 0, &opened), CODE_OUT_OF_RANGE);
    CHECK(!opened);
    opened = watch("", HISTORY_CHANGES);
    CHECK_TEXT(next_of(opened, AT_ONCE_MS), "k=last@4097");
    store_watch_close(opened);
    opened = watch("", 1);
    CHECK_TEXT(next_of(opened, AT_ONCE_MS), "k=x@2");
    store_watch_close(opened);
    store_watch_close(slow);
    store_watch_close(quick);
}

static void
large_changes_push_older_ones_out(void)
{
    static uint8_t large[STORE_MAX_VALUE];
    struct store_watch *slow = watch("", 0);
    CHECK_OK(put(store, "small", "x", STORE_ANY, NULL));
    CHECK_OK(store_write(store, &(struct store_change){"large", large, sizeof large, STORE_ANY}, 1,
                         NULL));
    wait_until_told(2);
    CHECK_TEXT(next_of(slow, AT_ONCE_MS), "OUT_OF_RANGE");
    store_watch_close(slow);
    slow = watch("", 1);
    CHECK_TEXT(next_of(slow, AT_ONCE_MS), "large=@2");
    CHECK_OK(put(store, "small", "y", STORE_ANY, NULL));
    CHECK_TEXT(next_of(slow, AT_ONCE_MS), "small=y@3");
    store_watch_close(slow);
}

static void
a_watch_since_the_future_is_of_another_store(void)
{
    char prefix[STORE_MAX_KEY + 2];
    struct store_watch *opened;
    memset(prefix, 'k', sizeof prefix);
    prefix[STORE_MAX_KEY + 1] = '\0';
    CHECK_CODE(store_watch_open(store, "", revision_before + 1, &opened), CODE_OUT_OF_RANGE);
    CHECK_OK(put(store, "k", "x", STORE_ANY, NULL));
    CHECK_CODE(store_watch_open(store, "", revision_before + 2, &opened), CODE_OUT_OF_RANGE);
    CHECK_CODE(store_watch_open(store, prefix, 0, &opened), CODE_INVALID_ARGUMENT);
}

#endif
