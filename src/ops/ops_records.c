/* SPDX-License-Identifier: Apache-2.0 */
/* Records of operations: in the store, and as they are asked for. See ops.h. */
#include "message/message_bytes.h"
#include "ops/ops_internal.h"

#define WALK_PAGE 256

/* ---- time ---- */

uint64_t
ops_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int64_t
ops_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct timespec
ops_time_after(uint64_t ms)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_nsec += (long)(ms % 1000) * 1000000;
    time.tv_sec += (time_t)(ms / 1000) + time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

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
ops_read(struct ops *ops, const char *id, struct arena *arena, operation_record **out)
{
    struct store_entry entry;
    struct error *error = store_get(ops->options.store, ops_key(id, arena), arena, &entry);
    if (error && error->code == CODE_NOT_FOUND) {
        error_free(error);
        return error_new(CODE_NOT_FOUND, "there is no operation \"%s\"", id);
    }
    return error ? error : ops_unpack(&entry, arena, out);
}

operation_record *
ops_freshen(struct ops *ops, operation_record *record, struct arena *arena)
{
    if (record->state != OPERATION_STATE(RUNNING))
        return record;
    pthread_mutex_lock(&ops->lock);
    const struct operation *operation = ops_find(ops, record->id);
    if (operation)
        record = ops_copy_record(&operation->record, arena);
    pthread_mutex_unlock(&ops->lock);
    return record;
}

/* ---- many ---- */

/* A damaged record is no reason to leave the others alone. */
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
    struct arena arenas[2]; /* a page begins where the one before it ended */
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

struct error *
ops_list(struct ops *ops, const char *after, size_t limit, struct arena *arena,
         struct ops_page *out)
{
    struct store_list list;
    *out = (struct ops_page){0};
    ops_sweep_if_due(ops);
    struct error *error = store_list(ops->options.store, OPS_PREFIX,
                                     after ? ops_key(after, arena) : NULL, limit, arena, &list);
    if (error)
        return error;
    out->records = arena_alloc(arena, list.count * sizeof(void *));
    out->has_more = list.has_more;
    for (; out->count < list.count && !error; out->count++) {
        operation_record **record = &out->records[out->count];
        error = ops_unpack(&list.entries[out->count], arena, record);
        if (!error)
            *record = ops_freshen(ops, *record, arena);
    }
    return error;
}
