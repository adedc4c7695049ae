/* SPDX-License-Identifier: Apache-2.0 */
/* A connection file on its way to become a connection, beside the connection in force. */
#ifndef CONNECTIONS_CONFIG_CANDIDATE_H
#define CONNECTIONS_CONFIG_CANDIDATE_H

#include "connections/config/connection.h"
#include "connections/config/directory.h"
#include "store/store.h"

struct candidate {
    const struct directory_file *file;
    const struct connection_slot *before; /* NULL: the name is new */
    struct arena arena;
    struct connection_spec *spec; /* NULL: the file is wrong */
    struct error *error;          /* why it cannot be used; NULL: it can */
};

/* Reads the file. */
void candidate_init(struct candidate *candidate, const struct directory_file *file,
                    const struct connection_slot *before);
void candidate_clear(struct candidate *candidate);

/* The connection of that name in force; NULL: there is none. */
struct connection *candidate_in_force(const struct candidate *candidate);

/* Is the file the one that is in force? */
bool candidate_is_unchanged(const struct candidate *candidate);

/*
 * Sets the error of those that conflict with each other on the node of that id, or with what the
 * store has of the name.
 */
void candidates_check(struct candidate *candidates, size_t count, const char *node_id,
                      struct store *store, struct arena *arena);

#endif
