/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of records: see export_page.h. */
#include "exports/export_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* ---- walking ---- */

struct walking {
    struct repository *repository;
    struct error *(*each)(const struct export_item *item, void *context);
    void *context;
};

static struct error *
take(const char *id, void *context)
{
    const struct walking *walking = context;
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct export_item item = {.id = id};
    struct error *error = export_record_read_listed(walking->repository, id, &arena, &item.record);
    if (!error)
        return walking->each(&item, walking->context);
    /* One that is damaged must not hide the others; somebody may just have removed it. */
    return error_forgive(error_forgive(error, CODE_DATA_LOSS), CODE_NOT_FOUND);
}

struct error *
export_page_walk(struct repository *repository,
                 struct error *(*each)(const struct export_item *item, void *context),
                 void *context)
{
    struct walking walking = {repository, each, context};
    return repository_snapshots_list(repository, take, &walking);
}

/* ---- the place of a record in the order ---- */

struct place {
    int64_t taken_ns, exported_ns;
    char id[REPOSITORY_NAME_BYTES];
};

static int
compare(const struct place *left, const struct place *right)
{
    if (left->taken_ns != right->taken_ns)
        return left->taken_ns < right->taken_ns ? -1 : 1;
    if (left->exported_ns != right->exported_ns)
        return left->exported_ns < right->exported_ns ? -1 : 1;
    return strcmp(left->id, right->id);
}

static const char *
print_token(const struct place *place, struct arena *arena)
{
    return arena_print(arena, "%" PRId64 ".%" PRId64 ".%s", place->taken_ns, place->exported_ns,
                       place->id);
}

static struct error *
parse_token(const char *token, struct place *out)
{
    char *end;
    out->taken_ns = strtoll(token, &end, 10);
    if (*end == '.')
        out->exported_ns = strtoll(end + 1, &end, 10);
    size_t size = strspn(end + (*end == '.'), "0123456789abcdef");
    if (*end == '.' && size == sizeof out->id - 1 && !end[1 + size]) {
        memcpy(out->id, end + 1, sizeof out->id);
        return NULL;
    }
    return error_new(CODE_ABORTED, "starting_token is not from this list: start again without it");
}

/* ---- a page ---- */

struct paging {
    const struct export_query *query;
    const struct place *after; /* NULL: from the first */
    struct place *places;      /* the first ones behind it, in order */
    size_t count;
    bool has_more;
};

static bool
is_wanted(const struct export_query *query, const struct export_item *item)
{
    return (!query->name || !strcmp(item->record->name, query->name)) &&
           (!query->id || !strncmp(item->id, query->id, strlen(query->id)));
}

static bool
is_before(const struct paging *paging, const struct place *left, const struct place *right)
{
    int order = compare(left, right);
    return paging->query->newest_first ? order > 0 : order < 0;
}

/* Puts it into its place, and drops the last one if there are too many. */
static struct error *
sort_in(const struct export_item *item, void *context)
{
    struct paging *paging = context;
    size_t limit = paging->query->limit;
    struct place place = {item->record->taken_ns, item->record->exported_ns, ""};
    snprintf(place.id, sizeof place.id, "%s", item->id);
    if (!is_wanted(paging->query, item) ||
        (paging->after && !is_before(paging, paging->after, &place)))
        return NULL;
    size_t low = 0, high = paging->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(paging, &paging->places[middle], &place))
            low = middle + 1;
        else
            high = middle;
    }
    bool is_full = paging->count == limit;
    paging->has_more |= is_full;
    if (low == limit)
        return NULL;
    memmove(&paging->places[low + 1], &paging->places[low],
            (paging->count - is_full - low) * sizeof place);
    paging->places[low] = place;
    paging->count += !is_full;
    return NULL;
}

static struct error *
read_records(struct repository *repository, const struct paging *paging, struct arena *arena,
             struct export_list *out)
{
    struct error *error = NULL;
    out->items = arena_alloc(arena, paging->count * sizeof *out->items);
    for (size_t i = 0; i < paging->count && !error; i++) {
        struct export_item item = {.id = arena_string(arena, paging->places[i].id)};
        error = export_record_read_listed(repository, item.id, arena, &item.record);
        if (!error)
            out->items[out->count++] = item;
        error = error_forgive(error, CODE_NOT_FOUND); /* somebody has just removed it */
    }
    return error;
}

struct error *
export_page_read(struct repository *repository, const struct export_query *query,
                 struct arena *arena, struct export_list *out, const char **next)
{
    struct place after;
    *out = (struct export_list){0};
    *next = "";
    struct error *error = query->token[0] ? parse_token(query->token, &after) : NULL;
    if (error)
        return error;
    struct place *places AUTO(memory_cleanup) = memory_new(query->limit * sizeof *places);
    struct paging paging = {
        .query = query, .after = query->token[0] ? &after : NULL, .places = places};
    error = export_page_walk(repository, sort_in, &paging);
    if (!error)
        error = read_records(repository, &paging, arena, out);
    if (!error && paging.has_more)
        *next = print_token(&paging.places[paging.count - 1], arena);
    return error;
}
