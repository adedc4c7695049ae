/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a repository in pages, in the order of the snapshots' times. Memory depends on the
 * size of a page alone, beside 32 bytes for each snapshot. Every page looks at all records: they
 * are named by their contents, not by their times.
 */
#ifndef EXPORTS_EXPORT_PAGE_H
#define EXPORTS_EXPORT_PAGE_H

#include "exports/export_record.h"

struct export_item {
    const char *id;
    export_record *record;
};

/*
 * Calls `each` for every record that can be read, in no order, until it gives an error. The record
 * is valid during the call.
 */
MUST_CHECK struct error *export_page_walk(struct repository *repository,
                                          struct error *(*each)(const struct export_item *item,
                                                                void *context),
                                          void *context);

struct export_query {
    const char *name; /* of the snapshots; NULL: any */
    const char *id;   /* how their ids begin; NULL: in any way */
    bool newest_first;
    const char *token; /* behind the record that it stands for; "": from the first */
    size_t limit;
};

struct export_list {
    struct export_item *items;
    size_t count;
};

/*
 * `*next` is the token for the next page; "": this was the last. A page may have less than `limit`
 * records. In the arena. ABORTED: it is no token.
 */
MUST_CHECK struct error *export_page_read(struct repository *repository,
                                          const struct export_query *query, struct arena *arena,
                                          struct export_list *out, const char **next);

/* ---- export_find.c ---- */

/*
 * The one that `text` names: its id, the beginning of it (at least 4 digits), or the name of the
 * snapshot. NOT_FOUND; INVALID_ARGUMENT: it means several.
 */
MUST_CHECK struct error *export_record_find(struct repository *repository, const char *text,
                                            struct arena *arena, struct export_item *out);

/* The newest one. NOT_FOUND: there is none. */
MUST_CHECK struct error *export_record_find_newest(struct repository *repository,
                                                   struct arena *arena, struct export_item *out);

#endif
