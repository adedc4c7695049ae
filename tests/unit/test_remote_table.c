/* SPDX-License-Identifier: Apache-2.0 */
/* src/cluster/remote_table.c: one remote for each member. */
#include "cluster/remote_table.h"

#include <unistd.h>

#include "check.h"

static struct remote *
get(struct remote_table *table, struct runtime *runtime, const char *node_id, const char *address)
{
    struct remote *remote = NULL;
    struct remote_options options = {.node_id = node_id, .address = address, .runtime = runtime};
    CHECK(!remote_table_get(table, &options, &remote));
    return remote;
}

static bool
has(struct remote_table *table, const char *node_id)
{
    struct remote *remote = remote_table_find(table, node_id);
    remote_release(remote);
    return remote != NULL;
}

static void
members_keep_theirs_until_they_are_removed(struct runtime *runtime)
{
    struct remote_table *table = remote_table_new();
    struct remote *a = get(table, runtime, "a", "127.0.0.1:1");
    struct remote *again = get(table, runtime, "a", "127.0.0.1:1");
    struct remote *b = get(table, runtime, "b", "127.0.0.1:2");
    struct remote *elsewhere = get(table, runtime, "a", "127.0.0.1:3");
    CHECK(a == again && a != elsewhere);
    remote_table_drop(table, "a");
    remote_table_drop(table, "none");
    CHECK(!has(table, "a") && has(table, "b"));
    CHECK_TEXT(remote_address(elsewhere), "127.0.0.1:3"); /* a call in progress has it still */
    remote_table_drop(table, "b");
    CHECK(!has(table, "b"));
    remote_table_stop(table);
    remote_table_free(table);
    remote_release(a);
    remote_release(again);
    remote_release(elsewhere);
    remote_release(b);
}

int
main(void)
{
    struct runtime *runtime;
    static const struct log quiet = {.level = LOG_ERROR, .fd = STDERR_FILENO};
    CHECK(!runtime_open(&(struct runtime_options){.log = &quiet}, &runtime));
    members_keep_theirs_until_they_are_removed(runtime);
    runtime_close(runtime);
    return check_report("remote table");
}
