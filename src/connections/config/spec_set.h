/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connection files that are right each by itself, but not beside each other: an id must lead to one
 * storage system, whatever else is there, and each storage system must have one name.
 */
#ifndef CONNECTIONS_CONFIG_SPEC_SET_H
#define CONNECTIONS_CONFIG_SPEC_SET_H

#include "connections/config/spec.h"

struct spec_set_file {
    const char *name;
    const struct connection_spec *spec; /* NULL: nothing is known but the name */
    bool is_in_force;                   /* already: of two with one server it stays */
};

/*
 * INVALID_ARGUMENT: what is wrong with this file because of another, which the message names.
 * Nothing is reached.
 */
MUST_CHECK struct error *spec_set_check(const struct spec_set_file *files, size_t count,
                                        size_t index);

#endif
