/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit: concurrent writes share one transaction, and so one fsync.
 *
 * Writers form a queue. The first in the queue, if there is no leader, becomes the leader: it takes
 * all that wait, writes them in one transaction, tells them the result, and wakes the first of
 * those that have arrived meanwhile. A single writer is its own leader and waits for nobody. While
 * the disk works on one batch the next one gathers, so there is no need for a timer, nor for a
 * thread that would cost two switches for each write.
 *
 * The writes of a batch are independent: the expectations of a write are checked before any of it
 * is applied, so a refused write leaves nothing to undo. Savepoints were rejected: they cost two
 * statements per write, and there is nothing to roll back.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite_internal.h"

/* Keeps a batch of large values from making the log long. */
#define BATCH_BYTES STORE_MAX_WRITE

enum { BEGIN, COMMIT, ROLLBACK, FIND, PUT, DELETE, COUNT_UP };

static const char put_entry[] = "INSERT INTO entry (key, revision, value) VALUES (?1, ?2, ?3)"
                                " ON CONFLICT (key) DO UPDATE SET revision = ?2, value = ?3";

static const char *const statements[] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [FIND] = "SELECT revision FROM entry WHERE key = ?1",
    [PUT] = put_entry,
    [DELETE] = "DELETE FROM entry WHERE key = ?1",
    [COUNT_UP] = "UPDATE meta SET number = ?1 WHERE name = 'revision'",
    NULL,
};
_Static_assert(COUNT_OF(statements) - 1 <= SQLITE_MAX_STATEMENTS, "room for all statements");

/* A waiting write, on the stack of its thread. */
struct pending {
    struct pending *next;
    const struct store_change *changes;
    size_t count;
    sem_t wake; /* it is done, or has to lead */
    bool is_done;
    uint64_t revision;
    struct error *error;
};

struct error *
sqlite_committer_open(struct sqlite_committer *committer, struct sqlite_connection *connection,
                      struct history *history)
{
    int64_t revision;
    struct error *error = sqlite_connection_prepare(connection, statements);
    if (!error)
        error = sqlite_query_number(connection, "SELECT number FROM meta WHERE name = 'revision'",
                                    &revision);
    if (error)
        return error;
    *committer = (struct sqlite_committer){.connection = *connection, .history = history};
    *connection = (struct sqlite_connection){0};
    committer->revision = (uint64_t)revision;
    committer->last = &committer->first;
    pthread_mutex_init(&committer->lock, NULL);
    return NULL;
}

void
sqlite_committer_close(struct sqlite_committer *committer)
{
    sqlite_connection_close(&committer->connection);
    pthread_mutex_destroy(&committer->lock);
}

/* ---- one write, inside a transaction ---- */

static sqlite3_stmt *
with_key(struct sqlite_committer *committer, int which, const char *key)
{
    sqlite3_stmt *statement = committer->connection.statements[which];
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    return statement;
}

static struct error *
find_revision(struct sqlite_committer *committer, const char *key, uint64_t *found)
{
    sqlite3_stmt *statement = with_key(committer, FIND, key);
    struct error *error = NULL;
    int result = sqlite3_step(statement);
    *found = STORE_ABSENT;
    if (result == SQLITE_ROW)
        *found = (uint64_t)sqlite3_column_int64(statement, 0);
    else if (result != SQLITE_DONE)
        error = sqlite_connection_error(&committer->connection);
    sqlite3_reset(statement);
    return error;
}

/* `*refusal`: why the write is not made. The result is about the whole transaction. */
static struct error *
check_expectations(struct sqlite_committer *committer, const struct pending *pending,
                   struct error **refusal)
{
    for (size_t i = 0; i < pending->count && !*refusal; i++) {
        const struct store_change *change = &pending->changes[i];
        uint64_t found;
        if (change->expected == STORE_ANY)
            continue;
        struct error *error = find_revision(committer, change->key, &found);
        if (error)
            return error;
        *refusal = store_check_expected(change, found);
    }
    return NULL;
}

static struct error *
apply_change(struct sqlite_committer *committer, const struct store_change *change,
             uint64_t revision, struct change_list *changed)
{
    sqlite3_stmt *statement = with_key(committer, change->value ? PUT : DELETE, change->key);
    if (change->value) {
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)revision);
        sqlite3_bind_blob64(statement, 3, change->value, change->value_size, SQLITE_STATIC);
    }
    struct error *error = sqlite_run(&committer->connection, statement);
    if (!error && sqlite3_changes(committer->connection.db))
        change_list_add(changed, change, revision);
    return error;
}

/* Gives the write the next revision after `*revision`, or an error of its own. */
static struct error *
apply_write(struct sqlite_committer *committer, struct pending *pending, uint64_t *revision,
            struct change_list *changed)
{
    struct error *error = check_expectations(committer, pending, &pending->error);
    if (error || pending->error)
        return error;
    pending->revision = ++*revision;
    for (size_t i = 0; i < pending->count && !error; i++)
        error = apply_change(committer, &pending->changes[i], *revision, changed);
    return error;
}

/* ---- one batch ---- */

static struct error *
run(struct sqlite_committer *committer, int which)
{
    return sqlite_run(&committer->connection, committer->connection.statements[which]);
}

/* Ends the transaction. If no write was made, there is no need to wait for the disk. */
static struct error *
commit_revision(struct sqlite_committer *committer, uint64_t revision)
{
    if (revision == committer->revision)
        return run(committer, ROLLBACK);
    sqlite3_bind_int64(committer->connection.statements[COUNT_UP], 1, (sqlite3_int64)revision);
    struct error *error = run(committer, COUNT_UP);
    return error ? error : run(committer, COMMIT);
}

static struct error *
apply_batch(struct sqlite_committer *committer, struct pending *batch, size_t count,
            struct change_list *changed)
{
    uint64_t revision = committer->revision;
    struct error *error = run(committer, BEGIN);
    for (; count && !error; count--, batch = batch->next)
        error = apply_write(committer, batch, &revision, changed);
    if (!error)
        error = commit_revision(committer, revision);
    if (!error)
        committer->revision = revision;
    return error;
}

static void
undo_batch(struct sqlite_committer *committer, struct pending *batch, size_t count)
{
    /* After some errors SQLite has already rolled back. */
    if (!sqlite3_get_autocommit(committer->connection.db))
        error_free(run(committer, ROLLBACK));
    for (; count; count--, batch = batch->next) {
        error_free(STEAL(batch->error));
    }
}

static struct error *
try_batch(struct sqlite_committer *committer, struct pending *batch, size_t count)
{
    struct change_list changed = {0};
    struct error *error = apply_batch(committer, batch, count, &changed);
    if (error)
        undo_batch(committer, batch, count);
    else
        history_publish(committer->history, &changed);
    change_list_clear(&changed);
    return error;
}

/*
 * If the batch does not fit on the disk, parts of it may: a large write must not make small ones
 * fail.
 */
static void
commit_batch(struct sqlite_committer *committer, struct pending *batch, size_t count)
{
    struct error *error = try_batch(committer, batch, count);
    bool one_by_one = error && error->code == CODE_RESOURCE_EXHAUSTED && count > 1;
    if (!error)
        return;
    for (; count; count--, batch = batch->next) {
        struct error *own = one_by_one ? try_batch(committer, batch, 1)
                                       : error_new(error->code, "%s", error->message);
        if (own)
            batch->error = own;
    }
    error_free(error);
}

/* ---- the queue ---- */

static size_t
bytes_of(const struct pending *pending)
{
    size_t bytes = 0;
    for (size_t i = 0; i < pending->count; i++)
        bytes += pending->changes[i].value ? pending->changes[i].value_size : 0;
    return bytes;
}

/* Takes at least one from the front of the queue. The lock is held. */
static struct pending *
take_batch(struct sqlite_committer *committer, size_t *count)
{
    struct pending *batch = committer->first;
    struct pending *end = batch->next;
    size_t bytes = bytes_of(batch);
    for (*count = 1; end && (bytes += bytes_of(end)) <= BATCH_BYTES; end = end->next)
        ++*count;
    committer->first = end;
    if (!end)
        committer->last = &committer->first;
    return batch;
}

/* True: there is no leader, so the caller leads. */
static bool
queue_up(struct sqlite_committer *committer, struct pending *pending)
{
    pthread_mutex_lock(&committer->lock);
    *committer->last = pending;
    committer->last = &pending->next;
    bool leads = !committer->has_leader;
    committer->has_leader = true;
    pthread_mutex_unlock(&committer->lock);
    return leads;
}

static void
wait_for_turn(struct pending *pending)
{
    while (sem_wait(&pending->wake) != 0 && errno == EINTR)
        ;
}

/* The first of those that have arrived meanwhile leads next. */
static void
hand_over(struct sqlite_committer *committer)
{
    pthread_mutex_lock(&committer->lock);
    struct pending *next = committer->first;
    committer->has_leader = next;
    pthread_mutex_unlock(&committer->lock);
    if (next)
        sem_post(&next->wake);
}

/*
 * The leader is the first of its batch. Wakes the next leader before the writers that are done,
 * because the disk is idle.
 */
static void
lead(struct sqlite_committer *committer)
{
    size_t count;
    pthread_mutex_lock(&committer->lock);
    struct pending *batch = take_batch(committer, &count);
    pthread_mutex_unlock(&committer->lock);
    commit_batch(committer, batch, count);
    hand_over(committer);
    for (batch = batch->next; --count;) {
        struct pending *done = batch;
        batch = batch->next; /* once woken, its thread discards the stack that it is on */
        done->is_done = true;
        sem_post(&done->wake);
    }
}

struct error *
sqlite_committer_write(struct sqlite_committer *committer, const struct store_change *changes,
                       size_t count, uint64_t *revision)
{
    struct pending pending = {.changes = changes, .count = count};
    sem_init(&pending.wake, 0, 0);
    if (!queue_up(committer, &pending))
        wait_for_turn(&pending);
    if (!pending.is_done)
        lead(committer);
    sem_destroy(&pending.wake);
    if (!pending.error)
        *revision = pending.revision;
    return pending.error;
}
