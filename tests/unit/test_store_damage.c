/* SPDX-License-Identifier: Apache-2.0 */
/* A damaged SQLite store: it is refused, kept, and never taken for an empty one. */
#include <sys/wait.h>

#include "sqlite_ends.h"

#define REBUILD "skycap doctor --rebuild"

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
    a_damaged_store_is_refused_and_can_be_set_aside();
    looking_at_a_damaged_store_changes_nothing();
    a_log_without_its_database_is_damage();
    what_is_set_aside_is_kept();
    damage_found_later_is_data_loss();
    a_complete_check_compares_revisions_too();
    the_check_at_start_is_bounded();
    remove_test_directory();
    return check_report("test_store_damage");
}
