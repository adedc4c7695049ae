/* SPDX-License-Identifier: Apache-2.0 */
/* A set of names. All zero is the empty set. */
#ifndef CLUSTER_NAME_SET_H
#define CLUSTER_NAME_SET_H

#include <stdbool.h>
#include <stddef.h>

struct name_set {
    char **names; /* sorted */
    size_t count;
    size_t capacity;
};

/* Adds a copy; no effect if it is there. */
void name_set_add(struct name_set *set, const char *name);
/* Adds copies of all. */
void name_set_add_all(struct name_set *set, const struct name_set *names);
bool name_set_has(const struct name_set *set, const char *name);
/* Frees everything; the set is empty then. */
void name_set_clear(struct name_set *set);

#endif
