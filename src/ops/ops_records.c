/* SPDX-License-Identifier: Apache-2.0 */
/* Records of operations in the store. */
#include "message/message_bytes.h"
#include "ops/ops_internal.h"

#define WALK_PAGE 256

/* ---- one record ---- */

char *
ops_key(const char *id, struct arena *arena)
{
    return arena_print(arena, OPS_PREFIX "%s", id);
}

operation_record *
ops_copy_record(const operation_record *record, struct arena *arena)
{
    operation_record *copy = arena_alloc(arena, sizeof *copy);
    *copy = *record;
    copy->id = arena_string(arena, record->id);
    copy->kind = arena_string(arena, record->kind);
    copy->subject = arena_string(arena, record->subject);
    copy->units = arena_string(arena, record->units);
    copy->description = arena_string(arena, record->description);
    copy->error_message = arena_string(arena, record->error_message);
    copy->result = arena_string(arena, record->result);
    copy->cursor.data = (uint8_t *)arena_copy(arena, record->cursor.data, record->cursor.len);
    return copy;
}

struct store_change
ops_change(const operation_record *record, struct arena *arena)
{
    size_t size;
    uint8_t *bytes = message_bytes_pack(&record->base, arena, &size);
    return (struct store_change){ops_key(record->id, arena), bytes, size, STORE_ANY};
}

struct error *
ops_unpack(const struct store_entry *entry, struct arena *arena, operation_record **out)
{
    *out = (operation_record *)message_bytes_unpack(&skycap__records__operation_record__descriptor,
                                                    entry->value, entry->value_size, arena);
    if (*out)
        return NULL;
    return error_new(CODE_DATA_LOSS, "the record %s is damaged: run `skycap doctor`", entry->key);
}

struct error *
ops_read(struct ops *ops, const char *id, struct arena *arena, operation_record **out,
         uint64_t *revision)
{
    struct store_entry entry;
    struct error *error = store_get(ops->options.store, ops_key(id, arena), arena, &entry);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return error_new(CODE_NOT_FOUND, "there is no operation \"%s\"", id);
    }
    if (!error && revision)
        *revision = entry.revision;
    return error ? error : ops_unpack(&entry, arena, out);
}

/* ---- many ---- */

/* Skips damaged records. */
static struct error *
visit_page(struct ops *ops, const struct store_list *list, ops_visit *visit, void *context,
           struct arena *arena)
{
    for (size_t i = 0; i < list->count; i++) {
        operation_record *record;
        struct error *error = ops_unpack(&list->entries[i], arena, &record);
        if (error)
            log_error(ops->options.log, error->message);
        error_free(error);
        error = record ? visit(context, &list->entries[i], record) : NULL;
        if (error)
            return error;
    }
    return NULL;
}

struct error *
ops_walk(struct ops *ops, ops_visit *visit, void *context)
{
    struct arena arenas[2]; /* the key at the end of one page is needed for the next */
    struct store_list list = {.has_more = true};
    const char *after = NULL;
    struct error *error = NULL;
    arena_init(&arenas[0], NULL, 0, SIZE_MAX);
    arena_init(&arenas[1], NULL, 0, SIZE_MAX);
    for (unsigned i = 0; list.has_more && !error; i ^= 1) {
        arena_clear(&arenas[i]);
        error = store_list(ops->options.store, OPS_PREFIX, after, WALK_PAGE, &arenas[i], &list);
        if (!error)
            error = visit_page(ops, &list, visit, context, &arenas[i]);
        if (!error && list.count)
            after = list.entries[list.count - 1].key;
    }
    arena_clear(&arenas[0]);
    arena_clear(&arenas[1]);
    return error;
}

/* A state that a newer version has added is none of an end: the record stays for that version. */
bool
ops_has_ended(const operation_record *record)
{
    return record->state == OPERATION_STATE(SUCCEEDED) ||
           record->state == OPERATION_STATE(FAILED) || record->state == OPERATION_STATE(CANCELLED);
}

unsigned
ops_percent(const operation_record *operation)
{
    if (operation->state == OPERATION_STATE(SUCCEEDED))
        return 100;
    if (operation->total <= 0 || operation->done <= 0)
        return 0;
    double part = (double)operation->done * 100 / (double)operation->total;
    return part < 99 ? (unsigned)part : 99;
}
