/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conflicts between connection files that are valid on their own. An id must lead to one storage
 * system, and each storage system must have one name.
 */
#ifndef CONNECTIONS_CONFIG_SPEC_SET_H
#define CONNECTIONS_CONFIG_SPEC_SET_H

#include "connections/config/spec.h"

struct spec_set_file {
    const char *name;
    const struct connection_spec *spec; /* NULL: only the name is known */
    bool is_in_force;                   /* of two files with the same server, this one stays */
};

/*
 * INVALID_ARGUMENT: the file conflicts with another, which the message names. `node_id` is that of
 * this node, or "". Opens nothing.
 */
MUST_CHECK struct error *spec_set_check(const struct spec_set_file *files, size_t count,
                                        size_t index, const char *node_id);

#endif
