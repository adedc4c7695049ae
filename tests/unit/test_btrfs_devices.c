/* SPDX-License-Identifier: Apache-2.0 */
/* src/backends/btrfs_devices.c: what the status file of a scrub says. */
#include "backends/btrfs_devices.h"

#include "check.h"

#define HEAD "scrub status:1\n"
#define DONE                                                                                       \
    "5a0c:1|csum_errors:0|t_start:1700000500|t_resumed:0|duration:9|canceled:0|finished:1\n"
#define DONE_EARLIER "5a0c:2|t_start:1700000400|canceled:0|finished:1\n"
#define CANCELLED "5a0c:2|t_start:1700000400|canceled:1|finished:1\n"
#define RUNNING "5a0c:2|t_start:1700000400|canceled:0|finished:0\n"

static int64_t
read_status(const char *text)
{
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", text);
    return btrfs_devices_read_status(copy);
}

static void
a_complete_scrub_counts_from_its_first_start(void)
{
    CHECK_NUMBER(read_status(HEAD DONE), 1700000500);
    CHECK_NUMBER(read_status(HEAD DONE DONE_EARLIER), 1700000400);
}

static void
a_scrub_that_is_not_complete_on_all_devices_does_not_count(void)
{
    CHECK_NUMBER(read_status(HEAD DONE CANCELLED), 0);
    CHECK_NUMBER(read_status(HEAD DONE RUNNING), 0);
}

static void
another_text_says_nothing(void)
{
    CHECK_NUMBER(read_status(""), 0);
    CHECK_NUMBER(read_status(HEAD), 0);
    CHECK_NUMBER(read_status("scrub status:2\n" DONE), 0);
    CHECK_NUMBER(read_status(HEAD "|||:\n"), 0);
    CHECK_NUMBER(read_status(HEAD "t_start:-5|finished:1\n"), 0);
}

int
main(void)
{
    a_complete_scrub_counts_from_its_first_start();
    a_scrub_that_is_not_complete_on_all_devices_does_not_count();
    another_text_says_nothing();
    return check_report("test_btrfs_devices");
}
