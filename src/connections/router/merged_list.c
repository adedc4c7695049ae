/* SPDX-License-Identifier: Apache-2.0 */
/* Lists over all connections: see merged_list.h. */
#include "connections/router/merged_list.h"

#include <stdlib.h>
#include <string.h>

#include "connections/forward/list_end.h"
#include "connections/router/listed_once.h"
#include "connections/router/parallel_calls.h"

/* Entries of one call to an engine: its reply must be small enough for a message between nodes. */
#define MOST_AT_ONCE 1000
#define LEAST_AHEAD 16

#define MOST_SKIPPED 500000 /* more entries on one page are an error */
#define MOST_USELESS 1000   /* so are more pages in a row without a new entry */

/* ---- tokens ---- */

struct token {
    const char *name; /* "": from the start */
    size_t skip;
    const char *rest;
    const char *left_out; /* "", or "!PLACE" for each */
};

#define COPIES "~" /* the name of the last source: behind all places */

static struct error *
parse_token(const char *text, struct arena *arena, struct token *out)
{
    *out = (struct token){"", 0, "", ""};
    if (!text[0])
        return NULL;
    const char *first = strchr(text, ':');
    char *end = NULL;
    unsigned long skip = first ? strtoul(first + 1, &end, 10) : 0;
    if (!first || end == first + 1 || *end != ':' || first[1] == '-' || skip > MOST_SKIPPED)
        return error_new(CODE_ABORTED,
                         "starting_token is not from this list: start again without it");
    char *name = arena_copy(arena, text, (size_t)(first - text));
    char *left_out = strchr(name, '!');
    *out = (struct token){name, skip, end + 1, ""};
    if (left_out) {
        out->left_out = arena_string(arena, left_out);
        *left_out = '\0';
    }
    return NULL;
}

/* ---- one connection ---- */

/* A connection (NULL: the router itself), and its first page if that was read in advance. */
struct source {
    const struct merged_list *list;
    struct connection *connection;
    const char *name;
    struct token start;
    size_t most;
    const char *token; /* of the requested page */
    const char *left_out;
    struct list_page page;
    struct error *error;
    bool has_page; /* or error */
    bool is_left_out;
};

struct listing {
    const struct merged_list *list;
    struct arena *arena;
    struct list_page *out;
    struct source *sources; /* by name */
    size_t count;
    size_t rest; /* the current source and those after it */
    size_t room; /* entries that still fit */
    size_t answered;
    struct error *failure;    /* of one that was left out */
    struct error *refusal;    /* the client holds too much memory: the list fails */
    const char *left_out;     /* as in the token */
    struct listed_once *once; /* NULL: an entry may be listed twice */
    bool *recalled;           /* of each entry: its node did not answer */
};

static char *
print_token(const struct listing *listing, const char *name, size_t skip, const char *rest)
{
    return arena_print(listing->arena, "%s%s:%zu:%s", name, listing->left_out, skip, rest);
}

bool
merged_list_left_out(const struct merged_list *list, const char *place)
{
    size_t size = strlen(place);
    for (const char *at = list->left_out; (at = strchr(at, '!'));) {
        at++;
        if (strncmp(at, place, size) == 0 && (at[size] == '!' || !at[size]))
            return true;
    }
    return false;
}

static struct error *
ask_source(struct call *call, void *context)
{
    struct source *source = context;
    struct merged_list list = *source->list;
    list.call = call;
    list.left_out = source->left_out;
    return list.ask(&list, source->connection, source->token, source->most, &source->page);
}

/* Does it return no more entries than it is asked for? */
static bool
is_exact(const struct source *source)
{
    return source->connection && source->connection->spec->driver->speaks_our_ids;
}

static size_t
limit_page(const struct source *source, size_t most)
{
    return is_exact(source) && most > MOST_AT_ONCE ? MOST_AT_ONCE : most;
}

/*
 * A page that was read in advance is of use if all of it fits. Otherwise an engine is asked again:
 * the next token is then the engine's, which is right also if volumes are deleted meanwhile.
 */
static bool
take_page_in_advance(struct source *source, size_t most)
{
    bool is_useful = source->has_page && (!is_exact(source) || source->page.count <= most);
    source->has_page = false;
    if (!is_useful)
        error_free(STEAL(source->error));
    return is_useful;
}

/* A single source may use all the time; several get a share each. */
static struct error *
ask_for_page(const struct listing *listing, struct source *source, const char *token, size_t most,
             struct list_page *out)
{
    struct call *call = listing->list->call;
    if (take_page_in_advance(source, most)) {
        *out = source->page;
        return STEAL(source->error);
    }
    source->token = token;
    source->most = most;
    source->left_out = listing->left_out;
    source->page = (struct list_page){.next_token = ""};
    struct parallel_call one = {ask_source, source, NULL};
    if (listing->count == 1 || !source->connection)
        one.error = ask_source(call, source);
    else
        parallel_calls_run(call, &one, 1, parallel_calls_share_ns(call, listing->rest));
    *out = source->page;
    return one.error;
}

/* What a node tells of a volume replaces what was seen of it on a node that does not answer. */
static bool
is_new(struct listing *listing, void *entry, bool is_recalled)
{
    size_t at = listing->out->count;
    if (!listing->once)
        return true;
    bool is_first = listed_once_add(listing->once, listing->list->id_of(entry), &at);
    if (is_first)
        listing->recalled[at] = is_recalled;
    else if (!is_recalled && listing->recalled[at])
        listing->out->entries[at] = entry;
    return is_first;
}

/* Takes the entries that fit. Returns the token to continue from; NULL: the whole page fitted. */
static char *
take_page(struct listing *listing, const struct token *at, const struct list_page *page,
          bool is_recalled)
{
    size_t i = at->skip;
    for (; i < page->count && (listing->room || !page->entries[i]); i++) {
        if (!page->entries[i] || !is_new(listing, page->entries[i], is_recalled))
            continue;
        listing->out->entries[listing->out->count++] = page->entries[i];
        listing->room--;
    }
    if (i < page->count)
        return print_token(listing, at->name, i, at->rest);
    if (page->next_token[0] && !listing->room)
        return print_token(listing, at->name, 0, page->next_token);
    return NULL;
}

/* How messages call it. */
static const char *
title_of(const struct source *source, struct arena *arena)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) =
        driver_facts(source->connection->driver);
    return source->connection->node_address && facts->node_id
               ? arena_print(arena, "node \"%s\"", facts->node_id)
               : source->connection->spec->name;
}

/* Takes the error. */
static void
leave_out(struct listing *listing, struct source *source, struct error *error)
{
    struct list_page *out = listing->out;
    log_warn(listing->list->log, "a connection is left out of a list",
             LOG_TEXT("connection", source->name), LOG_TEXT("error", error->message));
    error_free(listing->failure);
    listing->failure = error;
    source->is_left_out = true;
    out->missing = arena_print(listing->arena, "%s%s%s", out->missing, out->missing[0] ? ", " : "",
                               title_of(source, listing->arena));
    if (listing->list->has_copies)
        listing->left_out = arena_print(listing->arena, "%s!%s", listing->left_out, source->name);
}

/* From the source, or what was seen of it before if that can be told. */
static struct error *
find_page(struct listing *listing, struct source *source, const struct token *at,
          struct list_page *out)
{
    const struct merged_list *list = listing->list;
    size_t most = limit_page(source, listing->room) + at->skip;
    struct error *error = NULL;
    if (!source->is_left_out)
        error = source->connection && !connection_is_known(source->connection)
                    ? connection_unknown_error(source->connection)
                    : ask_for_page(listing, source, at->rest, most, out);
    /* ABORTED: the driver no longer knows its own token. */
    if (error && (!source->connection || !list->recall || error->code == CODE_ABORTED))
        return error;
    if (error)
        leave_out(listing, source, error);
    if (source->is_left_out) {
        *out = (struct list_page){.next_token = ""};
        list->recall(list, source->connection, at->rest, most, out);
    }
    return NULL;
}

static struct error *
list_source(struct listing *listing, struct source *source)
{
    struct token at = source->start;
    struct list_end end;
    list_end_init(&end, source->name, at.rest);
    for (unsigned useless = 0;;) {
        struct list_page page = {.next_token = ""};
        size_t before = listing->out->count;
        struct error *error = find_page(listing, source, &at, &page);
        if (error)
            return error;
        listing->refusal = call_charge_arena(listing->list->call);
        if (listing->refusal)
            return NULL;
        char *unfinished = take_page(listing, &at, &page, source->is_left_out);
        if (unfinished)
            listing->out->next_token = unfinished;
        if (unfinished || !page.next_token[0])
            return NULL;
        useless = listing->out->count > before ? 0 : useless + 1;
        error = list_end_check(&end, page.next_token);
        if (!error && useless == MOST_USELESS)
            error = list_end_never(&end);
        if (error)
            return error;
        at = (struct token){at.name, 0, page.next_token, ""};
    }
}

/* ---- all of them ---- */

static struct error *
list_from(struct listing *listing, struct source *source, const struct token *start)
{
    bool goes_on = strcmp(source->name, start->name) == 0;
    size_t before = listing->out->count;
    if (!listing->room) {
        listing->out->next_token = print_token(listing, source->name, 0, "");
        return NULL;
    }
    struct error *error = list_source(listing, source);
    /* ABORTED: the driver no longer knows its own token. */
    if (error && ((error->code == CODE_ABORTED && goes_on) || !source->connection))
        return error;
    if (error)
        leave_out(listing, source, error);
    bool is_recalled = listing->list->recall && listing->out->count > before;
    listing->answered += !source->is_left_out || is_recalled;
    return NULL;
}

static void
add_source(struct listing *listing, struct connection *connection, const char *name,
           const struct token *start)
{
    bool goes_on = strcmp(name, start->name) == 0;
    listing->sources[listing->count++] = (struct source){
        .list = listing->list,
        .connection = connection,
        .name = name,
        .start = goes_on ? *start : (struct token){name, 0, "", ""},
    };
}

static void
consider(struct listing *listing, struct connection *connection, const struct token *start)
{
    const struct merged_list *list = listing->list;
    if (connection && strcmp(connection->place, start->name) >= 0 && list->can(list, connection))
        add_source(listing, connection, connection->place, start);
}

static int
compare_sources(const void *a, const void *b)
{
    return strcmp(((const struct source *)a)->name, ((const struct source *)b)->name);
}

/* The sources from the token on. */
static void
find_sources(struct listing *listing, const struct token *start)
{
    const struct merged_list *list = listing->list;
    const struct connection_set *set = list->set;
    listing->sources = arena_alloc(listing->arena, (set->count + set->elsewhere_count + 2) *
                                                       sizeof *listing->sources);
    if (list->has_own && !start->name[0])
        add_source(listing, NULL, "", start);
    for (size_t i = 0; i < set->count; i++)
        consider(listing, set->slots[i].connection, start);
    for (size_t i = 0; i < set->elsewhere_count; i++)
        consider(listing, set->elsewhere[i], start);
    if (list->has_copies)
        add_source(listing, NULL, COPIES, start);
    qsort(listing->sources, listing->count, sizeof *listing->sources, compare_sources);
}

/* Engines are asked for no more than they have to contribute on average. */
static size_t
size_in_advance(const struct listing *listing, const struct source *source)
{
    size_t share = listing->room / listing->count + 1;
    if (!is_exact(source))
        return listing->room;
    share = share < LEAST_AHEAD ? LEAST_AHEAD : share;
    return limit_page(source, share < listing->room ? share : listing->room);
}

/* Reads the first page of all sources in advance, at the same time. */
static void
ask_all(struct listing *listing)
{
    struct call *call = listing->list->call;
    struct parallel_call *calls = arena_alloc(listing->arena, listing->count * sizeof *calls);
    size_t count = 0;
    for (size_t i = 0; i < listing->count; i++) {
        struct source *source = &listing->sources[i];
        if (!source->connection || !connection_is_known(source->connection))
            continue;
        source->token = source->start.rest;
        source->most = size_in_advance(listing, source) + source->start.skip;
        source->page = (struct list_page){.next_token = ""};
        source->has_page = true;
        calls[count++] = (struct parallel_call){ask_source, source, NULL};
    }
    parallel_calls_run(call, calls, count, parallel_calls_share_ns(call, 1));
    for (size_t i = 0; i < count; i++)
        ((struct source *)calls[i].context)->error = calls[i].error;
}

static struct error *
list_all(struct listing *listing, const struct token *start)
{
    struct error *error = NULL;
    for (size_t i = 0; i < listing->count && !error && !listing->out->next_token[0]; i++) {
        listing->rest = listing->count - i;
        error = list_from(listing, &listing->sources[i], start);
        if (!error)
            error = STEAL(listing->refusal);
    }
    for (size_t i = 0; i < listing->count; i++)
        error_free(listing->sources[i].error);
    if (error)
        return error;
    /* An empty list would mean that there are no entries at all. */
    bool tells_something = listing->out->count || listing->out->next_token[0] || start->name[0];
    /* On later pages others have answered before, but what was begun must go on. */
    bool has_answer = listing->answered || (start->name[0] && !start->rest[0]);
    return has_answer && tells_something ? NULL : STEAL(listing->failure);
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
    if (!error)
        error = connection_set_check_nodes(list->set);
    if (error)
        return error;
    listing.left_out = start.left_out;
    listing.room = max_entries && (size_t)max_entries < limit ? (size_t)max_entries : limit;
    *out = (struct list_page){.next_token = "", .missing = ""};
    out->entries = arena_alloc(listing.arena, listing.room * sizeof(void *));
    find_sources(&listing, &start);
    if (list->id_of && listing.count > 1) {
        listing.once = listed_once_new(listing.room, listing.arena);
        listing.recalled = arena_alloc(listing.arena, listing.room);
    }
    if (!max_entries && listing.count > 1)
        ask_all(&listing);
    error = list_all(&listing, &start);
    error_free(listing.failure);
    return error;
}
