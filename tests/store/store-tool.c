/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single steps on a store, for shell tests; values are text.
 *
 *     store-tool put URL KEY TEXT       prints the revision
 *     store-tool add URL KEY TEXT       the same, if there is no such entry
 *     store-tool get URL KEY            prints the text
 *     store-tool follow URL PREFIX      lists ("= KEY TEXT", then "listed REVISION"), then tells each change ("+ KEY TEXT", "- KEY"), until it is
 *                                       killed. When changes have been missed: "missed", and lists anew, again and again while
 *                                       the store is UNAVAILABLE
 *
 * Exit code 1: an error, which is told as "CODE after MS ms: WHY".
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "any_store.h"

static struct store *store;
static double started;

static double
now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void
must(struct error *error)
{
    if (!error)
        return;
    fprintf(stderr, "%s after %.0f ms: %s\n", error_code_name(error->code), now_ms() - started,
            error->message);
    exit(1);
}

static void
put_text(const char *key, const char *text, uint64_t expected)
{
    uint64_t revision;
    const struct store_change change = {key, (const uint8_t *)text, strlen(text), expected};
    must(store_write(store, &change, 1, &revision));
    printf("%" PRIu64 "\n", revision);
}

static void
print_entry(const char *mark, const struct store_entry *entry)
{
    printf("%s %s%s%.*s\n", mark, entry->key, entry->value ? " " : "", (int)entry->value_size,
           entry->value ? (const char *)entry->value : "");
}

static void
get_text(const char *key)
{
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, NULL, 0, 0);
    must(store_get(store, key, &arena, &entry));
    printf("%.*s\n", (int)entry.value_size, (const char *)entry.value);
    arena_clear(&arena);
}

static struct error *
list_and_watch(const char *prefix, struct store_watch **watch)
{
    uint64_t revision;
    struct arena arena;
    struct store_list found;
    arena_init(&arena, NULL, 0, 0);
    struct error *error = store_revision(store, &revision);
    if (!error)
        error = store_list(store, prefix, NULL, 0, &arena, &found);
    if (!error) {
        for (size_t i = 0; i < found.count; i++)
            print_entry("=", &found.entries[i]);
        printf("listed %" PRIu64 "\n", revision);
        error = store_watch_open(store, prefix, revision, watch);
    }
    arena_clear(&arena);
    return error;
}

/* Until changes have been missed. */
static void
tell_changes(struct store_watch *watch)
{
    for (enum code code = CODE_OK; code != CODE_OUT_OF_RANGE;) {
        struct arena arena;
        struct store_entry entry;
        arena_init(&arena, NULL, 0, 0);
        struct error *error = store_watch_next(watch, 1000, &arena, &entry);
        code = error ? error->code : CODE_OK;
        if (!error)
            print_entry(entry.value ? "+" : "-", &entry);
        else if (code != CODE_OUT_OF_RANGE && code != CODE_DEADLINE_EXCEEDED &&
                 code != CODE_UNAVAILABLE)
            must(error);
        error_free(error);
        arena_clear(&arena);
    }
}

static void
follow(const char *prefix)
{
    for (;;) {
        struct store_watch *watch = NULL;
        started = now_ms();
        struct error *error = list_and_watch(prefix, &watch);
        if (error && error->code != CODE_UNAVAILABLE && error->code != CODE_OUT_OF_RANGE)
            must(error);
        if (!error)
            tell_changes(watch);
        else
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        error_free(error);
        store_watch_close(watch);
        printf("missed\n");
    }
}

int
main(int count, char **arguments)
{
    struct any_store opened = {0};
    const char *verb = count > 3 ? arguments[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    started = now_ms();
    if (count > 3)
        must(any_store_open(arguments[2], &opened));
    store = opened.store;
    if (count == 5 && !strcmp(verb, "put"))
        put_text(arguments[3], arguments[4], STORE_ANY);
    else if (count == 5 && !strcmp(verb, "add"))
        put_text(arguments[3], arguments[4], STORE_ABSENT);
    else if (count == 4 && !strcmp(verb, "get"))
        get_text(arguments[3]);
    else if (count == 4 && !strcmp(verb, "follow"))
        follow(arguments[3]);
    else
        must(error_new(CODE_INVALID_ARGUMENT, "say put, add, get or follow, a URL, and a key"));
    any_store_close(&opened);
    return 0;
}
