/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds drivers whose lists never end: one that repeats its tokens, in a circle of any length, or
 * gives new ones for ever. (Brent's algorithm: it keeps one token, and needs at most three times
 * the pages of a circle to notice it.)
 */
#ifndef CONNECTIONS_FORWARD_LIST_END_H
#define CONNECTIONS_FORWARD_LIST_END_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LIST_END_MAX_PAGES 100000

struct list_end {
    const char *connection; /* its name */
    uint64_t kept;          /* hash of a token that was read before */
    size_t pages;
    size_t keep_at; /* pages, when the next token is kept */
};

/* `token` is that of the first page that is read. */
void list_end_init(struct list_end *out, const char *connection, const char *token);

/* Call with the token of each next page ("": there is none). INTERNAL: the list does not end. */
MUST_CHECK struct error *list_end_check(struct list_end *end, const char *token);

/* The error, for a caller that has another reason to believe it. */
struct error *list_end_never(const struct list_end *end);

#endif
