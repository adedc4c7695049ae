/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection of a new volume: the one that the parameter `connection` names; else those whose
 * labels fit `connection-selector` ("media=ssd,tier!=cold"), the highest priority first; else the
 * one that the content comes from; else the default one.
 */
#ifndef CONNECTIONS_REQUEST_CHOICE_H
#define CONNECTIONS_REQUEST_CHOICE_H

#include "connections/config/connection.h"

#define CHOICE_NAME "connection"
#define CHOICE_SELECTOR "connection-selector"

struct choice {
    struct connection **items; /* in the set; at least one, to be tried in this order */
    size_t count;
    bool is_selected;    /* by labels: the next may be tried, and the choice must be stored */
    const char *lacking; /* nodes without the back end that is asked for, for errors; may be NULL */
};

/*
 * `source` is the connection that the content comes from; it may be NULL. INVALID_ARGUMENT lists
 * the connections. UNAVAILABLE: it is not known which connection is the default.
 */
MUST_CHECK struct error *choice_make(const struct connection_set *set,
                                     const struct text_map *parameters, struct connection *source,
                                     struct arena *arena, struct choice *out);

/* The connection of this name; NULL: the default. Errors as above. */
MUST_CHECK struct error *choice_of_name(const struct connection_set *set, const char *name,
                                        struct arena *arena, struct connection **out);

/*
 * Sets the parameters that the driver sees: those of the file, overridden by those of the request
 * except the two above.
 */
void choice_merge_parameters(const struct connection *connection, ProtobufCMessage *request,
                             struct arena *arena);

#endif
