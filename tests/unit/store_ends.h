/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of stores share: a directory of their own, and short ways to write, read and check. */
#ifndef UNIT_STORE_ENDS_H
#define UNIT_STORE_ENDS_H

#include <ftw.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "check.h"
#include "store/store.h"

/* ---- errors ---- */

/* Checks the code and frees the error. */
static inline void
check_code(struct error *error, enum code code, const char *file, int line)
{
    enum code actual = error ? error->code : CODE_OK;
    if (!check_count(actual == code, file, line))
        fprintf(stderr, "got %s (%s), expected %s\n", error_code_name(actual),
                error ? error->message : "", error_code_name(code));
    error_free(error);
}

/* The same, and that the message has this part. */
static inline void
check_says(struct error *error, enum code code, const char *part, const char *file, int line)
{
    const char *message = error ? error->message : "";
    if (!check_count(strstr(message, part) != NULL, file, line))
        fprintf(stderr, "\"%s\" does not mention \"%s\"\n", message, part);
    check_code(error, code, file, line);
}

#define CHECK_CODE(error, code) check_code((error), (code), __FILE__, __LINE__)
#define CHECK_OK(error) check_code((error), CODE_OK, __FILE__, __LINE__)
#define CHECK_SAYS(error, code, part) check_says((error), (code), (part), __FILE__, __LINE__)

/* ---- in threads ---- */

static __attribute__((unused)) atomic_uint thread_failures;

/* CHECK for threads, whose counts are not for several at once. The test checks `thread_failures` when they have ended. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            atomic_fetch_add(&thread_failures, 1);                                                 \
        }                                                                                          \
    } while (0)

/* The code of the error, which is freed. */
static inline enum code
code_of(struct error *error)
{
    enum code code = error ? error->code : CODE_OK;
    error_free(error);
    return code;
}

/* ---- entries ---- */

static inline struct store_change
text_change(const char *key, const char *text, uint64_t expected)
{
    return (struct store_change){key, (const uint8_t *)text, text ? strlen(text) : 0, expected};
}

/* `text` NULL deletes. */
static inline struct error *
put(struct store *store, const char *key, const char *text, uint64_t expected, uint64_t *revision)
{
    struct store_change change = text_change(key, text, expected);
    return store_write(store, &change, 1, revision);
}

/* The value as text, NULL if there is none, the message of any other error. Lives until the next call of this thread. */
static inline const char *
get(struct store *store, const char *key)
{
    static _Thread_local char text[256];
    struct arena arena;
    struct store_entry entry;
    arena_init(&arena, NULL, 0, 0);
    struct error *error = store_get(store, key, &arena, &entry);
    if (!error)
        snprintf(text, sizeof text, "%.*s", (int)entry.value_size, (const char *)entry.value);
    else
        snprintf(text, sizeof text, "%s", error->message);
    arena_clear(&arena);
    enum code code = code_of(error);
    return code == CODE_NOT_FOUND ? NULL : text;
}

static inline uint64_t
revision_of(struct store *store)
{
    uint64_t revision = UINT64_MAX;
    error_free(store_revision(store, &revision));
    return revision;
}

/* ---- time ---- */

static inline void
sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static inline double
now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* ---- directories ---- */

static char test_directory[512];

static inline void
make_test_directory(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(test_directory, sizeof test_directory, "%s/store-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(test_directory)) {
        perror(test_directory);
        exit(1);
    }
}

static inline int
remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static inline void
remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void
remove_test_directory(void)
{
    remove_tree(test_directory);
}

/* A path below the test's directory. Lives until the next call but three. */
static inline const char *
below(const char *name)
{
    static char paths[4][1024];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", test_directory, name);
    return path;
}

/* The URL of an SQLite store of that name below the test's directory. The same. */
static inline const char *
url_of(const char *name)
{
    static char urls[4][1100];
    static unsigned next;
    char *url = urls[next++ % 4];
    snprintf(url, sizeof urls[0], "sqlite:%s", below(name));
    return url;
}

/* Ends the test where it cannot go on without the store. */
static inline struct store *
open_store(const char *url)
{
    struct store *store = NULL;
    struct error *error = store_open(url, NULL, &store);
    if (error) {
        fprintf(stderr, "cannot open %s: %s\n", url, error->message);
        exit(1);
    }
    return store;
}

#endif
