/* SPDX-License-Identifier: Apache-2.0 */
/* What several handlers need: see controller.h. */
#include "csi/checks.h"
#include "csi/controller.h"
#include "csi/ids.h"
#include "node/health.h"
#include "volumes/volume.h"

#define PATIENCE_MS 30000 /* of a caller without a deadline */
#define SHORTEST_MARGIN_MS 50
#define LONGEST_MARGIN_MS 500

struct engine *
controller_engine(const struct call *call)
{
    return ((struct controller *)call_context(call))->engine;
}

uint64_t
controller_wait_ms(const struct call *call)
{
    uint64_t left = call_time_left(call);
    if (left == UINT64_MAX)
        return PATIENCE_MS;
    uint64_t left_ms = left / 1000000;
    uint64_t margin_ms = left_ms / 10;
    if (margin_ms < SHORTEST_MARGIN_MS)
        margin_ms = SHORTEST_MARGIN_MS;
    if (margin_ms > LONGEST_MARGIN_MS)
        margin_ms = LONGEST_MARGIN_MS;
    return left_ms > margin_ms ? left_ms - margin_ms : 0;
}

static struct error *
read_handle(const char *id, const char **handle)
{
    struct error *error = checks_id("volume_id", id);
    return error ? error : ids_find_handle(ID_VOLUME, id, handle);
}

struct error *
controller_find_volume(struct call *call, const char *id, volume_record **out)
{
    const char *handle;
    struct error *error = read_handle(id, &handle);
    return error ? error : volume_get(controller_engine(call), handle, call_arena(call), out);
}

struct error *
controller_find_shown(struct call *call, const char *id, volume_record **out)
{
    const char *handle;
    struct error *error = read_handle(id, &handle);
    return error ? error : volume_get_shown(controller_engine(call), handle, call_arena(call), out);
}

struct error *
controller_check_health(struct engine *engine, const volume_record *volume, struct arena *arena,
                        struct health_report *out)
{
    health_check_volume(engine, volume, arena, out);
    return health_check_uses(engine, volume, arena, out);
}
