/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody may have meant: the name that is nearest to a mistyped one. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

/* Initialized to {.wanted = ...}; each candidate is passed once. */
struct nearest {
    const char *wanted;
    const char *name; /* the best one so far; NULL: none is near enough */
    unsigned distance;
};

/*
 * Near enough is a name that `wanted` is the beginning of, or that differs in one letter in three:
 * missing, added, wrong, or swapped with its neighbour.
 */
void nearest_try(struct nearest *nearest, const char *name);

#endif
