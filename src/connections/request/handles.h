/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that are too long for an id. An id has at most 128 bytes, including the connection's
 * name, and a third-party driver's handle may need all of them. Such an id contains a short handle,
 * "~" and 16 digits. The row `handle/ID` in the store holds the long one until the object is
 * deleted.
 *
 * Any thread but the loop's.
 */
#ifndef CONNECTIONS_REQUEST_HANDLES_H
#define CONNECTIONS_REQUEST_HANDLES_H

#include "connections/request/global_id.h"
#include "store/store.h"

/* Is it a short handle, for which a row must be read? */
bool handles_is_short(const char *handle);

/* Does the id of this handle of a driver need a row? */
bool handles_needs_row(const char *connection, const char *handle);

/* What an answer says about the object of a handle. */
enum handles_state {
    HANDLES_EXISTS,
    HANDLES_CREATED,     /* its row must survive the concurrent deletion of a predecessor */
    HANDLES_MAY_BE_GONE, /* the source of another object: it gets no new row */
};

/* The id for a driver's handle. Durable when it returns. */
MUST_CHECK struct error *handles_print_id(struct store *store, enum id_kind kind,
                                          const char *connection, const char *handle,
                                          enum handles_state state, struct arena *arena, char **id);

/* Does the store have the row of a short handle, or know that it is deleted? */
MUST_CHECK struct error *handles_is_known(struct store *store, const char *id,
                                          const struct global_id *parts, struct arena *arena,
                                          bool *out);

/* Can the short handle stand for this one? MAY: only if others with the same hash came first. */
enum handles_match { HANDLES_DIFFER, HANDLES_MATCH, HANDLES_MAY_MATCH };
enum handles_match handles_match(const struct global_id *parts, const char *handle);

/* The driver's handle of a parsed id. NOT_FOUND: the short one was never issued, or is deleted. */
MUST_CHECK struct error *handles_read(struct store *store, const char *id,
                                      const struct global_id *parts, struct arena *arena,
                                      const char **out);

/* The rows of an object that is about to be deleted. */
struct handles_row {
    struct handles_row *next;
    const char *key;
    uint64_t revision;
    bool leaves_mark;
};

/*
 * Prepends the row of `short_handle`, if it stands for `handle`. `leaves_mark`: the store remembers
 * the deletion for 30 days, because the driver cannot list what it has.
 */
MUST_CHECK struct error *handles_find_row(struct store *store, enum id_kind kind,
                                          const char *connection, const char *short_handle,
                                          const char *handle, bool leaves_mark, struct arena *arena,
                                          struct handles_row **rows);

/* After the deletion: deletes the rows, except those that a new object has rewritten meanwhile. */
MUST_CHECK struct error *handles_forget(struct store *store, const struct handles_row *rows,
                                        struct arena *arena);

/* Removes the marks that are old enough. */
MUST_CHECK struct error *handles_drop_old_marks(struct store *store);

#endif
