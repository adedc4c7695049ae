/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations that the page shows: those under way, and those that ended in the last minute. The
 * number is bounded. One thread puts, another prints.
 */
#ifndef WEB_OPERATION_TABLE_H
#define WEB_OPERATION_TABLE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "proto/skycap.pb-c.h"
#include "web/api_internal.h"

#define OPERATION_TABLE_MAX 1000

struct operation_table;

struct operation_table *operation_table_new(void);
void operation_table_free(struct operation_table *table);

/* Replaces what is known of the operation. If the table is full, one that has ended makes room. */
void operation_table_put(struct operation_table *table, const Skycap__V1__Operation *operation,
                         const struct api_subject *subject);

/* Its subject, with names in the arena. False: the operation is new, or no name is known. */
bool operation_table_find(struct operation_table *table, const char *id, struct arena *arena,
                          struct api_subject *out);

/* The operations are told again, as far as they still run. */
void operation_table_forget_running(struct operation_table *table);

/* Is there something new since the last print? */
bool operation_table_has_changed(struct operation_table *table);

/* {"operations":[...]}, oldest first. */
void operation_table_print(struct operation_table *table, struct buffer *out);

#endif
