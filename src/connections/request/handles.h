/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles that are too long. An id has at most 128 bytes, including the connection's name; a
 * third-party driver's handle may need all of them. The orchestrator gets such an object by a short
 * handle, "~" and 16 digits. The row `handle/ID` in the store holds the long one, until the object
 * has been deleted.
 *
 * Any thread but the loop's.
 */
#ifndef CONNECTIONS_REQUEST_HANDLES_H
#define CONNECTIONS_REQUEST_HANDLES_H

#include "connections/request/global_id.h"
#include "store/store.h"

/* The same for the same handle, in all versions: short handles are made of it. */
uint64_t handles_hash(const char *handle);

/* Must a row be read to know what the handle of an id stands for? */
bool handles_is_short(const char *handle);

/* Is a row needed for the id of this handle of a driver's? */
bool handles_needs_row(const char *connection, const char *handle);

/* What an answer says about the object that has a handle. */
enum handles_state {
    HANDLES_EXISTS,
    HANDLES_CREATED,     /* just now: its row survives a concurrent deletion of its predecessor */
    HANDLES_MAY_BE_GONE, /* it is the source of another object: no row is made for it */
};

/* The id for a driver's handle. Durable when it returns. */
MUST_CHECK struct error *handles_print_id(struct store *store, enum id_kind kind,
                                          const char *connection, const char *handle,
                                          enum handles_state state, struct arena *arena, char **id);

/*
 * Does the store know what a short handle stands for, or that it is deleted? If not the row was
 * never made, or is lost.
 */
MUST_CHECK struct error *handles_is_known(struct store *store, const char *id,
                                          const struct global_id *parts, struct arena *arena,
                                          bool *out);

/*
 * Can a short handle stand for this one of a driver's? Surely, or only if others with the same hash
 * were there first.
 */
enum handles_match { HANDLES_DIFFER, HANDLES_MATCH, HANDLES_MAY_MATCH };
enum handles_match handles_match(const struct global_id *parts, const char *handle);

/*
 * The driver's handle, of an id that was taken apart. NOT_FOUND: the short one was never given out,
 * or what it stands for is deleted.
 */
MUST_CHECK struct error *handles_read(struct store *store, const char *id,
                                      const struct global_id *parts, struct arena *arena,
                                      const char **out);

/* Rows as they are before a deletion, in an arena. */
struct handles_row {
    struct handles_row *next;
    const char *key;
    uint64_t revision;
    bool leaves_mark;
};

/*
 * Puts that of the id that has this short handle for `handle` before the others, if there is one.
 * `leaves_mark`: when it goes the store remembers that it was deleted, for 30 days at least,
 * because nobody else could tell.
 */
MUST_CHECK struct error *handles_find_row(struct store *store, enum id_kind kind,
                                          const char *connection, const char *short_handle,
                                          const char *handle, bool leaves_mark, struct arena *arena,
                                          struct handles_row **rows);

/*
 * What they stand for is deleted. Those that were written meanwhile stay: something of that handle
 * was made again.
 */
MUST_CHECK struct error *handles_forget(struct store *store, const struct handles_row *rows,
                                        struct arena *arena);

/* Removes the marks that are old enough. */
MUST_CHECK struct error *handles_drop_old_marks(struct store *store);

#endif
