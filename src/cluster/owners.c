/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners of volumes: see owners.h. owner_reads.c says what a read means, owner_announce.c announces
 * the rows of this node, and the keys are in owner_rows.c and member_rows.c.
 */
#include "cluster/owners.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cluster/member_rows.h"
#include "cluster/owner_announce.h"
#include "cluster/owner_reads.h"
#include "volumes/handle.h"

struct owners {
    struct owners_options options; /* its texts are ours */
    char *connection;
    char *node_id;
    struct ownership interface;
    struct owner_reads reads;
    pthread_mutex_t renewing; /* held while rows are announced; taken before a volume's lock */

    pthread_mutex_t lock;    /* for the rest; nobody waits while it is held */
    struct name_set members; /* that are in our own store for sure */
};

/* ---- the incarnation ---- */

static struct error *
find_or_make_incarnation(struct store *store, char out[INCARNATION_SIZE])
{
    struct error *error = owner_rows_read_incarnation(store, out);
    if (error || out[0])
        return error;
    error = owner_rows_make_incarnation(store);
    if (!error)
        error = owner_rows_read_incarnation(store, out);
    if (!error && !out[0])
        error = error_new(CODE_UNAVAILABLE, "the registry loses its data again and again");
    return error;
}

static struct error *
renew(struct owners *owners)
{
    struct owner_rows rows = {.store = owners->options.rows, .connection = owners->connection};
    struct error *error = find_or_make_incarnation(rows.store, rows.incarnation);
    if (error || owner_reads_is_in(&owners->reads, rows.incarnation))
        return error;
    owner_reads_set_incarnation(&owners->reads, "");
    error = owner_announce(&owners->options, &rows);
    if (!error)
        owner_reads_set_incarnation(&owners->reads, rows.incarnation);
    return error_wrap(error, "announce the volumes of connection %s", owners->connection);
}

struct error *
owners_renew(struct owners *owners)
{
    pthread_mutex_lock(&owners->renewing);
    struct error *error = renew(owners);
    pthread_mutex_unlock(&owners->renewing);
    return error;
}

/* ---- the interface ---- */

static struct error *
read_settled(struct owners *owners, const char *handle, struct owner_view *view,
             struct owner_row *out)
{
    return owner_reads_settled(&owners->reads, handle, view, out);
}

static struct error *
read_owner(void *context, const char *handle, struct owner *out)
{
    struct owner_view view;
    struct owner_row row;
    struct error *error = read_settled(context, handle, &view, &row);
    if (error)
        return error_wrap(error, "who owns volume %s is not known", handle);
    *out = row.owner;
    return NULL;
}

static struct error *
find_key(void *context, const char *handle, struct arena *arena, const char **key)
{
    struct owners *owners = context;
    struct owner_view view;
    struct error *error = owner_rows_check_handle(handle);
    if (!error)
        error = owner_reads_open(&owners->reads, &view);
    if (!error)
        error = owner_rows_find_key(&view.rows, handle, arena, key);
    return error ? error : owner_reads_check(&view);
}

static struct error *
read_changes(void *context, char out[OWNER_CHANGES_SIZE])
{
    struct owners *owners = context;
    struct owner_view view;
    uint64_t revision = 0;
    struct error *error = owner_reads_open(&owners->reads, &view);
    if (!error)
        error = owner_rows_read_told(&view.rows, &revision);
    if (!error)
        error = owner_reads_check(&view);
    if (!error)
        snprintf(out, OWNER_CHANGES_SIZE, "%s/%ju", view.rows.incarnation, (uintmax_t)revision);
    return error;
}

/* At epoch 0 the owner is the home, whatever its name. */
static bool
is_same(const struct owner *a, const struct owner *b)
{
    return a->epoch == b->epoch && (!a->epoch || !strcmp(a->node_id, b->node_id));
}

static struct error *
check_swap(const struct owner *from, const struct owner *to)
{
    if (to->epoch != from->epoch + 1 || !to->epoch)
        return error_new(CODE_INTERNAL, "a swap goes to the next epoch");
    return to->node_id[0] ? owner_rows_check_node_id(to->node_id) : NULL;
}

static struct error *
swap_owner(void *context, const char *handle, const struct owner *from, const struct owner *to)
{
    struct arena arena AUTO(arena_clear);
    struct owner_view view;
    struct owner_row row = {.revision = STORE_ABSENT};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = check_swap(from, to);
    if (!error)
        error = read_settled(context, handle, &view, &row);
    if (!error && is_same(&row.owner, from)) {
        struct owner next = *to;
        if (next.recovered_epoch < row.owner.recovered_epoch)
            next.recovered_epoch = row.owner.recovered_epoch;
        const struct store_change changes[] = {
            owner_rows_change(&view.rows, handle, &next, row.revision, &arena),
            owner_rows_tell(&view.rows, &arena)};
        size_t count = to->recovered_epoch == to->epoch ? 2 : 1;
        error = error_forgive(store_write(view.rows.store, changes, count, NULL), CODE_ABORTED);
    }
    return error_wrap(error, "change the owner of volume %s", handle);
}

/* The claims go first: without the row they would settle the volume again. */
static struct error *
remove_rows(const struct owner_view *view, const char *handle, const struct owner_row *row)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (row->revision == STORE_ABSENT)
        return NULL;
    if (!row->owner.epoch || row->owner.node_id[0])
        return error_new(CODE_FAILED_PRECONDITION, "it belongs to node %s",
                         row->owner.epoch ? row->owner.node_id : "that created it");
    struct error *error = owner_rows_remove_claims(&view->rows, handle);
    const struct store_change change =
        owner_rows_change(&view->rows, handle, NULL, row->revision, &arena);
    return error ? error : store_write(view->rows.store, &change, 1, NULL);
}

static struct error *
forget(void *context, const char *handle)
{
    struct owner_view view;
    struct owner_row row;
    struct error *error = read_settled(context, handle, &view, &row);
    if (!error)
        error = remove_rows(&view, handle, &row);
    if (!error)
        error = owner_reads_check(&view);
    return error_wrap(error, "forget the deleted volume %s", handle);
}

static struct error *
add_member(void *context, const char *node_id)
{
    struct owners *owners = context;
    pthread_mutex_lock(&owners->lock);
    bool is_there = name_set_has(&owners->members, node_id);
    pthread_mutex_unlock(&owners->lock);
    if (is_there)
        return NULL;
    struct error *error = owner_rows_check_node_id(node_id);
    if (!error)
        error = member_rows_add_own(owners->options.own, node_id);
    if (error)
        return error_wrap(error, "store the member %s", node_id);
    pthread_mutex_lock(&owners->lock);
    name_set_add(&owners->members, node_id);
    pthread_mutex_unlock(&owners->lock);
    return NULL;
}

/* Without those that are removed, but always with this node. */
static void
copy_ids(const struct owners *owners, const struct member_rows *members, struct arena *arena,
         const char *const **ids, size_t *count)
{
    const char **copies = arena_alloc(arena, (members->known.count + 1) * sizeof *copies);
    *count = 0;
    for (size_t i = 0; i < members->known.count; i++) {
        const char *id = members->known.names[i];
        if (!name_set_has(&members->removed, id) || !strcmp(id, owners->node_id))
            copies[(*count)++] = arena_string(arena, id);
    }
    *ids = copies;
}

static struct error *
list_members(void *context, struct arena *arena, const char *const **ids, size_t *count)
{
    struct owners *owners = context;
    struct member_rows members AUTO(member_rows_clear) = {0};
    struct owner_view view;
    struct error *error = owner_reads_open(&owners->reads, &view);
    if (!error)
        error = owner_reads_members(&owners->reads, &view, &members);
    if (!error)
        error = member_rows_list_own(owners->options.own, &members.known);
    if (!error)
        error = owner_reads_check(&view);
    if (error)
        return error_wrap(error, "who belongs to the cluster is not known");
    copy_ids(owners, &members, arena, ids, count);
    return NULL;
}

/* ---- for operators ---- */

struct error *
owners_remove_member(struct owners *owners, const char *node_id)
{
    struct error *error = owner_rows_check_node_id(node_id);
    if (!error && !strcmp(node_id, owners->node_id))
        error = error_new(CODE_FAILED_PRECONDITION, "it is this node: stop it, and ask another");
    if (!error)
        error = member_rows_remove(owners->options.rows, node_id);
    return error_wrap(error, "remove node %s from the cluster", node_id);
}

/* ---- for routers and doctors ---- */

struct error *
owners_peek(struct store *rows, const char *connection, const char *handle, struct owner *out)
{
    struct arena arena AUTO(arena_clear);
    struct owner_rows place = {.store = rows, .connection = connection};
    struct owner_row row = {.revision = STORE_ABSENT};
    char home[HANDLE_HOME_SIZE];
    const char *key = handle;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = owner_rows_check_handle(handle);
    if (!error)
        error = owner_rows_read_incarnation(rows, place.incarnation);
    if (!error && place.incarnation[0] && !handle_read_home(handle, home))
        error = owner_rows_find_key(&place, handle, &arena, &key);
    if (!error && place.incarnation[0])
        error = owner_rows_read(&place, key[0] ? key : handle, &row);
    *out = row.owner;
    return error;
}

static struct error *
copy_list(const struct store_list *list, size_t prefix_size, struct arena *arena,
          struct owner_list *out)
{
    struct error *error = NULL;
    out->entries = arena_alloc(arena, (list->count + 1) * sizeof *out->entries);
    for (size_t i = 0; !error && i < list->count; i++) {
        struct owner_entry *entry = &out->entries[out->count++];
        entry->handle = list->entries[i].key + prefix_size;
        error = owner_rows_unpack(&list->entries[i], &entry->owner);
    }
    out->has_more = list->has_more;
    return error;
}

struct error *
owners_list(struct owners *owners, const char *after, size_t limit, struct arena *arena,
            struct owner_list *out)
{
    struct owner_view view;
    struct store_list list;
    *out = (struct owner_list){0};
    struct error *error = after ? owner_rows_check_handle(after) : NULL;
    if (!error)
        error = owner_reads_open(&owners->reads, &view);
    if (error)
        return error;
    const char *prefix = owner_rows_prefix(&view.rows, arena);
    const char *last = after ? arena_print(arena, "%s%s", prefix, after) : NULL;
    error = store_list(view.rows.store, prefix, last, limit, arena, &list);
    if (!error)
        error = copy_list(&list, strlen(prefix), arena, out);
    return error ? error : owner_reads_check(&view);
}

/* ---- life ---- */

struct owners *
owners_new(const struct owners_options *options)
{
    struct owners *owners = memory_zeroed(sizeof *owners);
    owners->connection = memory_string(options->connection);
    owners->node_id = memory_string(options->node_id);
    owners->options = *options;
    owners->options.connection = owners->connection;
    owners->options.node_id = owners->node_id;
    owners->interface = (struct ownership){
        .read = read_owner,
        .find_key = find_key,
        .read_changes = read_changes,
        .swap = swap_owner,
        .forget = forget,
        .add_member = add_member,
        .members = list_members,
        .context = owners,
    };
    owner_reads_init(&owners->reads, options->rows, owners->connection, owners->node_id);
    pthread_mutex_init(&owners->renewing, NULL);
    pthread_mutex_init(&owners->lock, NULL);
    return owners;
}

void
owners_free(struct owners *owners)
{
    if (!owners)
        return;
    owner_reads_clear(&owners->reads);
    name_set_clear(&owners->members);
    pthread_mutex_destroy(&owners->renewing);
    pthread_mutex_destroy(&owners->lock);
    free(owners->connection);
    free(owners->node_id);
    free(owners);
}

const struct ownership *
owners_interface(struct owners *owners)
{
    return &owners->interface;
}
