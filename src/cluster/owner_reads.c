/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of owners: see owner_reads.h.
 *
 * A read of an owner is two reads of rows: the owner, and then the incarnation, which must be the
 * one that this node has announced its rows to. Two more facts are needed before: that all members
 * have announced, and which volumes have claims. Once all have announced, these do not change any
 * more in an incarnation, so they are kept in memory. (A node that joins later may announce claims.
 * Only its own reads need them, to settle the volume.)
 */
#include "cluster/owner_reads.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"

void
owner_reads_init(struct owner_reads *reads, struct store *store, const char *connection,
                 const char *node_id)
{
    *reads = (struct owner_reads){.store = store, .connection = connection, .node_id = node_id};
    pthread_mutex_init(&reads->lock, NULL);
}

void
owner_reads_clear(struct owner_reads *reads)
{
    name_set_clear(&reads->claimed);
    pthread_mutex_destroy(&reads->lock);
}

/* ---- the incarnation ---- */

struct error *
owner_reads_open(struct owner_reads *reads, struct owner_view *out)
{
    *out = (struct owner_view){.rows = {.store = reads->store, .connection = reads->connection}};
    pthread_mutex_lock(&reads->lock);
    memcpy(out->rows.incarnation, reads->incarnation, INCARNATION_SIZE);
    out->is_complete = reads->is_complete;
    pthread_mutex_unlock(&reads->lock);
    if (out->rows.incarnation[0])
        return NULL;
    return error_new(CODE_UNAVAILABLE,
                     "this node has not announced its volumes to the registry yet; try again");
}

struct error *
owner_reads_check(const struct owner_view *view)
{
    char incarnation[INCARNATION_SIZE];
    struct error *error = owner_rows_read_incarnation(view->rows.store, incarnation);
    if (error || !strcmp(incarnation, view->rows.incarnation))
        return error;
    return error_new(CODE_UNAVAILABLE, "the registry has lost its data, and this node has not "
                                       "announced its volumes to it yet; try again");
}

void
owner_reads_set_incarnation(struct owner_reads *reads, const char *incarnation)
{
    pthread_mutex_lock(&reads->lock);
    snprintf(reads->incarnation, sizeof reads->incarnation, "%s", incarnation);
    reads->is_complete = false;
    name_set_clear(&reads->claimed);
    pthread_mutex_unlock(&reads->lock);
}

bool
owner_reads_is_in(struct owner_reads *reads, const char *incarnation)
{
    pthread_mutex_lock(&reads->lock);
    bool is_same = !strcmp(reads->incarnation, incarnation);
    pthread_mutex_unlock(&reads->lock);
    return is_same;
}

/* ---- settling ---- */

/* UNAVAILABLE: members are awaited. */
static struct error *
check_members(const struct owner_reads *reads, const struct member_rows *members)
{
    struct buffer awaited AUTO(buffer_clear) = {0};
    if (member_rows_print_awaited(members, &awaited))
        return error_new(CODE_UNAVAILABLE,
                         "nodes have not announced their volumes to the registry yet: %s. Start "
                         "them, or forget those that do not come back: skycap node forget",
                         buffer_text(&awaited));
    if (!name_set_has(&members->announced, reads->node_id))
        return error_new(CODE_UNAVAILABLE, "the registry has lost its data; try again");
    return NULL;
}

static struct error *
read_members(const struct owner_reads *reads, const struct owner_view *view,
             struct member_rows *out)
{
    struct error *error = member_rows_read(&view->rows, out);
    return error ? error : check_members(reads, out);
}

/*
 * Says so before anybody acts on it, and looks again: a node that joins meanwhile either sees that,
 * or is seen.
 */
struct error *
owner_reads_members(const struct owner_reads *reads, const struct owner_view *view,
                    struct member_rows *out)
{
    bool is_said = false;
    struct error *error = read_members(reads, view, out);
    if (!error)
        error = member_rows_find_complete(&view->rows, &is_said);
    if (error || is_said)
        return error;
    member_rows_clear(out);
    error = member_rows_set_complete(&view->rows);
    return error ? error : read_members(reads, view, out);
}

/* Takes the names. */
static void
set_complete(struct owner_reads *reads, const struct owner_view *view, struct name_set *claimed)
{
    pthread_mutex_lock(&reads->lock);
    if (!strcmp(reads->incarnation, view->rows.incarnation) && !reads->is_complete) {
        reads->is_complete = true;
        reads->claimed = *claimed;
        *claimed = (struct name_set){0};
    }
    pthread_mutex_unlock(&reads->lock);
}

/* No error: all members have announced, and the claims are known. */
static struct error *
complete(struct owner_reads *reads, const struct owner_view *view)
{
    struct member_rows members AUTO(member_rows_clear) = {0};
    struct name_set claimed AUTO(name_set_clear) = {0};
    struct error *error = owner_reads_members(reads, view, &members);
    if (!error)
        error = owner_rows_list_claimed(&view->rows, &claimed);
    if (!error)
        error = owner_reads_check(view);
    if (!error)
        set_complete(reads, view, &claimed);
    return error;
}

static bool
is_claimed(struct owner_reads *reads, const struct owner_view *view, const char *handle)
{
    pthread_mutex_lock(&reads->lock);
    bool is_known = !strcmp(reads->incarnation, view->rows.incarnation);
    bool is_claimed = !is_known || name_set_has(&reads->claimed, handle);
    pthread_mutex_unlock(&reads->lock);
    return is_claimed;
}

/*
 * Without an error the volume is settled, if owner_reads_check agrees. The row is read when all
 * members have announced: until then a LIVE node with a later epoch may replace it.
 */
static struct error *
read_row(struct owner_reads *reads, const struct owner_view *view, const char *handle,
         struct owner_row *out)
{
    struct error *error = view->is_complete ? NULL : complete(reads, view);
    if (!error)
        error = owner_rows_read(&view->rows, handle, out);
    if (error || !is_claimed(reads, view, handle))
        return error;
    error = owner_rows_settle(&view->rows, handle, out);
    return error ? error : owner_rows_read(&view->rows, handle, out);
}

struct error *
owner_reads_settled(struct owner_reads *reads, const char *handle, struct owner_view *view,
                    struct owner_row *out)
{
    struct error *error = owner_rows_check_handle(handle);
    if (!error)
        error = owner_reads_open(reads, view);
    if (!error)
        error = read_row(reads, view, handle, out);
    return error ? error : owner_reads_check(view);
}
