/* SPDX-License-Identifier: Apache-2.0 */
/* src/store/sqlite_commit.c: writes that share a commit, and what a disk that fails or is full does to them. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "shim_vfs.h"
#include "store_ends.h"

#define LOG "state.db-wal"

static struct store *store;

static bool
is_log(const struct shim_event *event)
{
    return !strcmp(event->name, LOG);
}

/* ---- a disk that takes its time ---- */

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static unsigned syncs;
static bool gate_is_closed;

/* Counts syncs of the log, and holds them up while the gate is closed. */
static int
wait_at_gate(const struct shim_event *event)
{
    if (event->kind != SHIM_SYNC || !is_log(event))
        return SQLITE_OK;
    pthread_mutex_lock(&gate_lock);
    syncs++;
    pthread_cond_broadcast(&gate_changed);
    while (gate_is_closed)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    return SQLITE_OK;
}

static void
set_gate(bool is_closed)
{
    pthread_mutex_lock(&gate_lock);
    gate_is_closed = is_closed;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

static void
wait_for_syncs(unsigned count)
{
    pthread_mutex_lock(&gate_lock);
    while (syncs < count)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

/* ---- writers ---- */

struct writer {
    pthread_t thread;
    char key[16];
    const uint8_t *value;
    size_t value_size;
    uint64_t expected;
    uint64_t revision;
    enum code code;
};

static void *
write_entry(void *argument)
{
    struct writer *writer = argument;
    struct store_change change = {writer->key, writer->value, writer->value_size, writer->expected};
    writer->code = code_of(store_write(store, &change, 1, &writer->revision));
    return NULL;
}

static void
prepare_writer(struct writer *writer, unsigned number)
{
    *writer =
        (struct writer){.value = (const uint8_t *)"x", .value_size = 1, .expected = STORE_ANY};
    snprintf(writer->key, sizeof writer->key, "k%02u", number);
}

/*
 * Closes the gate, starts the first, and when that is stuck in its sync all others; opens the gate when they wait. How long they take to
 * queue up is not known from outside: some patience makes it certain enough, and a longer one does no harm.
 */
static void
write_behind_one(struct writer *writers, unsigned count)
{
    unsigned before = syncs;
    set_gate(true);
    for (unsigned i = 0; i < count; i++) {
        pthread_create(&writers[i].thread, NULL, write_entry, &writers[i]);
        if (i == 0)
            wait_for_syncs(before + 1);
    }
    sleep_ms(300);
    set_gate(false);
    for (unsigned i = 0; i < count; i++)
        pthread_join(writers[i].thread, NULL);
}

/* ---- facts ---- */

/* The first write of all also syncs the head of the log. */
static void
open_with_gate(const char *name)
{
    store = open_store(url_of(name));
    atomic_store(&shim_hook, wait_at_gate);
    CHECK_OK(put(store, "first", "x", STORE_ANY, NULL));
    syncs = 0;
}

static void
close_store(void)
{
    atomic_store(&shim_hook, NULL);
    CHECK_OK(store_check(store));
    store_close(store);
}

static void
a_lone_write_is_one_sync(void)
{
    open_with_gate("lone");
    for (unsigned i = 1; i <= 20; i++) {
        CHECK_OK(put(store, "k", "x", STORE_ANY, NULL));
        CHECK_NUMBER(syncs, i);
    }
    close_store();
}

static void
writes_that_wait_share_one_sync(void)
{
    struct writer writers[20];
    bool seen[32] = {false};
    open_with_gate("shared");
    for (unsigned i = 0; i < COUNT_OF(writers); i++)
        prepare_writer(&writers[i], i);
    write_behind_one(writers, COUNT_OF(writers));
    CHECK_NUMBER(syncs, 2);
    for (unsigned i = 0; i < COUNT_OF(writers); i++) {
        CHECK_NUMBER(writers[i].code, CODE_OK);
        CHECK_TEXT(get(store, writers[i].key), "x");
        CHECK(writers[i].revision >= 2 && writers[i].revision <= 21);
        CHECK(!seen[writers[i].revision]);
        seen[writers[i].revision] = true;
    }
    close_store();
}

static void
an_aborted_write_does_not_disturb_those_beside_it(void)
{
    struct writer writers[12];
    open_with_gate("aborted");
    for (unsigned i = 0; i < COUNT_OF(writers); i++) {
        prepare_writer(&writers[i], i);
        if (i % 3 == 1)
            writers[i].expected = 99;
    }
    write_behind_one(writers, COUNT_OF(writers));
    CHECK_NUMBER(syncs, 2);
    for (unsigned i = 0; i < COUNT_OF(writers); i++) {
        CHECK_NUMBER(writers[i].code, i % 3 == 1 ? CODE_ABORTED : CODE_OK);
        CHECK_TEXT(get(store, writers[i].key), i % 3 == 1 ? NULL : "x");
    }
    CHECK_NUMBER(revision_of(store), 1 + 8);
    close_store();
}

/* Of many that expect the key to be absent one succeeds, also in the same batch. */
static void
writes_of_one_batch_see_each_other(void)
{
    struct writer writers[10];
    unsigned succeeded = 0;
    open_with_gate("same-key");
    for (unsigned i = 0; i < COUNT_OF(writers); i++) {
        prepare_writer(&writers[i], i ? 1 : 0);
        writers[i].expected = STORE_ABSENT;
    }
    write_behind_one(writers, COUNT_OF(writers));
    for (unsigned i = 1; i < COUNT_OF(writers); i++) {
        CHECK(writers[i].code == CODE_OK || writers[i].code == CODE_ABORTED);
        succeeded += writers[i].code == CODE_OK;
    }
    CHECK_NUMBER(succeeded, 1);
    CHECK_NUMBER(revision_of(store), 3);
    close_store();
}

static void
a_write_that_changes_nothing_does_not_wait_for_the_disk(void)
{
    open_with_gate("nothing");
    CHECK_CODE(put(store, "k", "x", 99, NULL), CODE_ABORTED);
    CHECK_NUMBER(syncs, 0);
    close_store();
}

static void *
read_first(void *argument)
{
    const char *text = get(store, "first");
    EXPECT(text && !strcmp(text, "x"));
    EXPECT(!get(store, argument)); /* what is not durable yet is not seen */
    return NULL;
}

/* Six are more than there are connections to read with. */
static void
reading_does_not_wait_for_a_commit(void)
{
    struct writer writer;
    pthread_t readers[6];
    open_with_gate("reading");
    prepare_writer(&writer, 1);
    set_gate(true);
    pthread_create(&writer.thread, NULL, write_entry, &writer);
    wait_for_syncs(1);
    for (unsigned i = 0; i < COUNT_OF(readers); i++)
        pthread_create(&readers[i], NULL, read_first, writer.key);
    for (unsigned i = 0; i < COUNT_OF(readers); i++)
        pthread_join(readers[i], NULL);
    set_gate(false);
    pthread_join(writer.thread, NULL);
    CHECK_NUMBER(atomic_load(&thread_failures), 0);
    CHECK_TEXT(get(store, writer.key), "x");
    close_store();
}

/* ---- a disk that fails ---- */

static int
fail_sync(const struct shim_event *event)
{
    errno = EIO;
    return event->kind == SHIM_SYNC && is_log(event) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int
fail_write(const struct shim_event *event)
{
    errno = EIO;
    return event->kind == SHIM_WRITE && is_log(event) ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

static int
fail_read(const struct shim_event *event)
{
    errno = EIO;
    return event->kind == SHIM_READ ? SQLITE_IOERR_READ : SQLITE_OK;
}

static void
an_io_error_names_the_file_and_changes_nothing(void)
{
    static shim_function *const failures[] = {fail_sync, fail_write};
    store = open_store(url_of("failing"));
    CHECK_OK(put(store, "k", "old", STORE_ANY, NULL));
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        struct store_watch *watch = NULL;
        CHECK_OK(store_watch_open(store, "", revision_of(store), &watch));
        uint64_t before = revision_of(store);
        atomic_store(&shim_hook, failures[i]);
        CHECK_SAYS(put(store, "k", "new", STORE_ANY, NULL), CODE_INTERNAL,
                   below("failing/state.db"));
        CHECK_SAYS(put(store, "k", NULL, STORE_ANY, NULL), CODE_INTERNAL, "Input/output error");
        atomic_store(&shim_hook, NULL);
        CHECK_TEXT(get(store, "k"), "old");
        CHECK_NUMBER(revision_of(store), before);
        struct arena arena;
        struct store_entry entry;
        arena_init(&arena, NULL, 0, 0);
        CHECK_CODE(store_watch_next(watch, 0, &arena, &entry), CODE_DEADLINE_EXCEEDED);
        CHECK_OK(put(store, "k", "old", STORE_ANY, NULL));
        CHECK_NUMBER(revision_of(store), before + 1);
        arena_clear(&arena);
        store_watch_close(watch);
    }
    close_store();
    store = open_store(url_of("failing"));
    CHECK_TEXT(get(store, "k"), "old");
    close_store();
}

static void
a_read_error_is_told_and_passes(void)
{
    struct arena arena;
    struct store_entry entry;
    struct store_list list;
    store = open_store(url_of("unreadable"));
    CHECK_OK(put(store, "k", "x", STORE_ANY, NULL));
    store_close(store);
    store = open_store(url_of("unreadable"));
    arena_init(&arena, NULL, 0, 0);
    atomic_store(&shim_hook, fail_read);
    CHECK_SAYS(store_get(store, "k", &arena, &entry), CODE_INTERNAL, "unreadable/state.db");
    CHECK_SAYS(store_list(store, "", NULL, 0, &arena, &list), CODE_INTERNAL, "state.db");
    atomic_store(&shim_hook, NULL);
    CHECK_TEXT(get(store, "k"), "x");
    arena_clear(&arena);
    close_store();
}

/* ---- a disk that is full ---- */

static atomic_long log_end;   /* of what was written last */
static atomic_long log_limit; /* the log cannot become longer */

static int
limit_log(const struct shim_event *event)
{
    if (event->kind != SHIM_WRITE || !is_log(event))
        return wait_at_gate(event);
    long end = (long)event->offset + event->size;
    if (end > atomic_load(&log_limit))
        return SQLITE_FULL;
    atomic_store(&log_end, end);
    return SQLITE_OK;
}

/* Leaves room for so many more bytes. */
static void
leave_room(long bytes)
{
    atomic_store(&log_limit, LONG_MAX);
    atomic_store(&shim_hook, limit_log);
    CHECK_OK(put(store, "room", "x", STORE_ANY, NULL));
    atomic_store(&log_limit, atomic_load(&log_end) + bytes);
}

static void
a_full_disk_is_told_and_the_store_goes_on_when_there_is_space(void)
{
    store = open_store(url_of("full"));
    CHECK_OK(put(store, "k", "old", STORE_ANY, NULL));
    leave_room(100);
    CHECK_SAYS(put(store, "k", "new", STORE_ANY, NULL), CODE_RESOURCE_EXHAUSTED,
               below("full/state.db"));
    CHECK_CODE(put(store, "k", NULL, STORE_ANY, NULL), CODE_RESOURCE_EXHAUSTED);
    CHECK_TEXT(get(store, "k"), "old");
    atomic_store(&log_limit, LONG_MAX);
    CHECK_OK(put(store, "k", "new", STORE_ANY, NULL));
    CHECK_TEXT(get(store, "k"), "new");
    CHECK_NUMBER(revision_of(store), 3);
    close_store();
}

static void
a_write_too_large_for_the_disk_does_not_take_small_ones_with_it(void)
{
    static uint8_t large[STORE_MAX_VALUE];
    struct writer writers[10];
    open_with_gate("large");
    leave_room(sizeof large / 2);
    for (unsigned i = 0; i < COUNT_OF(writers); i++)
        prepare_writer(&writers[i], i);
    writers[4].value = large;
    writers[4].value_size = sizeof large;
    writers[5].expected = 99;
    write_behind_one(writers, COUNT_OF(writers));
    for (unsigned i = 0; i < COUNT_OF(writers); i++) {
        enum code code = i == 4 ? CODE_RESOURCE_EXHAUSTED : i == 5 ? CODE_ABORTED : CODE_OK;
        CHECK_NUMBER(writers[i].code, code);
        CHECK_TEXT(get(store, writers[i].key), code == CODE_OK ? "x" : NULL);
    }
    CHECK_NUMBER(revision_of(store), 2 + 8);
    close_store();
}

/* ---- a limit of the system ---- */

static int
fill_up_to_limit(void)
{
    static uint8_t value[100000];
    struct rlimit limit = {8 << 20, 8 << 20};
    char key[16];
    signal(SIGXFSZ, SIG_IGN);
    store = open_store(url_of("limited"));
    setrlimit(RLIMIT_FSIZE, &limit);
    unsigned written = 0;
    struct error *error = NULL;
    for (; written < 1000 && !error; written++) {
        snprintf(key, sizeof key, "%u", written);
        error = store_write(store, &(struct store_change){key, value, sizeof value, STORE_ANY}, 1,
                            NULL);
    }
    CHECK(written > 20 && written < 1000);
    CHECK_CODE(error, CODE_RESOURCE_EXHAUSTED);
    CHECK_TEXT(get(store, key), NULL);
    CHECK_NUMBER(revision_of(store), written - 1);
    store_close(store);
    return check_failed > 0;
}

static void
a_limit_for_files_is_a_full_disk(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(fill_up_to_limit());
    waitpid(child, &status, 0);
    CHECK_NUMBER(status, 0);
    store = open_store(url_of("limited"));
    CHECK(revision_of(store) > 20);
    CHECK_OK(put(store, "more", "x", STORE_ANY, NULL));
    close_store();
}

int
main(void)
{
    make_test_directory();
    a_limit_for_files_is_a_full_disk();
    shim_install();
    a_lone_write_is_one_sync();
    writes_that_wait_share_one_sync();
    an_aborted_write_does_not_disturb_those_beside_it();
    writes_of_one_batch_see_each_other();
    a_write_that_changes_nothing_does_not_wait_for_the_disk();
    reading_does_not_wait_for_a_commit();
    an_io_error_names_the_file_and_changes_nothing();
    a_read_error_is_told_and_passes();
    a_full_disk_is_told_and_the_store_goes_on_when_there_is_space();
    a_write_too_large_for_the_disk_does_not_take_small_ones_with_it();
    remove_test_directory();
    return check_report("test_store_commit");
}
