/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the record that somebody has named: see export_page.h. */
#include <string.h>

#include "base/buffer.h"
#include "exports/export_page.h"

#define LEAST_PREFIX 4u
#define MOST_TOLD 8u

static struct error *
read_some(struct repository *repository, const struct export_query *query, struct arena *arena,
          struct export_list *out)
{
    const char *next;
    return export_page_read(repository, query, arena, out, &next);
}

/* None of them is taken silently: the newest may not be the one that is wanted. */
static struct error *
name_all(const struct export_list *list, const char *name)
{
    struct buffer ids AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < list->count && i < MOST_TOLD; i++)
        buffer_print(&ids, "%s%.12s of the volume %s", i ? ", " : "", list->items[i].id,
                     list->items[i].record->volume_name);
    if (list->count > MOST_TOLD)
        buffer_append_text(&ids, ", and more: see `skycap repository snapshots`");
    return error_new(
        CODE_INVALID_ARGUMENT,
        "the repository has several snapshots \"%s\"; give the id of one of them, newest "
        "first: %s",
        name, buffer_text(&ids));
}

static struct error *
find_named(struct repository *repository, const char *name, struct arena *arena,
           struct export_list *out)
{
    struct export_query query = {
        .name = name, .newest_first = true, .token = "", .limit = MOST_TOLD + 1};
    struct error *error = read_some(repository, &query, arena, out);
    return !error && out->count > 1 ? name_all(out, name) : error;
}

static struct error *
find_by_id(struct repository *repository, const char *id, struct arena *arena,
           struct export_list *out)
{
    struct export_query query = {.id = id, .token = "", .limit = 2};
    struct error *error = read_some(repository, &query, arena, out);
    if (!error && out->count > 1)
        error =
            error_new(CODE_INVALID_ARGUMENT,
                      "\"%s\" means several snapshots of the repository: give more of the id", id);
    return error;
}

struct error *
export_record_find(struct repository *repository, const char *text, struct arena *arena,
                   struct export_item *out)
{
    struct export_list found = {0};
    struct error *error = NULL;
    if (strlen(text) == REPOSITORY_NAME_BYTES - 1) /* a snapshot may have that for a name */
        error = find_by_id(repository, text, arena, &found);
    if (!error && !found.count)
        error = find_named(repository, text, arena, &found);
    if (!error && !found.count && strlen(text) >= LEAST_PREFIX)
        error = find_by_id(repository, text, arena, &found);
    if (!error && !found.count)
        error = error_new(CODE_NOT_FOUND, "the repository has no snapshot \"%s\"", text);
    if (!error)
        *out = found.items[0];
    return error;
}

struct error *
export_record_find_newest(struct repository *repository, struct arena *arena,
                          struct export_item *out)
{
    struct export_query query = {.newest_first = true, .token = "", .limit = 1};
    struct export_list found = {0};
    const char *next = "";
    struct error *error;
    do {
        query.token = next;
        error = export_page_read(repository, &query, arena, &found, &next);
    } while (!error && !found.count && next[0]); /* somebody has just removed the newest one */
    if (!error && !found.count)
        error = error_new(CODE_NOT_FOUND, "the repository has no snapshots");
    if (!error)
        *out = found.items[0];
    return error;
}
