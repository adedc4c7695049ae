/* SPDX-License-Identifier: Apache-2.0 */
/* skycap.v1.Mover: what nodes ask each other for a move. See volumes/move.h. */
#include "csi/mover.h"

#include <string.h>

#include "csi/checks.h"
#include "csi/controller.h"
#include "csi/transfer_send.h"
#include "message/message_bytes.h"
#include "volumes/handle.h"
#include "volumes/move.h"
#include "volumes/move_keys.h"
#include "volumes/move_rows.h"

static ProtobufCBinaryData
pack(const volume_record *record, struct arena *arena)
{
    ProtobufCBinaryData bytes;
    bytes.data = message_bytes_pack(&record->base, arena, &bytes.len);
    return bytes;
}

/* See volumes/move_keys.h. */
static struct error *
check_key(const char *key, struct arena *arena)
{
    char home[HANDLE_HOME_SIZE];
    const char *handle = arena_print(arena, "%.*s", (int)strcspn(key, "@"), key);
    if (strlen(key) >= BACKEND_HANDLE_SIZE || (strchr(key, '@') && !handle_read_key(key, home)))
        return error_new(CODE_INVALID_ARGUMENT, "handle is not the key of a volume");
    return transfer_check_handle("handle", handle);
}

/* ---- at the target ---- */

static struct error *
receive(struct call *call, const Skycap__V1__ReceiveVolumeRequest *request,
        Skycap__V1__MoveVolumeReply *reply)
{
    struct move_result result;
    struct move_order order = {request->handle, request->for_publish, request->bytes_per_second,
                               request->not_in_use};
    struct error *error = transfer_check_handle("handle", request->handle);
    if (!error)
        error = move_receive(controller_engine(call), &order, controller_wait_ms(call), &result);
    if (error)
        return error;
    reply->was_there = result.was_there;
    reply->unavailable_ms = result.unavailable_ms;
    return NULL;
}

/* ---- at the source ---- */

static struct error *
describe(struct call *call, const Skycap__V1__DescribeMoveRequest *request,
         Skycap__V1__DescribeMoveReply *reply)
{
    struct arena *arena = call_arena(call);
    struct move_offer offer;
    struct error *error = check_key(request->handle, arena);
    if (!error)
        error = move_describe(controller_engine(call), request->handle, arena, &offer);
    if (error)
        return error;
    reply->record = pack(offer.record, arena);
    reply->in_use = offer.is_in_use;
    reply->has_differences = offer.has_differences;
    reply->used_bytes = offer.used_bytes;
    return NULL;
}

static struct error *
begin(struct call *call, const Skycap__V1__BeginMoveRequest *request,
      Skycap__V1__BeginMoveReply *reply)
{
    struct arena *arena = call_arena(call);
    volume_record *record;
    struct error *error = check_key(request->handle, arena);
    if (!error)
        error = checks_node_id("to", request->to);
    if (!error)
        error = move_begin(controller_engine(call), request->handle, request->to, arena, &record);
    if (!error)
        reply->record = pack(record, arena);
    return error;
}

static bool
is_moving_at(struct engine *engine, const char *key, uint64_t epoch, struct arena *arena)
{
    struct row row;
    struct error *error AUTO(error_cleanup) = move_keys_get(engine, key, arena, &row);
    if (error)
        return false;
    const volume_record *volume = (const volume_record *)row.record;
    return volume->state == VOLUME_STATE(MOVING) && volume->epoch == epoch;
}

static struct error *
give_up(struct call *call, const Skycap__V1__GiveUpMoveRequest *request,
        Skycap__V1__GiveUpMoveReply *reply)
{
    (void)reply;
    struct engine *engine = controller_engine(call);
    enum move_outcome outcome;
    struct error *error = check_key(request->handle, call_arena(call));
    if (error || !is_moving_at(engine, request->handle, request->epoch, call_arena(call)))
        return error;
    error = move_decide(engine, request->handle, MOVE_ASK_GIVE_UP, &outcome);
    return error_forgive(error, CODE_NOT_FOUND);
}

static struct error *
settle(struct call *call, const Skycap__V1__SettleMoveRequest *request,
       Skycap__V1__SettleMoveReply *reply)
{
    (void)reply;
    enum move_outcome outcome;
    struct error *error = check_key(request->handle, call_arena(call));
    if (!error)
        error = move_decide(controller_engine(call), request->handle, MOVE_ASK_NOTHING, &outcome);
    return error_forgive(error, CODE_NOT_FOUND);
}

/* ---- at any node ---- */

static struct error *
ask(struct call *call, const Skycap__V1__AskMoveRequest *request, Skycap__V1__AskMoveReply *reply)
{
    struct move_answer answer;
    struct error *error = check_key(request->handle, call_arena(call));
    if (!error)
        error = move_ask(controller_engine(call), request->handle, request->is_gone, &answer);
    if (error)
        return error;
    reply->has_row = answer.has_row;
    reply->epoch = answer.epoch;
    reply->is_lost = answer.is_lost;
    reply->home = arena_string(call_arena(call), answer.home);
    return NULL;
}

/* ---- a lost node ---- */

static void
fill_copy(const struct move_copy *copy, Skycap__V1__FindCopyReply *reply)
{
    reply->snapshot = copy->snapshot->handle;
    reply->handle = copy->snapshot->source_handle;
    reply->taken_ns = copy->snapshot->created_ns;
    reply->owner = (char *)copy->owner;
    reply->is_lost = copy->is_lost;
    reply->epoch = copy->snapshot->epoch;
    reply->is_before_recovery = copy->is_before_recovery;
    reply->is_deleted = copy->is_deleted;
    reply->is_only_store_lost = copy->is_only_store_lost;
}

static struct error *
find_copy(struct call *call, const Skycap__V1__FindCopyRequest *request,
          Skycap__V1__FindCopyReply *reply)
{
    struct arena *arena = call_arena(call);
    struct move_copies copies;
    struct error *error = checks_name("volume", request->volume);
    if (!error)
        error = move_find_copies(controller_engine(call), request->volume, arena, &copies);
    if (error)
        return error;
    fill_copy(&copies.items[0], reply);
    reply->more = arena_alloc(arena, copies.count * sizeof *reply->more);
    for (size_t i = 1; i < copies.count; i++) {
        Skycap__V1__FindCopyReply *one = arena_alloc(arena, sizeof *one);
        skycap__v1__find_copy_reply__init(one);
        fill_copy(&copies.items[i], one);
        reply->more[reply->n_more++] = one;
    }
    return NULL;
}

static struct error *
recover(struct call *call, const Skycap__V1__RecoverCopyRequest *request,
        Skycap__V1__RecoverCopyReply *reply)
{
    (void)reply;
    struct error *error = transfer_check_handle("snapshot", request->snapshot);
    return error ? error : move_recover(controller_engine(call), request->snapshot);
}

const struct skycap_v1_mover mover_handlers = {
    .receive = {receive},
    .describe = {describe},
    .begin = {begin},
    .give_up = {give_up},
    .settle = {settle},
    .ask = {ask},
    .find_copy = {find_copy},
    .recover = {recover},
};
