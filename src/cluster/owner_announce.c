/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Announcements: see owner_announce.h.
 *
 * Rows are collected and written together, after the locks of their volumes are released. This is
 * safe: until the node has announced all, it reads no owner of this incarnation, and reads of an
 * earlier one are discarded. So a row MOVING or INCOMING cannot change, and a LIVE row can become
 * only MOVING, which says the same about the owner.
 */
#include "cluster/owner_announce.h"

#include <stdio.h>
#include <string.h>

#include "cluster/member_rows.h"
#include "store/registry_store.h"

struct announcement {
    const struct owners_options *options;
    const struct owner_rows *rows;
    struct arena arena; /* of the changes */
    struct store_change changes[REGISTRY_STORE_MAX_CHANGES];
    size_t count;
    size_t total;
    bool tells_left;
};

/* ---- writing ---- */

static struct error *
report_other(const struct announcement *announcement, const char *key, const struct owner *other)
{
    log_error(announcement->options->log,
              "the registry has another owner for a volume than this node", LOG_TEXT("row", key),
              LOG_TEXT("owner", other->node_id), LOG_NUMBER("epoch", other->epoch));
    return NULL;
}

/*
 * The row of a LIVE or GONE volume is there: by an earlier attempt, or because a node whose volume
 * was recovered by this one was first to announce it. The later epoch wins (rule 10). A node that
 * joins again when all others have announced may replace an owner that has an answer already.
 */
static struct error *
compare(const struct announcement *announcement, const struct store_change *change)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    const struct store_entry own = {
        .key = change->key, .value = change->value, .value_size = change->value_size};
    struct owner there, here;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = store_get(announcement->rows->store, change->key, &arena, &entry);
    if (!error)
        error = owner_rows_unpack(&entry, &there);
    if (!error)
        error = owner_rows_unpack(&own, &here);
    if (error)
        return error;
    if (there.epoch == here.epoch && strcmp(there.node_id, here.node_id) == 0)
        return NULL;
    if (there.epoch >= here.epoch)
        return report_other(announcement, change->key, &there);
    struct store_change changes[] = {*change, owner_rows_tell(announcement->rows, &arena)};
    changes[0].expected = entry.revision;
    return store_write(announcement->rows->store, changes, COUNT_OF(changes),
                       NULL); /* ABORTED: again soon */
}

static struct error *
write_each(struct announcement *announcement)
{
    struct error *error = NULL;
    for (size_t i = 0; !error && i < announcement->count; i++) {
        const struct store_change *change = &announcement->changes[i];
        error = store_write(announcement->rows->store, change, 1, NULL);
        if (error && error->code == CODE_ABORTED) {
            error_free(error);
            error = compare(announcement, change);
        }
    }
    return error;
}

static struct error *
flush(struct announcement *announcement)
{
    if (!announcement->count)
        return NULL;
    struct error *error =
        store_write(announcement->rows->store, announcement->changes, announcement->count, NULL);
    if (error && error->code == CODE_ABORTED) {
        error_free(error);
        error = write_each(announcement);
    }
    announcement->total += announcement->count;
    announcement->count = 0;
    arena_clear(&announcement->arena);
    return error;
}

/* ---- collecting ---- */

static struct store_change
make_change(struct announcement *announcement, const struct claim *claim)
{
    const struct owner_rows *rows = announcement->rows;
    const char *node_id = announcement->options->node_id;
    if (claim->state != CLAIM_LIVE && claim->state != CLAIM_GONE)
        return owner_rows_claim(rows, node_id, claim, &announcement->arena);
    struct owner owner = {.epoch = claim->epoch, .recovered_epoch = claim->recovered_epoch};
    if (claim->state == CLAIM_LIVE)
        snprintf(owner.node_id, sizeof owner.node_id, "%s", node_id);
    return owner_rows_change(rows, claim->handle, &owner, STORE_ABSENT, &announcement->arena);
}

static struct error *
take(void *taker, const struct claim *claim)
{
    struct announcement *announcement = taker;
    if ((claim->state == CLAIM_LIVE && !claim->epoch) ||
        (claim->state == CLAIM_LEFT && !announcement->tells_left))
        return NULL;
    struct error *error = owner_rows_check_handle(claim->handle);
    if (error)
        return error;
    if (!claim->epoch)
        return error_new(CODE_INTERNAL, "the volume %s moves or is gone at epoch 0", claim->handle);
    announcement->changes[announcement->count++] = make_change(announcement, claim);
    return announcement->count == COUNT_OF(announcement->changes) ? flush(announcement) : NULL;
}

static struct error *
announce_volumes(struct announcement *announcement)
{
    const struct claim_source *claims = &announcement->options->claims;
    struct error *error = claims->walk(claims->context, take, announcement);
    if (!error)
        error = flush(announcement);
    arena_clear(&announcement->arena);
    return error;
}

/*
 * Volumes that have LEFT this node may have been deleted since if nobody waited for it: others have
 * acted without it in this incarnation, or the operator has removed it. The node tells that it is a
 * member first, so that from then on they wait.
 */
static struct error *
check_left(struct announcement *announcement)
{
    const struct owner_rows *rows = announcement->rows;
    const char *node_id = announcement->options->node_id;
    bool is_complete = false, is_removed = false;
    struct error *error = member_rows_add_known(rows, node_id);
    if (!error)
        error = member_rows_find_complete(rows, &is_complete);
    if (!error)
        error = member_rows_find_removed(rows, node_id, &is_removed);
    announcement->tells_left = !is_complete && !is_removed;
    return error;
}

static struct error *
announce_members(const struct owners_options *options, const struct owner_rows *rows)
{
    struct name_set known AUTO(name_set_clear) = {0};
    name_set_add(&known, options->node_id);
    struct error *error = member_rows_list_own(options->own, &known);
    return error ? error : member_rows_announce(rows, options->node_id, &known);
}

struct error *
owner_announce(const struct owners_options *options, const struct owner_rows *rows)
{
    bool found = false;
    struct error *error = owner_rows_check_node_id(options->node_id);
    if (!error)
        error = member_rows_find_announced(rows, options->node_id, &found);
    if (!error && found)
        return member_rows_take_back(rows->store, options->node_id);
    struct announcement announcement = {.options = options, .rows = rows};
    arena_init(&announcement.arena, NULL, 0, SIZE_MAX);
    if (!error)
        error = check_left(&announcement);
    if (!error)
        error = announce_volumes(&announcement);
    if (!error)
        error = announce_members(options, rows);
    if (!error)
        log_info(options->log, "announced the volumes that have moved to the registry",
                 LOG_TEXT("connection", options->connection),
                 LOG_TEXT("incarnation", rows->incarnation),
                 LOG_NUMBER("volumes", announcement.total));
    return error;
}
