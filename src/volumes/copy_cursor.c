/* SPDX-License-Identifier: Apache-2.0 */
/* The cursor of a copy: see copy_cursor.h. */
#include "volumes/copy_cursor.h"

#include <string.h>

#include "message/message_bytes.h"
#include "ops/ops.h"

typedef Skycap__Records__CopyCursor cursor_record;

void
copy_cursor_read(struct copy_cursor *cursor, const operation_record *operation,
                 const struct data *from)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    const char *boot_id = cursor->engine->boot_id;
    const cursor_record *record = (const cursor_record *)message_bytes_unpack(
        &skycap__records__copy_cursor__descriptor, operation->cursor.data, operation->cursor.len,
        &arena);
    if (!record || !operation->cursor.len)
        return;
    bool is_same_boot = boot_id[0] && strcmp(record->boot_id, boot_id) == 0;
    /* After a power failure a volume may have newer data than its ctime tells. */
    cursor->has_position =
        is_same_boot || (from->kind == KIND_IMAGE && from->role == ROLE_SNAPSHOT);
    cursor->position = (struct copy_position){record->offset, record->done_bytes,
                                              record->source_inode, record->source_changed_ns};
}

static struct error *
write_cursor(const struct copy_cursor *cursor, const struct copy_position *position)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    cursor_record record = SKYCAP__RECORDS__COPY_CURSOR__INIT;
    size_t size;
    if (!position)
        return ops_save_cursor(cursor->progress, NULL, 0);
    record.offset = position->offset;
    record.done_bytes = position->done_bytes;
    record.source_inode = position->source_inode;
    record.source_changed_ns = position->source_changed_ns;
    record.boot_id = (char *)cursor->engine->boot_id;
    uint8_t *bytes = message_bytes_pack(&record.base, &arena, &size);
    return ops_save_cursor(cursor->progress, bytes, size);
}

/*
 * If a position cannot be saved, the one before is good as well. If one cannot be forgotten, the
 * copy must fail: that position is not true for what is made next.
 */
static struct error *
save(void *context, const struct copy_position *position)
{
    const struct copy_cursor *cursor = context;
    struct error *error = write_cursor(cursor, position);
    if (!error || !position)
        return error_wrap(error, "forget where the copy was");
    log_debug(cursor->engine->log, "the position of a copy could not be saved",
              LOG_TEXT("error", error->message));
    error_free(error);
    return NULL;
}

static void
report(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    const struct progress *progress = ((struct copy_cursor *)context)->progress;
    progress->report(progress->context, done_bytes, total_bytes);
}

static bool
is_cancelled(void *context)
{
    const struct progress *progress = ((struct copy_cursor *)context)->progress;
    return progress->cancelled(progress->context);
}

static void
rest(void *context, uint32_t ms)
{
    progress_rest(((struct copy_cursor *)context)->progress, ms);
}

struct progress
copy_cursor_progress(struct copy_cursor *cursor, const struct data *from,
                     const struct progress *progress)
{
    bool goes_on = from->kind == KIND_IMAGE || from->role == ROLE_SNAPSHOT;
    cursor->progress = progress;
    return (struct progress){.report = report,
                             .cancelled = is_cancelled,
                             .context = cursor,
                             .rest = rest,
                             .save = goes_on ? save : NULL,
                             .position =
                                 goes_on && cursor->has_position ? &cursor->position : NULL};
}
