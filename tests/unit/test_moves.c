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

int
main(void)
{
    a_move_brings_the_data();
    a_move_whose_source_is_full_is_given_up();
    return check_report("moves");
}
