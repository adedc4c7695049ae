/* SPDX-License-Identifier: Apache-2.0 */
/* The stores of one process: memory and SQLite. */
#include "store/store_ops.h"
#include "store_facts.h"

static struct store *
open_in_memory(size_t number)
{
    (void)number;
    return open_store("memory:");
}

static struct store *
open_on_disk(size_t number)
{
    char name[16];
    snprintf(name, sizeof name, "%zu", number);
    return open_store(url_of(name));
}

/* As etcd's does when what it has missed is not to be had any more, and while etcd is not heard. */
static void
a_store_that_has_forgotten_or_is_cut_off_tells_every_watch(void)
{
    store = open_store("memory:");
    struct store_watch *behind = watch("", 0), *quick = watch("", 0), *opened;
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    CHECK_OK(put(store, "a", "2", STORE_ANY, NULL));
    CHECK_TEXT(next_of(quick, 0), "a=1@1");
    CHECK_TEXT(next_of(quick, 0), "a=2@2");
    history_forget(&store->history, 2);
    CHECK_TEXT(next_of(behind, 0), "OUT_OF_RANGE");
    CHECK_TEXT(next_of(quick, 0), "OUT_OF_RANGE");
    CHECK_CODE(store_watch_open(store, "", 1, &opened), CODE_OUT_OF_RANGE);
    opened = watch("", 2);
    CHECK_OK(put(store, "a", "3", STORE_ANY, NULL));
    CHECK_TEXT(next_of(opened, 0), "a=3@3");
    CHECK_TEXT(next_of(quick, 0), "OUT_OF_RANGE");
    history_set_cut_off(&store->history, true);
    CHECK_OK(put(store, "a", "4", STORE_ANY, NULL));
    CHECK_TEXT(next_of(opened, 0), "a=4@4");
    CHECK_TEXT(next_of(opened, 0), "UNAVAILABLE");
    history_set_cut_off(&store->history, false);
    CHECK_TEXT(next_of(opened, 0), "DEADLINE_EXCEEDED");
    store_watch_close(opened);
    store_watch_close(quick);
    store_watch_close(behind);
    store_close(store);
}

static void
other_urls_are_refused(void)
{
    static const char *const wrong[] = {"",       "sqlite", "sqlite:", "memory:x",
                                        "etcd:x", "file:x", ":",       "x"};
    struct arena arena;
    const char *moved_to;
    arena_init(&arena, NULL, 0, 0);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct store *opened;
        CHECK_CODE(store_open(wrong[i], NULL, &opened), CODE_INVALID_ARGUMENT);
        CHECK(!opened);
    }
    struct store *opened;
    CHECK_SAYS(store_open("file:x", NULL, &opened), CODE_INVALID_ARGUMENT,
               "sqlite:DIRECTORY or memory: or etcd://");
    CHECK_CODE(store_set_aside("x", &arena, &moved_to), CODE_INVALID_ARGUMENT);
    CHECK_OK(store_set_aside("memory:", &arena, &moved_to));
    CHECK(!moved_to);
    arena_clear(&arena);
    store_close(NULL);
}

int
main(void)
{
    make_test_directory();
    check_facts("memory", open_in_memory);
    check_facts("sqlite", open_on_disk);
    a_store_that_has_forgotten_or_is_cut_off_tells_every_watch();
    other_urls_are_refused();
    remove_test_directory();
    return check_report("test_store");
}
