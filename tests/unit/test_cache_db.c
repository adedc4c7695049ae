/* SPDX-License-Identifier: Apache-2.0 */
/* A cache keeps rows in order, survives its process, and is made anew when it is damaged. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "store/cache_db.h"

static char directory[] = "/tmp/test-cache-db.XXXXXX";
static char path[64];

static bool
went_well(struct error *error)
{
    if (error)
        fprintf(stderr, "%s\n", error->message);
    bool is_good = !error;
    error_free(error);
    return is_good;
}

static struct cache_db *
open_cache(void)
{
    struct cache_db *db = NULL;
    CHECK(went_well(cache_db_open(path, 256, &db)));
    CHECK(db != NULL);
    return db;
}

static void
put_number(struct cache_db *db, uint32_t number)
{
    char key[16];
    snprintf(key, sizeof key, "%08u", number);
    CHECK(went_well(cache_db_put(db, key, 8, &number, sizeof number)));
}

static bool
has_number(struct cache_db *db, uint32_t number)
{
    char key[16];
    uint32_t value = 0;
    bool found = false;
    snprintf(key, sizeof key, "%08u", number);
    CHECK(went_well(cache_db_get(db, key, 8, &value, sizeof value, &found)));
    return found && value == number;
}

static uint64_t
count(struct cache_db *db)
{
    uint64_t rows = 0;
    CHECK(went_well(cache_db_count(db, &rows)));
    return rows;
}

static void
test_rows(void)
{
    struct cache_db *db = NULL;
    struct buffer value AUTO(buffer_clear) = {0};
    bool found, is_new;
    CHECK(went_well(cache_db_open_temporary(directory, 256, &db)));
    for (uint32_t i = 0; i < 20000; i++)
        put_number(db, (i * 7919) % 20000);
    CHECK_NUMBER(count(db), 20000);
    CHECK(has_number(db, 0) && has_number(db, 19999) && !has_number(db, 20000));
    CHECK(went_well(cache_db_delete(db, "00000007", 8)));
    CHECK(went_well(cache_db_delete(db, "00000007", 8)));
    CHECK(!has_number(db, 7));
    CHECK(went_well(cache_db_add(db, "00000008", 8, "x", 1, &is_new)));
    CHECK(!is_new && has_number(db, 8));
    CHECK(went_well(cache_db_add(db, "00000007", 8, "text", 4, &is_new)));
    CHECK(is_new);
    CHECK(went_well(cache_db_read(db, "00000007", 8, &value, &found)));
    CHECK(found && value.size == 4 && !memcmp(value.bytes, "text", 4));
    /* A value of another size is not what was asked for. */
    CHECK(went_well(cache_db_get(db, "00000007", 8, NULL, 0, &found)));
    CHECK(!found);
    CHECK(went_well(cache_db_drop(db)));
    CHECK_NUMBER(count(db), 0);
    cache_db_close(db);
}

static void
test_walk_is_in_order(void)
{
    struct cache_db *db = NULL;
    struct cache_db_walk walk AUTO(cache_db_walk_clear) = {0};
    uint32_t expected = 500;
    CHECK(went_well(cache_db_open_temporary(directory, 256, &db)));
    for (uint32_t i = 0; i < 1000; i++)
        put_number(db, (i * 7919) % 1000);
    buffer_append(&walk.key, "000005", 6);
    while (went_well(cache_db_next(db, &walk)) && walk.found) {
        uint32_t number = 0;
        CHECK_NUMBER(walk.value.size, sizeof number);
        memcpy(&number, walk.value.bytes, sizeof number);
        CHECK_NUMBER(number, expected++);
    }
    CHECK_NUMBER(expected, 1000);
    cache_db_close(db);
}

static void
test_rows_survive_a_kill(void)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        struct cache_db *db = open_cache();
        for (uint32_t i = 0; i < 100; i++)
            put_number(db, i);
        CHECK(went_well(cache_db_commit(db)));
        put_number(db, 100);
        raise(SIGKILL);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    struct cache_db *db = open_cache();
    CHECK_NUMBER(count(db), 100);
    CHECK(has_number(db, 99));
    cache_db_close(db);
}

static void
test_one_at_a_time(void)
{
    struct cache_db *db = open_cache(), *other = (struct cache_db *)1;
    CHECK(went_well(cache_db_open(path, 256, &other)));
    CHECK(other == NULL);
    cache_db_close(db);
    db = open_cache();
    cache_db_close(db);
}

static void
test_damage_makes_it_anew(void)
{
    int fd = open(path, O_RDWR | O_TRUNC);
    CHECK(write(fd, "this is no database, whatever else it may be", 44) == 44);
    close(fd);
    struct cache_db *db = open_cache();
    CHECK_NUMBER(count(db), 0);
    put_number(db, 1);
    cache_db_close(db);
    db = open_cache();
    CHECK(has_number(db, 1));
    cache_db_close(db);
}

int
main(void)
{
    char command[64];
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/cache", directory);
    test_rows();
    test_walk_is_in_order();
    test_rows_survive_a_kill();
    test_one_at_a_time();
    test_damage_makes_it_anew();
    snprintf(command, sizeof command, "rm -rf %s", directory);
    CHECK_NUMBER(system(command), 0);
    return check_report("test_cache_db");
}
