/* SPDX-License-Identifier: Apache-2.0 */
/* Moves between two nodes whose calls the test makes fail: see move_pair.h. */
#include "move_pair.h"
#include "node/doctor.h"
#include "slow_backend.h"
#include "volumes/data_lock.h"

static void
a_move_brings_the_data(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    volume_record *volume = create(&from->bench, "data");
    write_file(&from->bench, volume, "hello");
    must(site_receive(to, volume->handle, PATIENCE_MS));
    CHECK_NUMBER(site_state(from, volume->handle), VOLUME_STATE(LEFT));
    CHECK_NUMBER(site_state(to, volume->handle), VOLUME_STATE(READY));
    check_file(&to->bench, volume, "hello");
    pair_close_both(&pair);
}

static void
a_volume_for_which_there_is_no_room_does_not_move(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    volume_record *volume = create(&from->bench, "data");
    pair.faults.used_bytes = UINT64_C(1) << 60;
    struct error *error = site_receive(to, volume->handle, PATIENCE_MS);
    CHECK(error && strstr(error->message, "\"data\" takes 1152921504606846976 bytes"));
    CHECK_NUMBER(take_code(error), CODE_RESOURCE_EXHAUSTED);
    CHECK_NUMBER(site_state(from, volume->handle), VOLUME_STATE(READY));
    CHECK_NUMBER(site_row(from, volume->handle)->epoch, 0);
    CHECK_NUMBER(site_state(to, volume->handle), -1);
    pair.faults.used_bytes = 0;
    must(site_receive(to, volume->handle, PATIENCE_MS));
    pair_close_both(&pair);
}

static struct error *
take_claim(void *context, const struct claim *claim)
{
    struct claim *out = context;
    *out = *claim;
    return NULL;
}

/* What the registry said of it before is said again to one that has lost its data. */
static void
a_node_knows_where_a_volume_went_also_after_a_move_back_that_failed(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    struct claim_source claims = move_claims(from->bench.engine);
    struct claim claim = {0};
    volume_record *volume = create(&from->bench, "data");
    must(site_receive(to, volume->handle, PATIENCE_MS));
    for (int i = 0; i < 2; i++) {
        must(claims.walk(claims.context, take_claim, &claim));
        CHECK_NUMBER(claim.state, CLAIM_LEFT);
        CHECK_NUMBER(claim.epoch, 1);
        CHECK_TEXT(site_row(from, volume->handle)->move->node_id, to->id);
        pair.faults.open = CODE_RESOURCE_EXHAUSTED;
        pair.faults.opens_that_end = UINT_MAX;
        if (!i)
            CHECK(take_code(site_receive(from, volume->handle, PATIENCE_MS)) != CODE_OK);
    }
    pair_close_both(&pair);
}

static void
a_source_tells_how_much_an_image_takes(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0];
    struct move_offer offer;
    Csi__V1__VolumeCapability__BlockVolume block = CSI__V1__VOLUME_CAPABILITY__BLOCK_VOLUME__INIT;
    char path[4096];
    from->bench.mount.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
    from->bench.mount.block = &block;
    struct volume_request request = request_for(&from->bench, "raw", 64 << 20);
    volume_record *volume;
    must(volume_create(from->bench.engine, &request, &from->bench.arena, &volume));
    struct data data = volume_data(volume);
    must(backend_path(from->bench.backend, &data, path, sizeof path));
    int image = open(path, O_WRONLY | O_CLOEXEC);
    static const char bytes[1 << 20] = {1};
    CHECK_NUMBER(pwrite(image, bytes, sizeof bytes, 0), sizeof bytes);
    CHECK(fsync(image) == 0 && close(image) == 0);
    must(move_describe(from->bench.engine, volume->handle, &from->bench.arena, &offer));
    CHECK(offer.used_bytes >= sizeof bytes && offer.used_bytes < 64 << 20);
    pair_close_both(&pair);
}

/* Nobody can use the volume until somebody makes room there, so it is given back. */
static void
a_move_whose_source_is_full_is_given_up(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    volume_record *volume = create(&from->bench, "data");
    pair.faults.open = CODE_RESOURCE_EXHAUSTED;
    pair.faults.opens_that_end = UINT_MAX;
    CHECK_NUMBER(take_code(site_receive(to, volume->handle, PATIENCE_MS)), CODE_RESOURCE_EXHAUSTED);
    CHECK(site_comes_to(from, volume->handle, VOLUME_STATE(READY)));
    CHECK_NUMBER(site_row(from, volume->handle)->epoch, 1);
    CHECK_NUMBER(site_state(to, volume->handle), -1);
    pair.faults.open = CODE_OK;
    must(site_receive(to, volume->handle, PATIENCE_MS));
    CHECK_NUMBER(site_row(to, volume->handle)->epoch, 2);
    pair_close_both(&pair);
}

/* The connection is well, and the disk of the source hangs: nobody can use the volume meanwhile. */
static void
a_stream_in_which_nothing_comes_is_begun_again(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    volume_record *volume = create(&from->bench, "data");
    write_file(&from->bench, volume, "hello");
    to->bench.engine->silence_ms = 100;
    pair.faults.silences = 2;
    must(site_receive(to, volume->handle, PATIENCE_MS));
    CHECK_NUMBER(pair.faults.silences, 0);
    check_file(&to->bench, volume, "hello");
    pair_close_both(&pair);
}

/* Long copies take all turns while the volume is unavailable. */
struct crowd {
    struct engine *engine;
    atomic_bool may_end;
    atomic_uint running;
};

static struct error *
copy_for_long(void *context, const struct progress *progress)
{
    struct crowd *crowd = context;
    crowd->running++;
    while (!crowd->may_end && !progress->cancelled(progress->context))
        usleep(10000);
    return NULL;
}

static void
let_crowd_in(void *context)
{
    struct crowd *crowd = context;
    char id[BACKEND_HANDLE_SIZE];
    if (crowd->running)
        return;
    for (unsigned i = 0; i < 4; i++) {
        handle_make(crowd->engine, id);
        must(ops_start(crowd->engine->ops, &(struct ops_spec){.id = id,
                                                              .kind = "test",
                                                              .subject = "crowd",
                                                              .units = "bytes",
                                                              .description = "a long copy",
                                                              .work = {crowd, copy_for_long}}));
    }
}

static void
a_move_that_has_begun_waits_for_no_other_operation(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    struct crowd crowd = {to->bench.engine};
    volume_record *volume = create(&from->bench, "data");
    pair.faults.open = CODE_UNAVAILABLE;
    pair.faults.opens_that_end = 5;
    pair.faults.on_open = let_crowd_in;
    pair.faults.context = &crowd;
    must(site_receive(to, volume->handle, PATIENCE_MS));
    CHECK_NUMBER(crowd.running, 4);
    crowd.may_end = true;
    pair_close_both(&pair);
}

static struct error *
publish(struct site *site, const char *handle, uint64_t wait_ms)
{
    struct move_result result;
    struct move_order order = {.handle = handle, .for_publish = true};
    return move_receive(site->bench.engine, &order, wait_ms, &result);
}

/* ABORTED would say that it comes. */
static void
a_publish_during_a_move_says_that_the_volume_is_in_use(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    struct text_pair follow = {"mobility", "follow"};
    struct text_map parameters = {&follow, 1, 1};
    volume_record *volume = create(&from->bench, "data");
    must(volume_modify(from->bench.engine, volume->handle, &parameters));
    must(volume_attach(from->bench.engine, volume->handle, from->id, false, &from->bench.mount, 0));
    CHECK_NUMBER(take_code(site_receive(to, volume->handle, 100)), CODE_ABORTED);
    CHECK_NUMBER(site_state(to, volume->handle), VOLUME_STATE(RECEIVING));
    CHECK_NUMBER(take_code(publish(to, volume->handle, 100)), CODE_FAILED_PRECONDITION);
    pair.faults.is_cut = true;
    CHECK_NUMBER(take_code(publish(to, volume->handle, 100)), CODE_ABORTED);
    pair.faults.is_cut = false;
    must(volume_detach(from->bench.engine, volume->handle, from->id));
    must(publish(to, volume->handle, PATIENCE_MS));
    CHECK_NUMBER(site_state(to, volume->handle), VOLUME_STATE(READY));
    pair_close_both(&pair);
}

/* Rule 1: each step holds the lock of the volume. */
struct holder {
    struct site *site;
    const char *name;
    struct name_lock *lock;
};

static void
hold_name(void *context)
{
    struct holder *holder = context;
    if (!holder->lock)
        must(name_lock_take(&holder->site->bench.engine->locks, "volume", holder->name,
                            &holder->lock));
}

static void
a_copy_is_not_claimed_while_the_volume_is_locked(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    volume_record *volume = create(&from->bench, "data");
    struct holder holder = {to, volume->name, NULL};
    pair.faults.on_open = hold_name;
    pair.faults.context = &holder;
    CHECK_NUMBER(take_code(site_receive(to, volume->handle, 1000)), CODE_ABORTED);
    CHECK(holder.lock != NULL);
    CHECK_NUMBER(site_state(to, volume->handle), VOLUME_STATE(RECEIVING));
    name_lock_release(&holder.lock);
    CHECK(site_comes_to(to, volume->handle, VOLUME_STATE(READY)));
    pair_close_both(&pair);
}

/* ---- deleting ---- */

static bool
has_data(struct site *site, const volume_record *volume)
{
    struct data data = volume_data(volume);
    char path[4096];
    return take_code(backend_path(site->bench.backend, &data, path, sizeof path)) == CODE_OK;
}

/* A stream that hangs has the data for longer than the deletion waits. */
static void
data_that_was_in_use_when_it_was_deleted_is_removed_later(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    struct name_lock *lock = NULL;
    volume_record *begun, *volume = create(&from->bench, "data");
    must(move_begin(from->bench.engine, volume->handle, to->id, &from->bench.arena, &begun));
    must(data_lock_shared(from->bench.engine, &volume_rows, volume->handle, &lock));
    must(volume_delete(from->bench.engine, volume->handle));
    CHECK_NUMBER(site_state(from, volume->handle), VOLUME_STATE(GONE));
    CHECK(has_data(from, volume));
    site_look_after(from);
    name_lock_release(&lock);
    for (unsigned waited_ms = 0; waited_ms < PATIENCE_MS && has_data(from, volume); waited_ms += 10)
        usleep(10000);
    CHECK(!has_data(from, volume));
    pair_close_both(&pair);
}

/* Nothing can end as long as a member is lost, so nobody is asked. The rows are announced. */
static void
deleted_volumes_wait_quietly_for_a_lost_member(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    for (unsigned i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "data-%u", i);
        volume_record *volume = create(&from->bench, name);
        must(site_receive(to, volume->handle, PATIENCE_MS));
        must(volume_delete(to->bench.engine, volume->handle));
        CHECK_NUMBER(site_state(to, volume->handle), VOLUME_STATE(GONE));
    }
    unsigned reads = pair.member_reads, asks = pair.asks;
    pair.faults.is_lost[0] = true;
    site_look_after(to);
    for (unsigned waited_ms = 0; waited_ms < PATIENCE_MS && pair.member_reads == reads;
         waited_ms += 10)
        usleep(10000);
    sleep(3);                              /* three rounds */
    CHECK(pair.member_reads - reads <= 2); /* one of them for the comparison with the registry */
    CHECK_NUMBER(pair.asks - asks, 0);
    CHECK(pair.renewals > 0);
    pair_close_both(&pair);
}

/* ---- what was recovered elsewhere ---- */

static const struct log silent = {.level = LOG_ERROR + 1, .fd = STDERR_FILENO};

static void
supersede(struct site *site, const char *handle)
{
    struct arena arena AUTO(arena_clear);
    struct held_volume held AUTO(held_release) = {0};
    struct owner owner = {.epoch = 1, .recovered_epoch = 1};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    snprintf(owner.node_id, sizeof owner.node_id, "%s", site->other->id);
    must(held_take_any(site->bench.engine, handle, 0, &arena, &held));
    must(move_supersede_held(site->bench.engine, &held, &owner, &arena));
}

/* A pool without room would be filled again and again. */
static void
a_copy_that_cannot_be_kept_is_not_made_again_at_once(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *site = &pair.sites[0];
    volume_record *volume = create(&site->bench, "data");
    site->bench.engine->log = &silent; /* it tells the operator of the recovery */
    slow_down(site->bench.backend);
    fails = true;
    supersede(site, volume->handle);
    site_look_after(site);
    CHECK(wait_until_begun(1));
    is_held = false;
    sleep(4); /* four rounds */
    CHECK_NUMBER(copies_begun, 1);
    fails = false;
    CHECK(site_comes_to(site, volume->handle, VOLUME_STATE(LEFT)));
    CHECK_NUMBER(copies_begun, 2);
    pair_close_both(&pair);
}

/* ---- recovering ---- */

/* As a copy that was asked for: it tells what its volume is. */
static snapshot_record *
make_copy(struct site *site, const volume_record *volume, const char *name)
{
    snapshot_record *snapshot;
    struct row row;
    struct text_map none = {0};
    must(snapshot_create(site->bench.engine, name, volume->handle, &none, PATIENCE_MS,
                         &site->bench.arena, &snapshot));
    must(rows_get(site->bench.engine, &snapshot_rows, snapshot->handle, &site->bench.arena, &row));
    snapshot = (snapshot_record *)row.record;
    snapshot->volume = (volume_record *)site_row(site, volume->handle);
    must(rows_update(site->bench.engine, &snapshot_rows, row.record, &row.revision));
    return snapshot;
}

/* After rule 12 neither the registry nor a member has a row of it. */
static void
a_deleted_volume_is_not_recovered(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    struct move_answer answer;
    struct move_copies found;
    volume_record *volume = create(&from->bench, "data");
    must(site_receive(to, volume->handle, PATIENCE_MS));
    snapshot_record *snapshot = make_copy(to, volume, "monday");
    must(site_receive(from, volume->handle, PATIENCE_MS));
    must(volume_delete(from->bench.engine, volume->handle));
    must(move_ask(to->bench.engine, volume->handle, true, &answer));
    must(pair_forget(from, volume->handle));
    pair.faults.is_lost[0] = true;
    must(move_find_copies(to->bench.engine, "data", &to->bench.arena, &found));
    CHECK_NUMBER(found.count, 1);
    CHECK(found.items[0].is_deleted);
    CHECK_NUMBER(take_code(move_recover(to->bench.engine, snapshot->handle)), CODE_NOT_FOUND);
    CHECK_NUMBER(site_state(to, volume->handle), -1);
    pair_close_both(&pair);
}

/* What happens on a node while the data of a recovery is there and has no row yet. */
static struct backend_ops interrupted_ops;
static struct error *(*plain_copy)(struct backend *, const struct data *, const struct data *,
                                   const struct data_settings *, const struct progress *);
static void (*after_copy)(void *context);
static void *after_copy_context;

static struct error *
copy_and_act(struct backend *backend, const struct data *from, const struct data *to,
             const struct data_settings *settings, const struct progress *progress)
{
    struct error *error = plain_copy(backend, from, to, settings, progress);
    after_copy(after_copy_context);
    return error;
}

static void
act_after_copies(struct site *site, void (*act)(void *context), void *context)
{
    interrupted_ops = *site->bench.backend->ops;
    plain_copy = interrupted_ops.copy;
    interrupted_ops.copy = copy_and_act;
    site->bench.backend->ops = &interrupted_ops;
    after_copy = act;
    after_copy_context = context;
}

/* A volume of node 1 at epoch 2, of which node 2 has a copy; node 1 is lost. */
static volume_record *
lose_a_volume(struct pair *pair, snapshot_record **copy)
{
    struct site *from = &pair->sites[0], *to = &pair->sites[1];
    volume_record *volume = create(&from->bench, "data");
    write_file(&from->bench, volume, "hello");
    must(site_receive(to, volume->handle, PATIENCE_MS));
    *copy = make_copy(to, volume, "monday");
    must(site_receive(from, volume->handle, PATIENCE_MS));
    pair->faults.is_lost[0] = true;
    return volume;
}

static void
sweep(void *context)
{
    struct engine *engine = ((struct site *)context)->bench.engine;
    uint64_t started_ms = engine->started_ms;
    engine->started_ms = handle_now_ms(engine) + 1; /* the volume is older than the process */
    must(doctor_sweep(engine));
    engine->started_ms = started_ms;
}

static void
the_sweep_leaves_a_volume_that_is_being_recovered(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *to = &pair.sites[1];
    snapshot_record *copy;
    volume_record *volume = lose_a_volume(&pair, &copy);
    act_after_copies(to, sweep, to);
    must(move_recover(to->bench.engine, copy->handle));
    CHECK_NUMBER(site_state(to, volume->handle), VOLUME_STATE(READY));
    check_file(&to->bench, volume, "hello");
    pair_close_both(&pair);
}

/* The deletion has ended meanwhile, with its row (rule 12): nobody could decide any more. */
static void
end_deletion(void *context)
{
    struct pair *pair = context;
    must(pair_forget(&pair->sites[1], pair->rows[0].key));
}

static void
a_volume_that_is_deleted_during_its_recovery_does_not_stay_undecided(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *to = &pair.sites[1];
    snapshot_record *copy;
    volume_record *volume = lose_a_volume(&pair, &copy);
    act_after_copies(to, end_deletion, &pair);
    CHECK_NUMBER(take_code(move_recover(to->bench.engine, copy->handle)), CODE_NOT_FOUND);
    CHECK_NUMBER(site_state(to, volume->handle), VOLUME_STATE(LEFT));
    CHECK(!has_data(to, volume));
    pair_close_both(&pair);
}

static struct row changed_row;

static void
change_row(void *context)
{
    struct site *site = context;
    site->pair->faults.on_read = NULL;
    must(
        rows_update(site->bench.engine, &snapshot_rows, changed_row.record, &changed_row.revision));
}

/* It is found complete; before it is locked it was deleted, and is arriving again. */
static void
a_copy_that_is_arriving_is_not_recovered_from(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *to = &pair.sites[1];
    snapshot_record *copy;
    volume_record *volume = lose_a_volume(&pair, &copy);
    struct row row;
    must(rows_get(to->bench.engine, &snapshot_rows, copy->handle, &to->bench.arena, &row));
    ((snapshot_record *)row.record)->state = SKYCAP__RECORDS__SNAPSHOT_RECORD__STATE__COPYING;
    changed_row = row;
    pair.faults.on_read = change_row;
    pair.faults.context = to;
    CHECK_NUMBER(take_code(move_recover(to->bench.engine, copy->handle)), CODE_ABORTED);
    CHECK_NUMBER(site_state(to, volume->handle), VOLUME_STATE(LEFT));
    pair_close_both(&pair);
}

/* Names are those of one node. An epoch of another volume does not make a snapshot newer. */
static void
volumes_of_one_name_are_told_apart(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    struct move_copies found;
    volume_record *moved = create(&from->bench, "data");
    must(site_receive(to, moved->handle, PATIENCE_MS));
    must(site_receive(from, moved->handle, PATIENCE_MS));
    must(site_receive(to, moved->handle, PATIENCE_MS));
    snapshot_record *of_moved = make_copy(to, moved, "monday");
    must(site_receive(from, moved->handle, PATIENCE_MS));

    /* The other one has this name on a third node. */
    volume_record *other = create(&to->bench, "other");
    snapshot_record *of_other = make_copy(to, other, "tuesday");
    struct row row;
    must(rows_get(to->bench.engine, &snapshot_rows, of_other->handle, &to->bench.arena, &row));
    ((snapshot_record *)row.record)->volume->name = "data";
    must(rows_update(to->bench.engine, &snapshot_rows, row.record, &row.revision));

    pair.faults.is_lost[0] = true;
    must(move_find_copies(to->bench.engine, "data", &to->bench.arena, &found));
    CHECK_NUMBER(found.count, 2);
    CHECK_TEXT(found.items[0].snapshot->handle, of_moved->handle);
    CHECK(found.items[0].is_lost);
    CHECK_TEXT(found.items[1].snapshot->handle, of_other->handle);
    CHECK(!found.items[1].is_lost);
    must(move_find_copies(to->bench.engine, other->handle, &to->bench.arena, &found));
    CHECK_NUMBER(found.count, 1);
    CHECK_TEXT(found.items[0].snapshot->handle, of_other->handle);
    pair_close_both(&pair);
}

/* ---- a store that was lost ---- */

/* A volume of node 1 at epoch 2; node 2 has a copy of what it was at epoch 1. */
static volume_record *
move_there_and_back(struct pair *pair, snapshot_record **copy)
{
    volume_record *volume = lose_a_volume(pair, copy);
    pair->faults.is_lost[0] = false;
    return volume;
}

static void
lose_store(struct site *site, const volume_record *volume)
{
    struct data data = volume_data(volume);
    must(move_rows_delete(site->bench.engine, site_row(site, volume->handle), &site->bench.arena));
    must(backend_remove(site->bench.backend, &data));
}

static void
compare_with_registry(struct site *site)
{
    bool is_complete;
    site->bench.engine->log = &silent; /* it tells the operator of lost volumes */
    must(move_reconcile(site->bench.engine, &is_complete));
    CHECK(is_complete);
}

static void
a_volume_of_a_lost_store_is_recovered_while_its_node_is_up(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    snapshot_record *copy;
    volume_record *shown, *volume = move_there_and_back(&pair, &copy);
    CHECK_NUMBER(take_code(move_recover(to->bench.engine, copy->handle)), CODE_FAILED_PRECONDITION);
    lose_store(from, volume);
    compare_with_registry(from);
    CHECK_NUMBER(site_state(from, volume->handle), VOLUME_STATE(LOST));
    CHECK_NUMBER(site_row(from, volume->handle)->epoch, 2);
    CHECK_NUMBER(
        take_code(volume_get(from->bench.engine, volume->handle, &from->bench.arena, &shown)),
        CODE_DATA_LOSS);
    must(volume_get_shown(from->bench.engine, volume->handle, &from->bench.arena, &shown));
    CHECK_NUMBER(take_code(site_receive(to, volume->handle, PATIENCE_MS)), CODE_DATA_LOSS);
    must(move_recover(to->bench.engine, copy->handle));
    check_file(&to->bench, volume, "hello");
    CHECK_NUMBER(site_row(to, volume->handle)->epoch, 3);
    compare_with_registry(from);
    CHECK_NUMBER(site_state(from, volume->handle), VOLUME_STATE(LEFT));
    pair_close_both(&pair);
}

static void
a_volume_of_a_lost_store_can_be_deleted(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    struct move_copies found;
    snapshot_record *copy;
    volume_record *volume = move_there_and_back(&pair, &copy);
    lose_store(from, volume);
    compare_with_registry(from);
    must(volume_delete(from->bench.engine, volume->handle));
    CHECK_NUMBER(site_state(from, volume->handle), VOLUME_STATE(GONE));
    must(move_find_copies(to->bench.engine, "data", &to->bench.arena, &found));
    CHECK(found.items[0].is_deleted);
    pair_close_both(&pair);
}

/* Otherwise calls for it, which go to its home first, would hear that it does not exist. */
static void
a_home_whose_store_was_lost_knows_where_its_volumes_are(void)
{
    struct pair pair;
    pair_open_both(&pair);
    struct site *from = &pair.sites[0], *to = &pair.sites[1];
    volume_record *volume = create(&from->bench, "data");
    must(site_receive(to, volume->handle, PATIENCE_MS));
    lose_store(from, volume);
    from->bench.engine->knows_its_volumes = false;
    CHECK_NUMBER(take_code(volume_delete(from->bench.engine, volume->handle)), CODE_UNAVAILABLE);
    compare_with_registry(from);
    CHECK_NUMBER(site_state(from, volume->handle), VOLUME_STATE(LEFT));
    CHECK_NUMBER(take_code(volume_delete(from->bench.engine, volume->handle)), CODE_UNAVAILABLE);
    must(volume_delete(from->bench.engine, "01m7tymg4za97yk1ctv2x9v7rdwfwbk"));
    pair_close_both(&pair);
}

int
main(void)
{
    a_move_brings_the_data();
    a_volume_for_which_there_is_no_room_does_not_move();
    a_node_knows_where_a_volume_went_also_after_a_move_back_that_failed();
    a_source_tells_how_much_an_image_takes();
    a_move_whose_source_is_full_is_given_up();
    a_stream_in_which_nothing_comes_is_begun_again();
    a_move_that_has_begun_waits_for_no_other_operation();
    a_publish_during_a_move_says_that_the_volume_is_in_use();
    a_copy_is_not_claimed_while_the_volume_is_locked();
    data_that_was_in_use_when_it_was_deleted_is_removed_later();
    deleted_volumes_wait_quietly_for_a_lost_member();
    a_copy_that_cannot_be_kept_is_not_made_again_at_once();
    a_deleted_volume_is_not_recovered();
    the_sweep_leaves_a_volume_that_is_being_recovered();
    a_volume_that_is_deleted_during_its_recovery_does_not_stay_undecided();
    a_copy_that_is_arriving_is_not_recovered_from();
    volumes_of_one_name_are_told_apart();
    a_volume_of_a_lost_store_is_recovered_while_its_node_is_up();
    a_volume_of_a_lost_store_can_be_deleted();
    a_home_whose_store_was_lost_knows_where_its_volumes_are();
    return check_report("moves");
}
