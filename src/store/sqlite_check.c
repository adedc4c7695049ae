/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the database is sound: a brief check at each start, and a complete one for skycap doctor.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "store/sqlite_internal.h"

/* ---- an end by the clock ---- */

/*
 * Interrupts the connection when the time is up. SQLite does not call its own progress handler
 * while it checks pages.
 */
struct alarm {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    sqlite3 *db;
    struct timespec at;
    bool is_stopped;
    bool has_rung;
};

static void *
wait_and_ring(void *argument)
{
    struct alarm *alarm = argument;
    pthread_mutex_lock(&alarm->lock);
    while (!alarm->is_stopped && !alarm->has_rung)
        alarm->has_rung =
            pthread_cond_timedwait(&alarm->stopped, &alarm->lock, &alarm->at) == ETIMEDOUT;
    if (alarm->has_rung)
        sqlite3_interrupt(alarm->db);
    pthread_mutex_unlock(&alarm->lock);
    return NULL;
}

static struct error *
start_alarm(struct alarm *alarm, sqlite3 *db, unsigned ms)
{
    *alarm = (struct alarm){.db = db};
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&alarm->lock, NULL);
    pthread_cond_init(&alarm->stopped, &monotonic);
    pthread_condattr_destroy(&monotonic);
    alarm->at = clock_after_ms(ms);
    int errnum = pthread_create(&alarm->thread, NULL, wait_and_ring, alarm);
    return errnum ? error_from_errno(errnum, "start a thread to check the store with") : NULL;
}

/* True: the time was up. */
static bool
stop_alarm(struct alarm *alarm)
{
    pthread_mutex_lock(&alarm->lock);
    alarm->is_stopped = true;
    pthread_cond_signal(&alarm->stopped);
    pthread_mutex_unlock(&alarm->lock);
    pthread_join(alarm->thread, NULL);
    pthread_cond_destroy(&alarm->stopped);
    pthread_mutex_destroy(&alarm->lock);
    return alarm->has_rung;
}

/* ---- checks ---- */

/* SQLite's text is "*** in database main ***", a newline and the problem, or only the problem. */
static struct error *
tell_damage(struct sqlite_connection *connection, const char *text)
{
    const char *line = strchr(text, '\n');
    return sqlite_damaged(connection->path, line ? line + 1 : text);
}

/* SQLite's own check gives "ok", or a row for each problem; one is enough. */
static struct error *
run_check(struct sqlite_connection *connection, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    struct error *error = NULL;
    if (sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        error = sqlite_connection_error(connection);
    else if (strcmp((const char *)sqlite3_column_text(statement, 0), "ok") != 0)
        error = tell_damage(connection, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return error;
}

struct error *
sqlite_check_for(struct sqlite_connection *connection, unsigned limit_ms)
{
    struct alarm alarm;
    struct error *error = start_alarm(&alarm, connection->db, limit_ms);
    if (error)
        return error;
    error = run_check(connection, "PRAGMA quick_check(1)");
    /* The result of an interrupted check is about pages that it has not reached. */
    if (stop_alarm(&alarm)) {
        error_free(error);
        error = NULL;
    }
    return error;
}

struct error *
sqlite_check_all(struct sqlite_connection *connection)
{
    int64_t above;
    struct error *error = run_check(connection, "PRAGMA integrity_check(1)");
    if (!error)
        error = sqlite_query_number(connection,
                                    "SELECT count(*) FROM entry WHERE revision >"
                                    " (SELECT number FROM meta WHERE name = 'revision')",
                                    &above);
    if (!error && above)
        error = sqlite_damaged(connection->path, "entries have revisions that never were");
    return error;
}
