/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store as files: what stays over a restart, who may open it, versions, damage. */
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "store/sqlite_internal.h"
#include "store_ends.h"

#define REBUILD "skycap doctor --rebuild"

/* ---- files by hand ---- */

static int64_t
size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

static unsigned
mode_of(const char *path)
{
    struct stat status = {0};
    stat(path, &status);
    return status.st_mode & 07777;
}

static void
write_at(const char *path, int64_t offset, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK_NUMBER(pwrite(fd, bytes, size, offset), size);
    close(fd);
}

/* Runs SQL on the database of a store that is closed, or makes one. */
static void
change_database(const char *name, const char *sql)
{
    sqlite3 *db;
    char path[64], *text = NULL;
    snprintf(path, sizeof path, "%s/state.db", name);
    CHECK_NUMBER(sqlite3_open(below(path), &db), SQLITE_OK);
    sqlite3_exec(db, sql, NULL, NULL, &text);
    CHECK_TEXT(text, NULL);
    sqlite3_free(text);
    sqlite3_close(db);
}

static void
check_refused(const char *name, const char *part)
{
    struct store *store;
    CHECK_SAYS(store_open(url_of(name), NULL, &store), CODE_FAILED_PRECONDITION, part);
    CHECK(!store);
}

static void
make_store(const char *name, unsigned entries)
{
    struct store *store = open_store(url_of(name));
    char value[401];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (unsigned done = 0; done < entries;) {
        static char keys[STORE_MAX_CHANGES][24];
        struct store_change changes[STORE_MAX_CHANGES];
        size_t count = 0;
        for (; count < STORE_MAX_CHANGES && done < entries; count++, done++) {
            snprintf(keys[count], sizeof keys[count], "volume/%08u", done);
            changes[count] = text_change(keys[count], value, STORE_ANY);
        }
        CHECK_OK(store_write(store, changes, count, NULL));
    }
    store_close(store);
}

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

#define MIB (INT64_C(1) << 20)

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
    CHECK_OK(sqlite_schema_mark(&connection));
    CHECK_OK(sqlite_schema_migrate(&connection, steps, 1));
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

/* ---- damage ---- */

/* Refused twice, because looking must not make it worse; then set aside, and a new one can be made. */
static void
check_damaged(const char *name)
{
    struct arena arena;
    const char *moved_to = NULL;
    char log[64];
    check_refused(name, REBUILD);
    check_refused(name, "state.db is damaged");
    arena_init(&arena, NULL, 0, 0);
    CHECK_OK(store_set_aside(url_of(name), &arena, &moved_to));
    CHECK(moved_to && strstr(moved_to, name) && strstr(moved_to, "damaged-1"));
    snprintf(log, sizeof log, "%s/state.db-wal", name);
    CHECK_NUMBER(size_of(below(log)), -1);
    struct store *store = open_store(url_of(name));
    CHECK_NUMBER(revision_of(store), 0);
    CHECK_OK(put(store, "a", "1", STORE_ANY, NULL));
    store_close(store);
    arena_clear(&arena);
}

static void
a_damaged_store_is_refused_and_can_be_set_aside(void)
{
    uint8_t rubbish[4096];
    memset(rubbish, 0x5a, sizeof rubbish);

    make_store("garbage", 100);
    write_at(below("garbage/state.db"), 0, rubbish, sizeof rubbish);
    check_damaged("garbage");

    make_store("head", 100);
    write_at(below("head/state.db"), 100, rubbish, 100);
    check_damaged("head");

    make_store("page", 1000);
    write_at(below("page/state.db"), 20 * 4096, rubbish, sizeof rubbish);
    check_damaged("page");

    make_store("cut", 1000);
    CHECK_NUMBER(truncate(below("cut/state.db"), 30 * 4096), 0);
    check_damaged("cut");

    make_store("empty", 10);
    CHECK_NUMBER(truncate(below("empty/state.db"), 0), 0);
    check_damaged("empty");

    make_store("no-table", 10);
    change_database("no-table", "DROP TABLE entry; CREATE TABLE entry (other);");
    check_damaged("no-table");

    make_store("no-row", 10);
    change_database("no-row", "DELETE FROM meta;");
    check_damaged("no-row");
}

/* Writes and ends without closing: the log stays. */
static void
make_store_with_log(const char *name)
{
    pid_t child = fork();
    if (child == 0) {
        struct store *store = open_store(url_of(name));
        error_free(put(store, "in-the-log", "x", STORE_ANY, NULL));
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void
looking_at_a_damaged_store_changes_nothing(void)
{
    uint8_t rubbish[4096], head[4096] = {0};
    memset(rubbish, 0x5a, sizeof rubbish);
    make_store("looked-at", 1000);
    make_store_with_log("looked-at");
    write_at(below("looked-at/state.db"), 20 * 4096, rubbish, sizeof rubbish);
    int64_t size = size_of(below("looked-at/state.db"));
    check_refused("looked-at", REBUILD);
    CHECK_NUMBER(size_of(below("looked-at/state.db")), size);
    CHECK_NUMBER(size_of(below("looked-at/state.db-wal")), 4 * MIB);
    int fd = open(below("looked-at/state.db-wal"), O_RDONLY);
    CHECK_NUMBER(pread(fd, head, sizeof head, 32), sizeof head);
    CHECK(head[0] || head[1] || head[2] || head[3]); /* the number of the first page in the log */
    close(fd);
}

/* A log without its database would be thrown away by SQLite, and with it the latest writes. */
static void
a_log_without_its_database_is_damage(void)
{
    make_store("orphan", 10);
    CHECK_NUMBER(rename(below("orphan/state.db"), below("orphan/elsewhere")), 0);
    write_at(below("orphan/state.db-wal"), 0, "a log", 5);
    check_refused("orphan", "its log is there");
    check_refused("orphan", REBUILD);
    CHECK_NUMBER(size_of(below("orphan/state.db-wal")), 5);
    CHECK_NUMBER(rename(below("orphan/elsewhere"), below("orphan/state.db")), 0);
    unlink(below("orphan/state.db-wal"));
    store_close(open_store(url_of("orphan")));
}

static void
what_is_set_aside_is_kept(void)
{
    struct arena arena;
    const char *first, *second, *none;
    arena_init(&arena, NULL, 0, 0);
    make_store("aside", 10);
    CHECK_OK(store_set_aside(url_of("aside"), &arena, &first));
    CHECK_OK(store_set_aside(url_of("aside"), &arena, &none));
    CHECK(!none);
    make_store("aside", 20);
    CHECK_OK(store_set_aside(url_of("aside"), &arena, &second));
    CHECK(strstr(first, "/aside/damaged-1"));
    CHECK(strstr(second, "/aside/damaged-2"));
    CHECK(mode_of(first) == 0700);
    int64_t entries = 0;
    struct sqlite_connection connection;
    CHECK_OK(sqlite_connection_open(&connection, below("aside/damaged-2/state.db"), 100));
    CHECK_OK(sqlite_query_number(&connection, "SELECT count(*) FROM entry", &entries));
    CHECK_NUMBER(entries, 20);
    sqlite_connection_close(&connection);
    arena_clear(&arena);
}

static void
damage_found_later_is_data_loss(void)
{
    uint8_t rubbish[4096];
    struct arena arena;
    struct store_list list;
    memset(rubbish, 0x5a, sizeof rubbish);
    make_store("later", 2000);
    struct store *store = open_store(url_of("later"));
    for (int64_t page = 3; page < 100; page++)
        write_at(below("later/state.db"), page * 4096, rubbish, sizeof rubbish);
    arena_init(&arena, NULL, 0, 0);
    CHECK_SAYS(store_list(store, "", NULL, 0, &arena, &list), CODE_DATA_LOSS, REBUILD);
    CHECK_SAYS(store_check(store), CODE_DATA_LOSS, REBUILD);
    arena_clear(&arena);
    store_close(store);
}

static void
a_complete_check_compares_revisions_too(void)
{
    make_store("ahead", 10);
    change_database("ahead", "UPDATE entry SET revision = 77 WHERE key = 'volume/00000003'");
    struct store *store = open_store(url_of("ahead"));
    CHECK_CODE(store_check(store), CODE_DATA_LOSS);
    store_close(store);
}

/* In a millisecond the check does not come through some megabytes to the damage: SQLite looks at the first pages last. */
static void
the_check_at_start_is_bounded(void)
{
    uint8_t rubbish[4096];
    struct sqlite_connection connection;
    memset(rubbish, 0x5a, sizeof rubbish);
    make_store("big", 60000);
    for (int64_t page = 10; page < 40; page++)
        write_at(below("big/state.db"), page * 4096, rubbish, sizeof rubbish);
    char path[1024];
    snprintf(path, sizeof path, "%s", below("big/state.db"));
    CHECK_OK(sqlite_connection_open(&connection, path, 100));
    unsigned cut_short = 0;
    for (unsigned i = 0; i < 50 && !cut_short; i++) /* the clock itself may come late */
        cut_short += code_of(sqlite_check_for(&connection, 1)) == CODE_OK;
    CHECK_NUMBER(cut_short, 1);
    CHECK_CODE(sqlite_check_for(&connection, 60000), CODE_DATA_LOSS);
    sqlite_connection_close(&connection);
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
    a_damaged_store_is_refused_and_can_be_set_aside();
    looking_at_a_damaged_store_changes_nothing();
    a_log_without_its_database_is_damage();
    what_is_set_aside_is_kept();
    damage_found_later_is_data_loss();
    a_complete_check_compares_revisions_too();
    the_check_at_start_is_bounded();
    remove_test_directory();
    return check_report("test_store_sqlite");
}
