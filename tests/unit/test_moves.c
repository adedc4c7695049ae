/* SPDX-License-Identifier: Apache-2.0 */
/* Moves between two nodes whose calls the test makes fail: see move_pair.h. */
#include "move_pair.h"

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

int
main(void)
{
    a_move_brings_the_data();
    a_move_whose_source_is_full_is_given_up();
    a_move_that_has_begun_waits_for_no_other_operation();
    return check_report("moves");
}
