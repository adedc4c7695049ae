/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a repository in pages, in the order of the snapshots' times. Memory depends on the
 * size of a page alone, beside 32 bytes for each snapshot. Every page looks at all records: they
 * are named by their contents, not by their times.
 */
#ifndef EXPORTS_EXPORT_PAGE_H
#define EXPORTS_EXPORT_PAGE_H

#include "exports/export_record.h"

/*
 * Calls `each` for every record that can be read, in no order, until it gives an error. The record
 * is valid during the call.
 */
MUST_CHECK struct error *export_page_walk(struct repository *repository,
                                          struct error *(*each)(const struct export_item *item,
                                                                void *context),
                                          void *context);

/*
 * At most `limit` records behind the one that the token stands for; "": from the first. `*next` is
 * the token for the next page; "": this was the last. In the arena. ABORTED: it is no token.
 */
MUST_CHECK struct error *export_page_read(struct repository *repository, const char *token,
                                          size_t limit, struct arena *arena,
                                          struct export_list *out, const char **next);

#endif
