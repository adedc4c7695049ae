/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of copies across connections: see cross_copy.h. `copy/CONNECTION/NAME` is a copy that is
 * not finished; there are few, and lists look at them. `copied/CONNECTION/NAME` is a finished one.
 * `chosen/ID` leads from the volume to its row, for when it is deleted (choice_rows.h).
 */
#ifndef CONNECTIONS_COPY_CROSS_COPY_ROWS_H
#define CONNECTIONS_COPY_CROSS_COPY_ROWS_H

#include "connections/config/connection.h"
#include "connections/forward/router_state.h"
#include "proto/records.pb-c.h"

#define CROSS_COPY_UNFINISHED "copy/"
#define CROSS_COPY_FINISHED "copied/"

typedef Skycap__Records__CrossCopyRecord copy_record;

struct copy_row {
    copy_record *record; /* NULL: none. Without a volume it is only a plan */
    bool is_done;
    bool is_planned;   /* the row is a plan until the copy is started */
    uint64_t revision; /* of the row of an unfinished copy */
};

const char *cross_copy_rows_key(const char *prefix, const copy_record *record, struct arena *arena);

MUST_CHECK struct error *cross_copy_rows_unpack(const struct store_entry *entry,
                                                struct arena *arena, copy_record **out);

/* `*out` is NULL if there is no such row. */
MUST_CHECK struct error *cross_copy_rows_read(struct router *router, const char *key,
                                              struct arena *arena, copy_record **out,
                                              uint64_t *revision);

/* The copy of this name, by the connection's name or by an alias that is not another's name. */
MUST_CHECK struct error *cross_copy_rows_find(struct router *router,
                                              const struct connection_set *set,
                                              const struct connection *to, const char *name,
                                              struct arena *arena, struct copy_row *out);

/* Changes for store_write: the row itself, and the row `chosen/ID` that names it. */
struct store_change cross_copy_rows_change(const char *key, const copy_record *record,
                                           uint64_t expected, struct arena *arena);
struct store_change cross_copy_rows_index(const char *volume_id, const char *key,
                                          struct arena *arena);

/*
 * Sets the entries of unfinished targets and temporary copies to NULL: no client knows of them.
 * Entries may be NULL already.
 */
MUST_CHECK struct error *cross_copy_rows_hide(struct call *call, const struct connection_set *set,
                                              const struct connection *connection,
                                              const char *(*id_of)(const void *entry),
                                              void **entries, size_t count);

#endif
