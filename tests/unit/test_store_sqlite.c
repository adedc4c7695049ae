/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store as files: what stays over a restart, who may open it, versions. */
#include <pthread.h>
#include <sys/wait.h>

#include "sqlite_ends.h"

/* ---- what stays ---- */

static void
everything_is_there_after_a_restart(void)
{
    struct store *store = open_store(url_of("kept"));
    uint64_t revision = 0;
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    CHECK_OK(put(store, "b", "2", STORE_ANY, NULL));
    CHECK_OK(put(store, "c", "3", STORE_ANY, NULL));
    CHECK_OK(put(store, "c", NULL, STORE_ANY, &revision));
    store_close(store);
    store = open_store(url_of("kept"));
    CHECK_TEXT(get(store, "a"), "1");
    CHECK_TEXT(get(store, "b"), "2");
    CHECK_TEXT(get(store, "c"), NULL);
    /* The highest revision was that of an entry that is gone. */
    CHECK_NUMBER(revision_of(store), revision);
    CHECK_OK(put(store, "d", "4", STORE_ANY, &revision));
    CHECK_NUMBER(revision, 5);
    CHECK_OK(put(store, "a", "x", 1, NULL));
    struct store_watch *watch;
    CHECK_CODE(store_watch_open(store, "", 3, &watch), CODE_OUT_OF_RANGE);
    CHECK_OK(store_watch_open(store, "", 4, &watch));
    store_watch_close(watch);
    store_close(store);
}

static void
files_are_for_their_owner_only(void)
{
    umask(0);
    struct store *store = open_store(url_of("modes"));
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    CHECK_NUMBER(mode_of(below("modes")), 0700);
    CHECK_NUMBER(mode_of(below("modes/state.db")), 0600);
    CHECK_NUMBER(mode_of(below("modes/state.db-wal")), 0600);
    CHECK_NUMBER(mode_of(below("modes/state.db-shm")), 0600);
    CHECK_NUMBER(mode_of(below("modes/state.lock")), 0600);
    CHECK_NUMBER(size_of(below("modes/state.db.new")), -1);
    store_close(store);
    CHECK_NUMBER(size_of(below("modes/state.db-wal")), -1);
    umask(022);
}

static void
a_directory_that_cannot_be_made_is_named(void)
{
    struct store *store;
    CHECK_SAYS(store_open(url_of("no/such"), NULL, &store), CODE_NOT_FOUND, below("no/such"));
    write_at(below("a-file"), 0, "x", 1);
    struct error *error = store_open(url_of("a-file"), NULL, &store);
    CHECK(error && strstr(error->message, "a-file"));
    error_free(error);
}

/* ---- one process at a time ---- */

static void
a_store_in_use_is_refused_with_the_process_that_has_it(void)
{
    char process[32];
    struct store *store = open_store(url_of("used"));
    snprintf(process, sizeof process, "process %ld", (long)getpid());
    check_refused("used", process);
    struct arena arena;
    const char *moved_to;
    arena_init(&arena, NULL, 0, 0);
    CHECK_SAYS(store_set_aside(url_of("used"), &arena, &moved_to), CODE_FAILED_PRECONDITION,
               process);
    store_close(store);
    /* The number of one that is gone is in the file; the lock is not. */
    store_close(open_store(url_of("used")));
    arena_clear(&arena);
}

static void
a_process_that_was_killed_leaves_no_lock(void)
{
    int ready[2];
    char byte;
    CHECK_NUMBER(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct store *store = open_store(url_of("killed"));
        error_free(put(store, "a", "1", STORE_ANY, NULL));
        if (write(ready[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    CHECK_NUMBER(read(ready[0], &byte, 1), 1);
    char process[32];
    snprintf(process, sizeof process, "process %ld", (long)child);
    check_refused("killed", process);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct store *store = open_store(url_of("killed"));
    CHECK_TEXT(get(store, "a"), "1");
    store_close(store);
    close(ready[0]);
    close(ready[1]);
}

/* ---- others who look into the database ---- */

static sqlite3 *other;

static void *
commit_later(void *argument)
{
    sleep_ms(200);
    EXPECT(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
    return argument;
}

static void
a_write_waits_for_another_program_that_has_the_database(void)
{
    pthread_t thread;
    struct store *store = open_store(url_of("shared"));
    CHECK_NUMBER(sqlite3_open(below("shared/state.db"), &other), SQLITE_OK);
    CHECK_NUMBER(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    pthread_create(&thread, NULL, commit_later, NULL);
    double start = now_ms();
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    CHECK(now_ms() - start >= 100);
    pthread_join(thread, NULL);
    CHECK_NUMBER(atomic_load(&thread_failures), 0);
    sqlite3_close(other);
    store_close(store);
}

/* ---- the log ---- */

static void
the_log_has_its_size_from_the_start(void)
{
    struct store *store = open_store(url_of("log"));
    CHECK_NUMBER(size_of(below("log/state.db-wal")), 4 * MIB);
    store_close(store);
    store = open_store(url_of("log"));
    CHECK_NUMBER(size_of(below("log/state.db-wal")), 4 * MIB);
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    CHECK_NUMBER(size_of(below("log/state.db-wal")), 4 * MIB);
    store_close(store);
}

static struct store *read_store;
static atomic_bool reading_ends;

static void *
read_without_pause(void *argument)
{
    while (!atomic_load(&reading_ends)) {
        struct arena arena;
        struct store_list list;
        arena_init(&arena, NULL, 0, 0);
        EXPECT(code_of(store_list(read_store, "", NULL, 500, &arena, &list)) == CODE_OK);
        EXPECT(list.count == 500);
        arena_clear(&arena);
    }
    return argument;
}

/* Changes 128 of the entries, all over the database: about as many pages. */
static void
write_all_over(struct store *store, unsigned round)
{
    static char keys[STORE_MAX_CHANGES][24];
    struct store_change changes[STORE_MAX_CHANGES];
    char value[401];
    snprintf(value, sizeof value, "%0400u", round);
    for (unsigned i = 0; i < STORE_MAX_CHANGES; i++) {
        snprintf(keys[i], sizeof keys[i], "volume/%08u", (i * 23 + round) % 3000);
        changes[i] = text_change(keys[i], value, STORE_ANY);
    }
    CHECK_OK(store_write(store, changes, STORE_MAX_CHANGES, NULL));
}

/* At every moment somebody reads, and SQLite by itself would let the log grow for as long. */
static void
readers_do_not_make_the_log_grow_without_end(void)
{
    pthread_t readers[4];
    int64_t largest = 0;
    make_store("readers", 3000);
    read_store = open_store(url_of("readers"));
    for (unsigned i = 0; i < COUNT_OF(readers); i++)
        pthread_create(&readers[i], NULL, read_without_pause, NULL);
    for (unsigned round = 0; round < 160; round++) {
        write_all_over(read_store, round);
        int64_t size = size_of(below("readers/state.db-wal"));
        largest = size > largest ? size : largest;
    }
    atomic_store(&reading_ends, true);
    for (unsigned i = 0; i < COUNT_OF(readers); i++)
        pthread_join(readers[i], NULL);
    CHECK_NUMBER(atomic_load(&thread_failures), 0);
    CHECK(largest <= 40 * MIB);
    store_close(read_store);
}

/* Somebody who reads for long holds the log up, but no writer; and when that is over the log becomes short again. */
static void
a_long_read_of_another_program_holds_nothing_up_for_long(void)
{
    make_store("long", 3000);
    struct store *store = open_store(url_of("long"));
    CHECK_NUMBER(sqlite3_open(below("long/state.db"), &other), SQLITE_OK);
    CHECK_NUMBER(sqlite3_exec(other, "BEGIN; SELECT count(*) FROM entry", NULL, NULL, NULL),
                 SQLITE_OK);
    for (unsigned round = 0; round < 40; round++)
        write_all_over(store, round);
    CHECK(size_of(below("long/state.db-wal")) > 16 * MIB);
    sqlite3_close(other);
    for (unsigned round = 0; round < 20; round++)
        write_all_over(store, round);
    CHECK_NUMBER(size_of(below("long/state.db-wal")), 4 * MIB);
    store_close(store);
}

/* ---- versions ---- */

static void
an_older_store_is_brought_up(void)
{
    mkdir(below("older"), 0700);
    /* Version 0: marked as ours, without tables. */
    change_database("older", "PRAGMA application_id = 0x534b5943; PRAGMA user_version = 0;");
    struct store *store = open_store(url_of("older"));
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    CHECK_NUMBER(revision_of(store), 1);
    store_close(store);
}

static void
a_newer_store_is_refused_and_left_as_it_is(void)
{
    make_store("newer", 1);
    change_database("newer", "PRAGMA user_version = 2; CREATE TABLE future (x);");
    check_refused("newer", "skycap 0.1.0, which knows 1): start that program or a newer one");
    change_database("newer", "DROP TABLE future; PRAGMA user_version = 1;");
    struct store *store = open_store(url_of("newer"));
    CHECK_NUMBER(revision_of(store), 1);
    store_close(store);
}

static void
a_database_of_somebody_else_is_refused_and_left_as_it_is(void)
{
    mkdir(below("foreign"), 0700);
    change_database("foreign", "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1);");
    check_refused("foreign", "not a store of skycap");
    CHECK_NUMBER(size_of(below("foreign/state.db-wal")), -1);
    change_database("foreign", "UPDATE theirs SET x = 2; DROP TABLE theirs;");
}

static void
open_bare(const char *name, struct sqlite_connection *connection, char path[256])
{
    snprintf(path, 256, "%s", below(name));
    write_at(path, 0, "", 0);
    CHECK_OK(sqlite_connection_open(connection, path, 100));
}

/* The copy is of the tables before the first step of the upgrade: the second adds y. */
static void
check_copy_has_no_y(void)
{
    struct sqlite_connection copy;
    int64_t number = 0;
    CHECK_OK(sqlite_connection_open(&copy, below("steps.db.version-1"), 100));
    CHECK_OK(sqlite_query_number(&copy, "PRAGMA user_version", &number));
    CHECK_NUMBER(number, 1);
    CHECK_OK(sqlite_query_number(
        &copy, "SELECT count(*) FROM pragma_table_info('a') WHERE name = 'y'", &number));
    CHECK_NUMBER(number, 0);
    sqlite_connection_close(&copy);
}

static void
migrations_run_in_order_and_each_as_a_whole(void)
{
    static const char *const steps[] = {
        "CREATE TABLE a (x)",
        "ALTER TABLE a ADD COLUMN y; INSERT INTO a (x, y) VALUES (1, 2)",
        "UPDATE a SET y = 3; INSERT INTO missing VALUES (1)",
    };
    struct sqlite_connection connection;
    char path[256];
    int64_t number = 0;
    open_bare("steps.db", &connection, path);
    /* An earlier upgrade was interrupted while it copied, by a program that copied to the name itself. */
    write_at(below("steps.db.version-1"), 0, "half a copy", 11);
    write_at(below("steps.db.version-1.new"), 0, "half a copy", 11);
    CHECK_OK(sqlite_schema_mark(&connection));
    CHECK_OK(sqlite_schema_migrate(&connection, steps, 1));
    CHECK_NUMBER(size_of(below("steps.db.version-1")), 11);
    CHECK_OK(sqlite_query_number(&connection, "PRAGMA user_version", &number));
    CHECK_NUMBER(number, 1);
    CHECK_SAYS(sqlite_schema_migrate(&connection, steps, 3), CODE_DATA_LOSS, "version 3");
    CHECK_OK(sqlite_query_number(&connection, "PRAGMA user_version", &number));
    CHECK_NUMBER(number, 2);
    CHECK_OK(sqlite_query_number(&connection, "SELECT y FROM a", &number));
    CHECK_NUMBER(number, 2);
    CHECK_OK(sqlite_schema_check(&connection, 2));
    CHECK_SAYS(sqlite_schema_check(&connection, 1), CODE_FAILED_PRECONDITION,
               "steps.db.version-1 (docs/upgrade.md). Nothing was changed");
    check_copy_has_no_y();
    CHECK_NUMBER(mode_of(below("steps.db.version-1")), 0600);
    CHECK_NUMBER(size_of(below("steps.db.version-1.new")), -1);
    CHECK_OK(sqlite_schema_migrate(&connection, steps, 2));
    sqlite_connection_close(&connection);
}

static void
what_an_unfinished_start_left_does_not_matter(void)
{
    mkdir(below("unfinished"), 0700);
    write_at(below("unfinished/state.db.new"), 0, "half a database", 15);
    write_at(below("unfinished/state.db.new-journal"), 0, "half a journal", 14);
    struct store *store = open_store(url_of("unfinished"));
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    CHECK_NUMBER(size_of(below("unfinished/state.db.new")), -1);
    CHECK_NUMBER(size_of(below("unfinished/state.db.new-journal")), -1);
    store_close(store);
}

int
main(void)
{
    make_test_directory();
    everything_is_there_after_a_restart();
    files_are_for_their_owner_only();
    a_directory_that_cannot_be_made_is_named();
    a_store_in_use_is_refused_with_the_process_that_has_it();
    a_process_that_was_killed_leaves_no_lock();
    a_write_waits_for_another_program_that_has_the_database();
    the_log_has_its_size_from_the_start();
    readers_do_not_make_the_log_grow_without_end();
    a_long_read_of_another_program_holds_nothing_up_for_long();
    an_older_store_is_brought_up();
    a_newer_store_is_refused_and_left_as_it_is();
    a_database_of_somebody_else_is_refused_and_left_as_it_is();
    migrations_run_in_order_and_each_as_a_whole();
    what_an_unfinished_start_left_does_not_matter();
    remove_test_directory();
    return check_report("test_store_sqlite");
}
