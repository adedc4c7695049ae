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
    bool is_selected; /* by labels: another may be tried, and which it was must be remembered */
};

/*
 * INVALID_ARGUMENT tells what there is to choose from; UNAVAILABLE: which is the default one is not
 * known. `source` may be NULL: the connection that the content comes from.
 */
MUST_CHECK struct error *choice_make(const struct connection_set *set,
                                     const struct text_map *parameters, struct connection *source,
                                     struct arena *arena, struct choice *out);

/* By name; NULL: the default one. Errors as above. */
MUST_CHECK struct error *choice_of_name(const struct connection_set *set, const char *name,
                                        struct arena *arena, struct connection **out);

/*
 * The parameters as the driver is to see them: the file's, and over them those of the request
 * without the two that choose. Changes the request.
 */
void choice_merge_parameters(const struct connection *connection, ProtobufCMessage *request,
                             struct arena *arena);

#endif
