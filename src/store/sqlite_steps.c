/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from each version of the tables to the next: see sqlite_internal.h. */
#include "store/sqlite_internal.h"

const char *const sqlite_schema_steps[] = {sqlite_schema_tables};
const size_t sqlite_schema_step_count = COUNT_OF(sqlite_schema_steps);
