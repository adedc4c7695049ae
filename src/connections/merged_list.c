/* SPDX-License-Identifier: Apache-2.0 */
/* Lists over all connections: see merged_list.h. */
#include "connections/merged_list.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SKIPPED 500000 /* a driver that puts more into one page is not believed */
#define MOST_EMPTY 1000     /* nor one that has so many pages without anything on them */

/* ---- tokens ---- */

struct token {
    const char *name; /* "" : from the first */
    size_t skip;
    const char *rest;
};

static struct error *
parse_token(const char *text, struct arena *arena, struct token *out)
{
    *out = (struct token){"", 0, ""};
    if (!text[0])
        return NULL;
    const char *first = strchr(text, ':');
    char *end = NULL;
    unsigned long skip = first ? strtoul(first + 1, &end, 10) : 0;
    if (!first || end == first + 1 || *end != ':' || first[1] == '-' || skip > MOST_SKIPPED)
        return error_new(CODE_ABORTED, "starting_token is not one of ours: list anew");
    *out = (struct token){arena_copy(arena, text, (size_t)(first - text)), skip, end + 1};
    return NULL;
}

static char *
print_token(const char *name, size_t skip, const char *rest, struct arena *arena)
{
    return arena_print(arena, "%s:%zu:%s", name, skip, rest);
}

/* ---- one connection ---- */

struct listing {
    const struct merged_list *list;
    struct arena *arena;
    struct list_page *out;
    size_t room; /* entries that still fit */
    size_t answered;
    struct error *failure; /* of a connection that was left out */
};

/* Takes what fits. The token to go on from if not all of the page did, else NULL. */
static char *
take_page(struct listing *listing, const struct token *at, const struct list_page *page)
{
    size_t i = at->skip;
    for (; i < page->count && (listing->room || !page->entries[i]); i++) {
        if (!page->entries[i])
            continue;
        listing->out->entries[listing->out->count++] = page->entries[i];
        listing->room--;
    }
    if (i < page->count)
        return print_token(at->name, i, at->rest, listing->arena);
    if (page->next_token[0] && !listing->room)
        return print_token(at->name, 0, page->next_token, listing->arena);
    return NULL;
}

static struct error *
list_connection(struct listing *listing, struct connection *connection, struct token at)
{
    const struct merged_list *list = listing->list;
    if (connection && !connection_is_known(connection))
        return connection_unknown_error(connection);
    for (unsigned empty = 0;;) {
        struct list_page page = {.next_token = ""};
        struct error *error = list->ask(list, connection, at.rest, listing->room + at.skip, &page);
        if (error)
            return error; /* cppcheck-suppress returnDanglingLifetime ; it holds no pointer to the page */
        char *unfinished = take_page(listing, &at, &page);
        if (unfinished)
            listing->out->next_token = unfinished;
        if (unfinished || !page.next_token[0])
            return NULL;
        empty = page.count ? 0 : empty + 1;
        if (strcmp(page.next_token, at.rest) == 0 || empty == MOST_EMPTY)
            return error_new(CODE_INTERNAL, "the driver's pages never end");
        at = (struct token){at.name, 0, page.next_token};
    }
}

/* ---- all of them ---- */

/* Takes the error. */
static void
leave_out(struct listing *listing, const char *name, struct error *error)
{
    log_warn(listing->list->log, "a connection is left out of a list", LOG_TEXT("connection", name),
             LOG_TEXT("error", error->message));
    error_free(listing->failure);
    listing->failure = error;
}

/* The source of this name, NULL for none; where the token says, if it is that one. */
static struct error *
list_from(struct listing *listing, struct connection *connection, const char *name,
          const struct token *start)
{
    bool goes_on = strcmp(name, start->name) == 0;
    if (!listing->room) {
        listing->out->next_token = print_token(name, 0, "", listing->arena);
        return NULL;
    }
    struct error *error =
        list_connection(listing, connection, goes_on ? *start : (struct token){name, 0, ""});
    /* The driver does not know its own token any more. */
    if (error && ((error->code == CODE_ABORTED && goes_on) || !connection))
        return error;
    if (error)
        leave_out(listing, name, error);
    else
        listing->answered++;
    return NULL;
}

static struct error *
list_all(struct listing *listing, const struct token *start)
{
    const struct merged_list *list = listing->list;
    struct error *error = NULL;
    if (list->has_own && !start->name[0])
        error = list_from(listing, NULL, "", start);
    for (size_t i = 0; i < list->set->count && !error && !listing->out->next_token[0]; i++) {
        struct connection *connection = list->set->slots[i].connection;
        const char *name = list->set->slots[i].name;
        if (connection && strcmp(name, start->name) >= 0 && list->can(list, connection))
            error = list_from(listing, connection, name, start);
    }
    if (error)
        return error;
    /* An empty list means that there is nothing. */
    bool tells_something = listing->out->count || listing->out->next_token[0] || start->name[0];
    return listing->answered && tells_something ? NULL : STEAL(listing->failure);
}

struct error *
merged_list_run(const struct merged_list *list, int32_t max_entries, size_t limit, const char *text,
                struct list_page *out)
{
    struct token start;
    struct listing listing = {.list = list, .arena = call_arena(list->call), .out = out};
    if (max_entries < 0)
        return error_new(CODE_INVALID_ARGUMENT, "max_entries is negative");
    struct error *error = parse_token(text, listing.arena, &start);
    if (error)
        return error;
    listing.room = max_entries && (size_t)max_entries < limit ? (size_t)max_entries : limit;
    *out = (struct list_page){.next_token = ""};
    out->entries = arena_alloc(listing.arena, listing.room * sizeof(void *));
    error = list_all(&listing, &start);
    error_free(listing.failure);
    return error;
}
