/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for copies, and cancelling them: see copy.h. */
#include "volumes/copy.h"

/* How long a delete waits for a cancelled copy to end. */
#define ABANDON_MS 5000

struct error *
copy_wait(struct engine *engine, const char *handle, uint64_t wait_ms, struct copy_state *out)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    operation_record *operation;
    struct error *error = ops_wait(engine->ops, handle, wait_ms, &arena, &operation);
    if (error)
        return error_wrap(error, "wait for the copy");
    switch (operation->state) {
    case OPERATION_STATE(RUNNING):
        *out = (struct copy_state){ops_percent(operation), operation->total > 0};
        return NULL;
    case OPERATION_STATE(SUCCEEDED):
        *out = (struct copy_state){100, true};
        return NULL;
    default:
        return error_new((enum code)operation->error_code, "%s", operation->error_message);
    }
}

struct error *
copy_abandon(struct engine *engine, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    operation_record *operation;
    struct error *error = ops_cancel(engine->ops, handle);
    if (!error)
        error = ops_wait(engine->ops, handle, ABANDON_MS, &arena, &operation);
    if (error) /* without an operation, nothing disturbs the delete */
        return error_wrap(error_forgive(error, CODE_NOT_FOUND), "cancel the copy");
    if (operation->state == OPERATION_STATE(RUNNING))
        return error_new(CODE_ABORTED, "its copy is being cancelled; try again");
    return NULL;
}
