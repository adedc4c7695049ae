/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a store is:
 *
 *     store-bench write URL THREADS SECONDS     each thread writes new entries of 400 bytes, one at a time
 *     store-bench cycle URL THREADS SECONDS     the same, and deletes each again
 *     store-bench read URL THREADS SECONDS      each thread reads entries at random
 *     store-bench fill URL COUNT                makes COUNT entries, for the others to find
 *     store-bench open URL                      opens and closes
 *
 * One line: operations a second, and their times in microseconds (median, 99 of 100, longest).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "any_store.h"
#include "base/memory.h"

#define VALUE_BYTES 400
#define KEY_BYTES 64
#define SAMPLES (1u << 20)

static const uint8_t value[VALUE_BYTES] = {1};
static struct store *store;
static double end_time;
static size_t entry_count;

struct worker {
    pthread_t thread;
    unsigned number;
    unsigned random;
    void (*work)(struct worker *worker);
    size_t count;
    float *times; /* of the first SAMPLES operations */
};

static void
must(struct error *error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "store-bench: %s: %s\n", what, error->message);
    exit(1);
}

static double
now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void
name_entry(char key[KEY_BYTES], size_t number)
{
    snprintf(key, KEY_BYTES, "volume/01h%020zu", number);
}

static void
change(const char *key, bool is_delete)
{
    struct store_change one = {key, is_delete ? NULL : value, VALUE_BYTES, STORE_ANY};
    if (!is_delete)
        one.expected = STORE_ABSENT;
    must(store_write(store, &one, 1, NULL), key);
}

/* ---- what a thread does again and again ---- */

static void
name_own(char key[KEY_BYTES], const struct worker *worker)
{
    snprintf(key, KEY_BYTES, "volume/01i%lld%012zu%03u", (long long)end_time, worker->count,
             worker->number);
}

static void
write_one(struct worker *worker)
{
    char key[KEY_BYTES];
    name_own(key, worker);
    change(key, false);
}

static void
write_and_delete(struct worker *worker)
{
    char key[KEY_BYTES];
    name_own(key, worker);
    change(key, false);
    change(key, true);
}

static void
read_one(struct worker *worker)
{
    uint8_t first[1024];
    char key[KEY_BYTES];
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, first, sizeof first, 0);
    worker->random = worker->random * 1103515245u + 12345u;
    name_entry(key, (worker->random >> 4) % entry_count);
    must(store_get(store, key, &arena, &entry), key);
    arena_clear(&arena);
}

/* ---- measuring ---- */

static void *
work_until_end(void *argument)
{
    struct worker *worker = argument;
    for (double start = now_us(); start < end_time; worker->count++) {
        worker->work(worker);
        double done = now_us();
        if (worker->count < SAMPLES)
            worker->times[worker->count] = (float)(done - start);
        start = done;
    }
    return NULL;
}

static int
compare(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

static void
report(struct worker *workers, unsigned threads, double seconds)
{
    size_t total = 0, samples = 0;
    for (unsigned i = 0; i < threads; i++) {
        total += workers[i].count;
        samples += workers[i].count < SAMPLES ? workers[i].count : SAMPLES;
    }
    float *times = memory_new(samples * sizeof *times);
    for (unsigned i = 0, at = 0; i < threads; i++) {
        size_t count = workers[i].count < SAMPLES ? workers[i].count : SAMPLES;
        memcpy(times + at, workers[i].times, count * sizeof *times);
        at += (unsigned)count;
    }
    qsort(times, samples, sizeof *times, compare);
    printf("%u threads: %.0f/s, p50 %.0f us, p99 %.0f us, longest %.0f us, %zu operations\n",
           threads, (double)total / seconds, (double)times[samples / 2],
           (double)times[samples * 99 / 100], (double)times[samples - 1], total);
    free(times);
}

static void
measure(void (*work)(struct worker *), unsigned threads, double seconds)
{
    struct worker *workers = memory_zeroed(threads * sizeof *workers);
    double start = now_us();
    end_time = start + seconds * 1e6;
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){.number = i, .random = i * 7919 + 1, .work = work};
        workers[i].times = memory_new(SAMPLES * sizeof *workers[i].times);
        pthread_create(&workers[i].thread, NULL, work_until_end, &workers[i]);
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    report(workers, threads, (now_us() - start) / 1e6);
}

static void
fill(size_t count)
{
    static char keys[STORE_MAX_CHANGES][KEY_BYTES];
    struct store_change changes[STORE_MAX_CHANGES];
    for (size_t done = 0; done < count;) {
        size_t n = 0;
        for (; n < STORE_MAX_CHANGES && done < count; n++, done++) {
            name_entry(keys[n], done);
            changes[n] = (struct store_change){keys[n], value, VALUE_BYTES, STORE_ANY};
        }
        must(store_write(store, changes, n, NULL), "write");
    }
}

static size_t
count_entries(void)
{
    struct arena arena;
    struct store_list list;
    arena_init(&arena, NULL, 0, 0);
    double start = now_us();
    must(store_list(store, "volume/01h", NULL, 0, &arena, &list), "list");
    if (list.count)
        printf("listed %zu entries in %.1f ms\n", list.count, (now_us() - start) / 1e3);
    arena_clear(&arena);
    return list.count;
}

static void
report_memory(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("most memory: %ld KiB\n", usage.ru_maxrss);
}

int
main(int count, char **arguments)
{
    const char *verb = count > 2 ? arguments[1] : "";
    unsigned number = count > 3 ? (unsigned)atoi(arguments[3]) : 1;
    double seconds = count > 4 ? atof(arguments[4]) : 1;
    double start = now_us();
    struct any_store opened = {0};
    must(count > 2 ? any_store_open(arguments[2], &opened)
                   : error_new(CODE_INVALID_ARGUMENT, "say write, cycle, read, fill or open, and a "
                                                      "URL"),
         "open");
    store = opened.store;
    if (!strcmp(verb, "write"))
        measure(write_one, number, seconds);
    else if (!strcmp(verb, "cycle"))
        measure(write_and_delete, number, seconds);
    else if (!strcmp(verb, "read") && (entry_count = count_entries()))
        measure(read_one, number, seconds);
    else if (!strcmp(verb, "fill"))
        fill(number);
    else if (!strcmp(verb, "open"))
        printf("opened in %.1f ms\n", (now_us() - start) / 1e3);
    report_memory();
    any_store_close(&opened);
    return 0;
}
