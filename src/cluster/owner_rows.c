/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners and claims as rows of the cluster store: see owner_rows.h.
 *
 * A key contains the incarnation, so that a write that is late changes a row that nobody reads. The
 * id of a node is the last part of a key, because it may contain slashes; a handle may not.
 */
#include "cluster/owner_rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/backend.h"
#include "base/memory.h"
#include "message/message_bytes.h"
#include "proto/records.pb-c.h"
#include "store/registry_store.h"

#define INCARNATION "incarnation"
#define PAGE 256
#define LONGEST_CONNECTION 20

/* The longest key, that of a claim, fits into a registry. */
_Static_assert(sizeof "claim/" + INCARNATION_SIZE + LONGEST_CONNECTION + 1 + BACKEND_HANDLE_SIZE +
                       OWNER_NODE_SIZE <=
                   REGISTRY_STORE_MAX_KEY,
               "keys are too long");

struct error *
owner_rows_check_handle(const char *handle)
{
    size_t size = strnlen(handle, BACKEND_HANDLE_SIZE);
    if (size && size < BACKEND_HANDLE_SIZE && !strchr(handle, '/'))
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "\"%.64s\" cannot be the handle of a volume", handle);
}

struct error *
owner_rows_check_node_id(const char *node_id)
{
    size_t size = strnlen(node_id, OWNER_NODE_SIZE);
    if (size && size < OWNER_NODE_SIZE)
        return NULL;
    return error_new(CODE_INVALID_ARGUMENT, "the id of a node has 1 to %d bytes",
                     OWNER_NODE_SIZE - 1);
}

/* ---- incarnations ---- */

struct error *
owner_rows_read_incarnation(struct store *store, char out[INCARNATION_SIZE])
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    bool found;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    out[0] = '\0';
    struct error *error = store_find(store, INCARNATION, &arena, &entry, &found);
    if (error || !found)
        return error;
    const char *text = (const char *)entry.value;
    if (entry.value_size != INCARNATION_SIZE - 1 ||
        strspn(text, "0123456789abcdef") != INCARNATION_SIZE - 1)
        return error_new(CODE_DATA_LOSS, "the row \"" INCARNATION "\" in the registry is damaged: "
                                         "remove it, and the nodes announce their volumes again");
    memcpy(out, text, INCARNATION_SIZE);
    return NULL;
}

struct error *
owner_rows_make_incarnation(struct store *store)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[(INCARNATION_SIZE - 1) / 2], text[INCARNATION_SIZE - 1];
    while (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        if (errno != EINTR)
            return error_from_errno(errno, "getrandom");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)digits[i % 2 ? random[i / 2] & 15 : random[i / 2] >> 4];
    const struct store_change change = {INCARNATION, text, sizeof text, STORE_ABSENT};
    return error_forgive(store_write(store, &change, 1, NULL), CODE_ABORTED);
}

/* ---- many rows ---- */

struct error *
owner_rows_walk(struct store *store, const char *prefix, owner_rows_visit *visit, void *context)
{
    struct arena arenas[2]; /* the key at the end of one page is needed for the next */
    struct store_list list = {.has_more = true};
    const char *after = NULL;
    struct error *error = NULL;
    arena_init(&arenas[0], NULL, 0, SIZE_MAX);
    arena_init(&arenas[1], NULL, 0, SIZE_MAX);
    for (unsigned page = 0; list.has_more && !error; page ^= 1) {
        arena_clear(&arenas[page]);
        error = store_list(store, prefix, after, PAGE, &arenas[page], &list);
        for (size_t i = 0; !error && i < list.count; i++) {
            after = list.entries[i].key;
            error = visit(context, after + strlen(prefix), &list.entries[i]);
        }
    }
    arena_clear(&arenas[0]);
    arena_clear(&arenas[1]);
    return error;
}

struct error *
owner_rows_damaged(const struct store_entry *entry)
{
    return error_new(CODE_DATA_LOSS, "the row \"%s\" in the registry is damaged", entry->key);
}

/* ---- owners ---- */

char *
owner_rows_prefix(const struct owner_rows *rows, struct arena *arena)
{
    return arena_print(arena, "owner/%s/%s/", rows->incarnation, rows->connection);
}

static char *
owner_key(const struct owner_rows *rows, const char *handle, struct arena *arena)
{
    return arena_print(arena, "%s%s", owner_rows_prefix(rows, arena), handle);
}

struct error *
owner_rows_unpack(const struct store_entry *entry, struct owner *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const Skycap__Records__OwnerRecord *record =
        (const Skycap__Records__OwnerRecord *)message_bytes_unpack(
            &skycap__records__owner_record__descriptor, entry->value, entry->value_size, &arena);
    if (!record || strlen(record->node_id) >= OWNER_NODE_SIZE)
        return owner_rows_damaged(entry);
    *out = (struct owner){.epoch = record->epoch, .recovered_epoch = record->recovered_epoch};
    if (record->epoch)
        snprintf(out->node_id, sizeof out->node_id, "%s", record->node_id);
    return NULL;
}

struct error *
owner_rows_read(const struct owner_rows *rows, const char *handle, struct owner_row *out)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    bool found;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    *out = (struct owner_row){.revision = STORE_ABSENT};
    struct error *error =
        store_find(rows->store, owner_key(rows, handle, &arena), &arena, &entry, &found);
    if (error || !found)
        return error;
    out->revision = entry.revision;
    return owner_rows_unpack(&entry, &out->owner);
}

struct error *
owner_rows_find_key(const struct owner_rows *rows, const char *handle, struct arena *arena,
                    const char **key)
{
    const char *prefix = owner_rows_prefix(rows, arena);
    const char *mine = arena_print(arena, "%s%s@", prefix, handle);
    struct store_list list;
    *key = "";
    struct error *error = store_list(rows->store, mine, NULL, 2, arena, &list);
    if (error || !list.count)
        return error;
    *key = list.entries[0].key + strlen(prefix);
    if (list.count == 1)
        return NULL;
    return error_new(CODE_FAILED_PRECONDITION,
                     "there are several volumes \"%s\", from before their nodes joined the cluster",
                     handle);
}

static uint8_t *
pack_owner(const struct owner *owner, struct arena *arena, size_t *size)
{
    Skycap__Records__OwnerRecord record = SKYCAP__RECORDS__OWNER_RECORD__INIT;
    record.node_id = (char *)owner->node_id;
    record.epoch = owner->epoch;
    record.recovered_epoch = owner->recovered_epoch;
    return message_bytes_pack(&record.base, arena, size);
}

struct store_change
owner_rows_change(const struct owner_rows *rows, const char *handle, const struct owner *owner,
                  uint64_t expected, struct arena *arena)
{
    struct store_change change = {.key = owner_key(rows, handle, arena), .expected = expected};
    if (owner)
        change.value = pack_owner(owner, arena, &change.value_size);
    return change;
}

static char *
told_key(const struct owner_rows *rows, struct arena *arena)
{
    return arena_print(arena, "told/%s/%s", rows->incarnation, rows->connection);
}

struct store_change
owner_rows_tell(const struct owner_rows *rows, struct arena *arena)
{
    return (struct store_change){told_key(rows, arena), (const uint8_t *)"", 0, STORE_ANY};
}

struct error *
owner_rows_read_told(const struct owner_rows *rows, uint64_t *revision)
{
    struct arena arena AUTO(arena_clear);
    struct store_entry entry;
    bool found;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = store_find(rows->store, told_key(rows, &arena), &arena, &entry, &found);
    *revision = !error && found ? entry.revision : 0;
    return error;
}

/* ---- claims ---- */

/* Those of LEFT are apart: earlier versions would take them for MOVING. */
#define CLAIM "claim"
#define LEFT "left"

static char *
claim_prefix(const struct owner_rows *rows, const char *kind, struct arena *arena)
{
    return arena_print(arena, "%s/%s/%s/", kind, rows->incarnation, rows->connection);
}

static char *
claims_of(const struct owner_rows *rows, const char *kind, const char *handle, struct arena *arena)
{
    return arena_print(arena, "%s%s/", claim_prefix(rows, kind, arena), handle);
}

static struct store_change
left_claim(const struct owner_rows *rows, const char *node_id, const struct claim *claim,
           struct arena *arena)
{
    struct store_change change = {.expected = STORE_ANY};
    struct owner owner = {.epoch = claim->epoch, .recovered_epoch = claim->recovered_epoch};
    snprintf(owner.node_id, sizeof owner.node_id, "%s", claim->node_id);
    change.key = arena_print(arena, "%s%s", claims_of(rows, LEFT, claim->handle, arena), node_id);
    change.value = pack_owner(&owner, arena, &change.value_size);
    return change;
}

struct store_change
owner_rows_claim(const struct owner_rows *rows, const char *node_id, const struct claim *claim,
                 struct arena *arena)
{
    Skycap__Records__ClaimRecord record = SKYCAP__RECORDS__CLAIM_RECORD__INIT;
    if (claim->state == CLAIM_LEFT)
        return left_claim(rows, node_id, claim, arena);
    record.state = claim->state == CLAIM_INCOMING ? SKYCAP__RECORDS__CLAIM_RECORD__STATE__INCOMING
                                                  : SKYCAP__RECORDS__CLAIM_RECORD__STATE__MOVING;
    record.epoch = claim->epoch;
    record.recovered_epoch = claim->recovered_epoch;
    struct store_change change = {.expected = STORE_ANY};
    change.key = arena_print(arena, "%s%s", claims_of(rows, CLAIM, claim->handle, arena), node_id);
    change.value = message_bytes_pack(&record.base, arena, &change.value_size);
    return change;
}

static struct error *
add_claimed(void *context, const char *name, const struct store_entry *entry)
{
    char handle[BACKEND_HANDLE_SIZE];
    size_t size = strcspn(name, "/");
    if (!size || size >= sizeof handle)
        return owner_rows_damaged(entry);
    memcpy(handle, name, size);
    handle[size] = '\0';
    name_set_add(context, handle);
    return NULL;
}

struct error *
owner_rows_list_claimed(const struct owner_rows *rows, struct name_set *handles)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error =
        owner_rows_walk(rows->store, claim_prefix(rows, CLAIM, &arena), add_claimed, handles);
    return error ? error
                 : owner_rows_walk(rows->store, claim_prefix(rows, LEFT, &arena), add_claimed,
                                   handles);
}

/* At the same epoch the later kind wins. */
enum kind { KIND_MOVING, KIND_INCOMING, KIND_LEFT };

struct pick {
    struct owner owner;
    uint64_t epoch; /* of the claim; 0: there is none yet */
    enum kind kind;
};

/* The highest epoch wins. False: another claim does. */
static bool
wins(struct pick *pick, enum kind kind, uint64_t epoch)
{
    if (epoch < pick->epoch || (epoch == pick->epoch && kind <= pick->kind))
        return false;
    *pick = (struct pick){.epoch = epoch, .kind = kind};
    return true;
}

static struct error *
consider(void *context, const char *name, const struct store_entry *entry)
{
    struct pick *pick = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const Skycap__Records__ClaimRecord *record =
        (const Skycap__Records__ClaimRecord *)message_bytes_unpack(
            &skycap__records__claim_record__descriptor, entry->value, entry->value_size, &arena);
    if (!record || !record->epoch || strlen(name) >= OWNER_NODE_SIZE)
        return owner_rows_damaged(entry);
    bool is_incoming = record->state == SKYCAP__RECORDS__CLAIM_RECORD__STATE__INCOMING;
    if (!wins(pick, is_incoming ? KIND_INCOMING : KIND_MOVING, record->epoch))
        return NULL;
    pick->owner.epoch = record->epoch - !is_incoming;
    pick->owner.recovered_epoch = record->recovered_epoch;
    snprintf(pick->owner.node_id, sizeof pick->owner.node_id, "%s", name);
    return NULL;
}

/* All that have LEFT at one epoch name the same owner. */
static struct error *
consider_left(void *context, const char *name, const struct store_entry *entry)
{
    struct pick *pick = context;
    struct owner owner;
    (void)name;
    struct error *error = owner_rows_unpack(entry, &owner);
    if (!error && (!owner.epoch || !owner.node_id[0]))
        error = owner_rows_damaged(entry);
    if (!error && wins(pick, KIND_LEFT, owner.epoch))
        pick->owner = owner;
    return error;
}

/*
 * MOVING e+1 and INCOMING e+1 show that the registry had decided epoch e, and LEFT e that it had
 * decided that one. A LIVE node with an earlier epoch does not know that its volume was recovered.
 */
static bool
is_older(const struct owner_row *row, const struct pick *pick)
{
    uint64_t decided = pick->epoch - (pick->kind != KIND_LEFT);
    return row->revision == STORE_ABSENT || row->owner.epoch < decided;
}

struct error *
owner_rows_settle(const struct owner_rows *rows, const char *handle, const struct owner_row *row)
{
    struct arena arena AUTO(arena_clear);
    struct pick pick = {0};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error =
        owner_rows_walk(rows->store, claims_of(rows, CLAIM, handle, &arena), consider, &pick);
    if (!error)
        error = owner_rows_walk(rows->store, claims_of(rows, LEFT, handle, &arena), consider_left,
                                &pick);
    if (error || !pick.epoch || !is_older(row, &pick))
        return error;
    const struct store_change changes[] = {
        owner_rows_change(rows, handle, &pick.owner, row->revision, &arena),
        owner_rows_tell(rows, &arena)};
    return error_forgive(store_write(rows->store, changes, COUNT_OF(changes), NULL), CODE_ABORTED);
}

static struct error *
remove_row(void *context, const char *name, const struct store_entry *entry)
{
    (void)name;
    const struct store_change change = {.key = entry->key, .expected = STORE_ANY};
    return store_write(context, &change, 1, NULL);
}

struct error *
owner_rows_remove_claims(const struct owner_rows *rows, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = owner_rows_walk(rows->store, claims_of(rows, CLAIM, handle, &arena),
                                          remove_row, rows->store);
    return error ? error
                 : owner_rows_walk(rows->store, claims_of(rows, LEFT, handle, &arena), remove_row,
                                   rows->store);
}
