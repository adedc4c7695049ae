/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inline volumes: see ephemeral.h. Their row is an ordinary one, with a name that no CreateVolume
 * can use.
 */
#include "node/ephemeral.h"

#include <string.h>

#include "base/size_text.h"
#include "node/publish.h"
#include "volumes/spec.h"
#include "volumes/volume.h"

/* Names in requests have no control characters. */
#define NAME_PREFIX "\001"

static struct error *
read_context(const struct ephemeral_request *request, struct arena *arena,
             struct volume_request *out)
{
    struct error *error = NULL;
    for (size_t i = 0; i < request->context.count && !error; i++) {
        const struct text_pair *pair = &request->context.pairs[i];
        if (strcmp(pair->key, "size") == 0)
            error = size_text_parse(pair->value, &out->required_bytes);
        else if (!spec_is_sidecar_key(pair->key))
            text_map_set(&out->parameters, arena, pair->key, pair->value);
    }
    return error;
}

struct error *
ephemeral_publish(struct engine *engine, const struct ephemeral_request *request)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    if (capability_is_block(request->use.capability))
        return error_new(CODE_INVALID_ARGUMENT, "an ephemeral volume cannot be a block device");
    volume_capability *capability = (volume_capability *)request->use.capability;
    struct volume_request wanted = {
        .name = arena_print(&arena, NAME_PREFIX "%s", request->id),
        .capabilities = &capability,
        .capability_count = 1,
        .ephemeral = true,
    };
    volume_record *volume;
    const char *before = NULL;
    struct error *error = read_context(request, &arena, &wanted);
    if (!error)
        error = ephemeral_find(engine, request->id, &arena, &before);
    if (!error)
        error = volume_create(engine, &wanted, &arena, &volume);
    if (error)
        return error;
    error = publish_ephemeral(engine, volume->handle, &request->use);
    /*
     * Nobody unpublishes what was never published. If another request has published it meanwhile,
     * it stays.
     */
    if (error && !before)
        error_free(volume_delete(engine, volume->handle));
    return error;
}

struct error *
ephemeral_find(struct engine *engine, const char *id, struct arena *arena, const char **handle)
{
    struct row row;
    struct error *error =
        rows_find(engine, &volume_rows, arena_print(arena, NAME_PREFIX "%s", id), arena, &row);
    *handle = error || !row.record ? NULL : ((volume_record *)row.record)->handle;
    return error;
}

char *
ephemeral_id(const volume_record *volume)
{
    return volume->name + strlen(NAME_PREFIX);
}

struct error *
ephemeral_remove(struct engine *engine, const char *handle, const char *path)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct mount_list uses = {0};
    struct error *error = publish_undo(engine, handle, path);
    if (!error)
        error = mount_rows_list(engine, handle, &arena, &uses);
    return error || uses.count ? error : volume_delete(engine, handle);
}
