/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes into a store without end, to be killed meanwhile, and looks afterwards whether all is there. Where there is no space left, or the store cannot
 * be reached, it says so and tries again: "CODE after MS ms: WHY".
 *
 *     store-hammer write URL THREADS     prints a line "THREAD NUMBER REVISION" for each write that was answered
 *     store-hammer check URL THREADS     reads such lines, and prints what it found as such lines: the next check reads them too
 *
 * What write NUMBER of a thread does follows from the two numbers: it puts or deletes the two halves of one of the thread's slots, and puts
 * the thread's count, all in one write. So the count that is found says what every slot has to be.
 *
 * Exit code 0: good. 1: something is wrong; a line says what.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "any_store.h"
#include "base/memory.h"

#define MAX_THREADS 64
#define SLOTS 40
#define MAX_VALUE 20000

static struct store *store;

static void
fail(const char *what, struct error *error)
{
    fprintf(stderr, "store-hammer: %s: %s\n", what, error ? error->message : "wrong");
    exit(1);
}

static void
must(struct error *error, const char *what)
{
    if (error)
        fail(what, error);
}

/* ---- what a write does ---- */

struct plan {
    unsigned slot;
    bool is_delete;
    size_t size;
    uint64_t seed;
};

static uint64_t
mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x7fb5d329728ea185u;
    x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44du;
    return x ^ (x >> 33);
}

static struct plan
plan_of(unsigned thread, uint64_t number)
{
    uint64_t seed = mix(number * MAX_THREADS + thread + 1);
    /* Most values are small, as entries are; some take pages of their own. */
    size_t size = seed % 16 == 0 ? (seed >> 8) % MAX_VALUE : (seed >> 8) % 700;
    return (struct plan){(unsigned)((seed >> 40) % SLOTS), (seed >> 50) % 4 == 0, size, seed};
}

static void
fill_value(const struct plan *plan, uint8_t *value)
{
    for (size_t i = 0; i < plan->size; i++)
        value[i] = (uint8_t)(mix(plan->seed + i / 8) >> (i % 8 * 8));
}

struct key {
    char text[48];
};

static struct key
slot_key(unsigned thread, unsigned slot, const char *half)
{
    struct key key;
    snprintf(key.text, sizeof key.text, "slot/%u/%u/%s", thread, slot, half);
    return key;
}

static struct key
count_key(unsigned thread)
{
    struct key key;
    snprintf(key.text, sizeof key.text, "count/%u", thread);
    return key;
}

static double
now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* Whether to try again what has failed with this. Takes the error if so. */
static bool
is_passing(struct error *error, double started)
{
    if (!error || (error->code != CODE_RESOURCE_EXHAUSTED && error->code != CODE_UNAVAILABLE))
        return false;
    fprintf(stderr, "%s after %.0f ms: %s\n", error_code_name(error->code), now_ms() - started,
            error->message);
    error_free(error);
    usleep(20000);
    return true;
}

static struct error *
read_persistently(const char *key, struct arena *arena, struct store_entry *entry)
{
    struct error *error;
    double started;
    do {
        started = now_ms();
        error = store_get(store, key, arena, entry);
    } while (is_passing(error, started));
    return error;
}

/* How many writes of the thread are in the store. */
static uint64_t
read_count(unsigned thread, uint64_t *revision)
{
    struct arena arena;
    struct store_entry entry;
    uint64_t count = 0;
    *revision = STORE_ABSENT;
    arena_init(&arena, NULL, 0, 0);
    struct error *error = read_persistently(count_key(thread).text, &arena, &entry);
    if (!error) {
        count = strtoull((const char *)entry.value, NULL, 10);
        *revision = entry.revision;
    } else if (error->code != CODE_NOT_FOUND) {
        fail("read a count", error);
    }
    error_free(error);
    arena_clear(&arena);
    return count;
}

/* ---- writing ---- */

/* The write before this one may have been made although nobody answered: then the count says so. */
static struct error *
write_persistently(unsigned thread, uint64_t number, const struct store_change *changes,
                   size_t count, uint64_t *revision)
{
    struct error *error;
    double started;
    bool is_first = true;
    for (;; is_first = false) {
        started = now_ms();
        error = store_write(store, changes, count, revision);
        if (!is_passing(error, started))
            break;
    }
    if (is_first || !error || error->code != CODE_ABORTED)
        return error;
    if (read_count(thread, revision) != number)
        return error;
    error_free(error);
    return NULL;
}

/* `*revision`: that of the thread's count, before and after. */
static void
make_write(unsigned thread, uint64_t number, uint64_t *revision)
{
    uint8_t value[MAX_VALUE];
    char count[24];
    struct plan plan = plan_of(thread, number);
    struct key left = slot_key(thread, plan.slot, "left"),
               right = slot_key(thread, plan.slot, "right"), counter = count_key(thread);
    fill_value(&plan, value);
    int size = snprintf(count, sizeof count, "%llu", (unsigned long long)number);
    const uint8_t *bytes = plan.is_delete ? NULL : value;
    const struct store_change changes[] = {
        {left.text, bytes, plan.size, STORE_ANY},
        {counter.text, (const uint8_t *)count, (size_t)size, *revision},
        {right.text, bytes, plan.size, STORE_ANY},
    };
    must(write_persistently(thread, number, changes, COUNT_OF(changes), revision), "write");
}

static void *
write_without_end(void *argument)
{
    unsigned thread = (unsigned)(uintptr_t)argument;
    uint64_t revision;
    for (uint64_t number = read_count(thread, &revision) + 1;; number++) {
        char line[64];
        make_write(thread, number, &revision);
        int size = snprintf(line, sizeof line, "%u %llu %llu\n", thread, (unsigned long long)number,
                            (unsigned long long)revision);
        /* A line goes into a pipe as a whole or not at all. */
        if (write(STDOUT_FILENO, line, (size_t)size) != size)
            exit(1);
    }
    return NULL;
}

static void
write_with(unsigned threads)
{
    pthread_t started;
    for (uintptr_t i = 1; i < threads; i++)
        if (pthread_create(&started, NULL, write_without_end, (void *)i) != 0)
            fail("start a thread", NULL);
    write_without_end(NULL);
}

/* ---- checking ---- */

/* The last write of each thread that was answered. */
struct answered {
    unsigned long long number, revision;
};

static void
read_answered(struct answered answered[MAX_THREADS])
{
    unsigned thread;
    unsigned long long number, revision;
    while (scanf("%u %llu %llu", &thread, &number, &revision) == 3) {
        if (thread >= MAX_THREADS)
            fail("read the answers", NULL);
        if (number > answered[thread].number)
            answered[thread] = (struct answered){number, revision};
    }
}

static void
check_half(unsigned thread, unsigned slot, const char *half, const struct plan *plan)
{
    uint8_t value[MAX_VALUE];
    struct key key = slot_key(thread, slot, half);
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, NULL, 0, 0);
    struct error *error AUTO(error_cleanup) = store_get(store, key.text, &arena, &entry);
    if (error && error->code != CODE_NOT_FOUND)
        fail(key.text, error);
    if (!plan || plan->is_delete) {
        if (!error)
            fail(key.text, error_new(CODE_DATA_LOSS, "is there, but was deleted"));
    } else {
        fill_value(plan, value);
        if (error || entry.value_size != plan->size || memcmp(entry.value, value, plan->size) != 0)
            fail(key.text, error_new(CODE_DATA_LOSS, "is missing, or has another value"));
    }
    arena_clear(&arena);
}

/* Every slot is as the last of the thread's writes has left it. */
static void
check_slots(unsigned thread, uint64_t count)
{
    struct plan last[SLOTS];
    bool used[SLOTS] = {false};
    for (uint64_t number = 1; number <= count; number++) {
        struct plan plan = plan_of(thread, number);
        last[plan.slot] = plan;
        used[plan.slot] = true;
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        check_half(thread, slot, "left", used[slot] ? &last[slot] : NULL);
        check_half(thread, slot, "right", used[slot] ? &last[slot] : NULL);
    }
}

static void
check_thread(unsigned thread, const struct answered *answered)
{
    uint64_t revision;
    uint64_t count = read_count(thread, &revision);
    if (count != answered->number && count != answered->number + 1)
        fail("count", error_new(CODE_DATA_LOSS, "thread %u: %llu writes, %llu were answered",
                                thread, (unsigned long long)count, answered->number));
    if (count == answered->number && revision != answered->revision)
        fail("revision", error_new(CODE_DATA_LOSS, "thread %u: %llu, answered was %llu", thread,
                                   (unsigned long long)revision, answered->revision));
    check_slots(thread, count);
    printf("%u %llu %llu\n", thread, (unsigned long long)count, (unsigned long long)revision);
}

static void
check_with(unsigned threads)
{
    struct answered answered[MAX_THREADS] = {0};
    uint64_t revision, highest = 0;
    read_answered(answered);
    must(store_check(store), "check");
    must(store_revision(store, &revision), "revision");
    for (unsigned i = 0; i < threads; i++) {
        check_thread(i, &answered[i]);
        highest = answered[i].revision > highest ? answered[i].revision : highest;
    }
    if (revision < highest)
        fail("the revision", error_new(CODE_DATA_LOSS, "it has gone back"));
}

int
main(int count, char **arguments)
{
    unsigned threads = count == 4 ? (unsigned)atoi(arguments[3]) : 0;
    bool is_write = count == 4 && !strcmp(arguments[1], "write");
    if (threads < 1 || threads > MAX_THREADS || (!is_write && strcmp(arguments[1], "check") != 0)) {
        fprintf(stderr, "usage: store-hammer write|check URL THREADS\n");
        return 1;
    }
    struct any_store opened = {0};
    must(any_store_open(arguments[2], &opened), "open");
    store = opened.store;
    if (is_write)
        write_with(threads);
    else
        check_with(threads);
    any_store_close(&opened);
    return 0;
}
