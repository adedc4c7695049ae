/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of upgrades: the program as it is, but its store has the next version of the tables. */
#include "store/sqlite_internal.h"

const char *const sqlite_schema_steps[] = {
    sqlite_schema_tables,
    "CREATE TABLE of_the_next_version (name TEXT NOT NULL PRIMARY KEY) STRICT;",
};
const size_t sqlite_schema_step_count = COUNT_OF(sqlite_schema_steps);
