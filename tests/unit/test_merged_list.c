/* SPDX-License-Identifier: Apache-2.0 */
/* src/connections/router/merged_list.c: lists over several connections, page by page, as if they were one. */
#include "connections/router/merged_list.h"

#include <stdatomic.h>
#include <stdio.h>

#include "check.h"
#include "connection_sets.h"

#define FILE_TEXT "driver: csi\noptions: {endpoint: \"unix:///x\"}\n"
#define MOST 100

#define ENOUGH 20000

static struct runtime *runtime;
static size_t empty_pages;               /* that were told */
static atomic_size_t told, most_at_once; /* entries of all pages; asked for on one page */
static struct log quiet = {.fd = -1, .level = LOG_ERROR};

/* What stands behind: each source has entries that are texts, "a0", "a1"; own ones begin with "-". */
struct source {
    const char *name; /* "": own */
    size_t count;
    size_t page;     /* entries on one of its pages; 0: as many as are wanted */
    enum code error; /* it does not answer */
    bool is_lacking; /* it cannot list */
    bool is_endless;
    size_t circle;            /* tokens that come again and again, one after the other; 0: none */
    bool repeats_its_entries; /* on each of its pages, which have new tokens for ever */
    bool is_empty_for_ever;   /* every page has a next one, and nothing else */
    bool is_engine;           /* it returns as many entries as it is asked for */
    const char *prefix;       /* of its entries, if not its name */
};

struct sources {
    const struct source *items;
    size_t count;
};

static const struct source *
find(const struct merged_list *list, const struct connection *connection)
{
    const struct sources *sources = list->context;
    const char *name = connection ? connection->spec->name : "";
    for (size_t i = 0; i < sources->count; i++)
        if (strcmp(sources->items[i].name, name) == 0)
            return &sources->items[i];
    return NULL;
}

static bool
can(const struct merged_list *list, struct connection *connection)
{
    return !find(list, connection)->is_lacking;
}

/* Its own token is the index of the first entry. */
static struct error *
ask(const struct merged_list *list, struct connection *connection, const char *token, size_t most,
    struct list_page *out)
{
    const struct source *source = find(list, connection);
    struct arena *arena = call_arena(list->call);
    size_t first = strtoul(token, NULL, 10), size = source->page ? source->page : most;
    if (source->error)
        return error_new(source->error, "it is down");
    if (most > most_at_once)
        most_at_once = most;
    out->entries = arena_alloc(arena, (size + 1) * sizeof(void *));
    const char *prefix = source->prefix ? source->prefix : source->name[0] ? source->name : "-";
    if (source->circle || source->repeats_its_entries)
        out->entries[out->count++] = arena_print(arena, "%s0", prefix);
    for (size_t i = first; i < source->count && i < first + size; i++)
        out->entries[out->count++] = arena_print(arena, "%s%zu", prefix, i);
    told += out->count;
    out->next_token = "";
    if (source->is_empty_for_ever && ++empty_pages < ENOUGH)
        out->next_token = arena_print(arena, "%zu", first + 1);
    else if (source->is_endless)
        out->next_token = "0";
    else if (source->circle)
        out->next_token = arena_print(arena, "%zu", (first + 1) % source->circle);
    else if (source->repeats_its_entries)
        out->next_token = arena_print(arena, "%zu", first + 1);
    else if (first + out->count < source->count)
        out->next_token = arena_print(arena, "%zu", first + out->count);
    return NULL;
}

/* What was seen before of one that does not answer: two entries. */
static void
recall(const struct merged_list *list, struct connection *connection, const char *token,
       size_t most, struct list_page *out)
{
    struct arena *arena = call_arena(list->call);
    size_t first = strtoul(token, NULL, 10);
    const struct source *source = find(list, connection);
    out->entries = arena_alloc(arena, 2 * sizeof(void *));
    for (size_t i = first; i < 2 && out->count < most; i++)
        out->entries[out->count++] =
            arena_print(arena, "%s%zu?", source->prefix ? source->prefix : source->name, i);
    out->next_token = first + out->count < 2 ? arena_print(arena, "%zu", first + out->count) : "";
}

/* Without the mark of what is recalled. */
static const char *
id_of(const void *entry)
{
    static char ids[2 * MOST][16];
    static size_t next;
    char *id = ids[next++ % COUNT_OF(ids)];
    snprintf(id, sizeof ids[0], "%.*s", (int)strcspn(entry, "?"), (const char *)entry);
    return id;
}

/* The last part of a list with copies: what is known of those that are left out, "~b". */
static struct error *
ask_with_copies(const struct merged_list *list, struct connection *connection, const char *token,
                size_t most, struct list_page *out)
{
    const struct sources *sources = list->context;
    struct arena *arena = call_arena(list->call);
    if (connection)
        return ask(list, connection, token, most, out);
    out->entries = arena_alloc(arena, sources->count * sizeof(void *));
    out->next_token = "";
    for (size_t i = strtoul(token, NULL, 10); i < sources->count; i++) {
        if (!merged_list_left_out(list, sources->items[i].name))
            continue;
        if (out->count == most) {
            out->next_token = arena_print(arena, "%zu", i);
            break;
        }
        out->entries[out->count++] = arena_print(arena, "~%s", sources->items[i].name);
    }
    return NULL;
}

struct stage {
    struct call *call;
    struct connection_set *set;
    struct sources sources;
    struct merged_list list;
};

static void
stage_open(struct stage *stage, const struct source *items, size_t count)
{
    *stage = (struct stage){.call = call_new_detached(runtime, 0),
                            .set = connection_set_new(count),
                            .sources = {items, count}};
    for (size_t i = 0; i < count; i++)
        if (items[i].name[0])
            add_connection(stage->set, silent_driver_new(runtime, NULL, NULL, NULL), items[i].name,
                           items[i].is_engine ? "driver: local\n" : FILE_TEXT);
    stage->list = (struct merged_list){.call = stage->call,
                                       .log = &quiet,
                                       .set = stage->set,
                                       .context = &stage->sources,
                                       .has_own = !items[0].name[0],
                                       .can = can,
                                       .ask = ask};
}

static void
stage_close(struct stage *stage)
{
    connection_set_release(stage->set);
    call_free_detached(stage->call);
}

/* One page as "a0 a1 | NEXT TOKEN", or the name of the error. */
static const char *
page(struct stage *stage, int32_t max_entries, const char *token)
{
    struct arena *arena = call_arena(stage->call);
    struct list_page out;
    const char *text = "";
    struct error *error AUTO(error_cleanup) =
        merged_list_run(&stage->list, max_entries, MOST, token, &out);
    if (error)
        return error_code_name(error->code);
    for (size_t i = 0; i < out.count; i++)
        text = arena_print(arena, "%s%s ", text, (char *)out.entries[i]);
    return arena_print(arena, "%s| %s%s%s", text, out.next_token, out.missing[0] ? " without " : "",
                       out.missing);
}

#define OPEN(...)                                                                                  \
    struct stage stage;                                                                            \
    const struct source items[] = {__VA_ARGS__};                                                   \
    stage_open(&stage, items, COUNT_OF(items))

static void
entries_come_connection_by_connection(void)
{
    OPEN({"a", .count = 2}, {"b", .count = 0}, {"c", .count = 3, .page = 2});
    CHECK_TEXT(page(&stage, 0, ""), "a0 a1 c0 c1 c2 | ");
    CHECK_TEXT(page(&stage, 2, ""), "a0 a1 | b:0:");
    CHECK_TEXT(page(&stage, 2, "b:0:"), "c0 c1 | c:0:2");
    CHECK_TEXT(page(&stage, 2, "c:0:2"), "c2 | ");
    stage_close(&stage);
}

static void
own_entries_come_first(void)
{
    OPEN({"", .count = 3}, {"a", .count = 1});
    CHECK_TEXT(page(&stage, 2, ""), "-0 -1 | :0:2");
    CHECK_TEXT(page(&stage, 2, ":0:2"), "-2 a0 | ");
    CHECK_TEXT(page(&stage, 3, ""), "-0 -1 -2 | a:0:");
    CHECK_TEXT(page(&stage, 3, "a:0:"), "a0 | ");
    stage_close(&stage);
}

static void
a_driver_that_gives_more_than_is_wanted_is_told_bit_by_bit(void)
{
    OPEN({"a", .count = 5, .page = 4}, {"b", .count = 1});
    CHECK_TEXT(page(&stage, 3, ""), "a0 a1 a2 | a:3:");
    CHECK_TEXT(page(&stage, 3, "a:3:"), "a3 a4 b0 | ");
    CHECK_TEXT(page(&stage, 1, "a:3:"), "a3 | a:0:4");
    /* The page has become shorter meanwhile. */
    CHECK_TEXT(page(&stage, 3, "a:9:"), "a4 b0 | ");
    stage_close(&stage);
}

static void
who_does_not_answer_is_left_out(void)
{
    OPEN({"a", .count = 1}, {"b", .error = CODE_UNAVAILABLE}, {"c", .count = 1},
         {"d", .count = 1, .is_lacking = true});
    CHECK_TEXT(page(&stage, 0, ""), "a0 c0 |  without b");
    stage_close(&stage);
}

static void
if_nobody_answers_that_is_an_error(void)
{
    OPEN({"a", .error = CODE_UNAVAILABLE}, {"b", .error = CODE_UNAVAILABLE});
    CHECK_TEXT(page(&stage, 0, ""), "UNAVAILABLE");
    stage_close(&stage);
}

static void
an_own_list_that_fails_is_an_error(void)
{
    OPEN({"", .error = CODE_INTERNAL}, {"a", .count = 1});
    CHECK_TEXT(page(&stage, 0, ""), "INTERNAL");
    stage_close(&stage);
}

static void
tokens_outlive_their_connection_but_not_their_driver(void)
{
    OPEN({"a", .count = 1}, {"c", .error = CODE_ABORTED}, {"e", .count = 1});
    CHECK_TEXT(page(&stage, 0, "b:2:5"), "e0 |  without c"); /* b is gone */
    CHECK_TEXT(page(&stage, 0, "c:0:5"), "ABORTED");
    CHECK_TEXT(page(&stage, 0, "f:0:"), "| ");
    stage_close(&stage);
}

static void
what_is_no_token_is_refused(void)
{
    static const char *const bad[] = {"x", "a:", "a:1", "a:x:", "a:-1:", "a:999999999999:", "1:2"};
    OPEN({"a", .count = 1});
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK_TEXT(page(&stage, 0, bad[i]), "ABORTED");
    CHECK_TEXT(page(&stage, -1, ""), "INVALID_ARGUMENT");
    stage_close(&stage);
}

static void
lists_end(void)
{
    OPEN({"a", .count = 300}, {"b", .count = 1, .page = 1, .is_endless = true});
    const char *token = strchr(page(&stage, 0, ""), '|') + 2;
    CHECK_TEXT(token, "a:0:100");
    /* A driver whose pages go round in circles is left out; nobody else answered. */
    CHECK_TEXT(page(&stage, 0, "b:0:0"), "INTERNAL");
    stage_close(&stage);
}

/* The pages have entries, but none is new, so the list never becomes full. */
static void
lists_that_repeat_themselves_end(void)
{
    OPEN({"a", .circle = 7}, {"b", .count = 1});
    stage.list.id_of = id_of;
    CHECK_TEXT(page(&stage, 0, ""), "a0 b0 |  without a");
    CHECK_TEXT(page(&stage, 0, "a:0:3"), "a0 b0 |  without a");
    stage_close(&stage);
    const struct source forever[] = {{"a", .repeats_its_entries = true}, {"b", .count = 1}};
    stage_open(&stage, forever, COUNT_OF(forever));
    stage.list.id_of = id_of;
    CHECK_TEXT(page(&stage, 0, ""), "a0 b0 |  without a");
    stage_close(&stage);
}

/* With a single source nothing tells entries that come twice, but the tokens do. */
static void
the_error_of_an_endless_list_names_the_connection(void)
{
    OPEN({"a", .circle = 7});
    struct list_page out;
    struct error *error AUTO(error_cleanup) = merged_list_run(&stage.list, 0, MOST, "", &out);
    CHECK(error && error->code == CODE_INTERNAL);
    CHECK(error && strstr(error->message, "connection \"a\" does not end"));
    stage_close(&stage);
}

static void
lists_of_empty_pages_end(void)
{
    OPEN({"a", .is_empty_for_ever = true}, {"b", .count = 1});
    CHECK_TEXT(page(&stage, 0, ""), "b0 |  without a");
    CHECK(empty_pages < ENOUGH);
    stage_close(&stage);
}

/* Whoever is left out on one page is remembered until the last one, and is there once. */
static void
copies_stand_for_those_that_are_left_out(void)
{
    OPEN({"a", .count = 2}, {"ab", .error = CODE_UNAVAILABLE}, {"b", .error = CODE_UNAVAILABLE},
         {"c", .count = 1});
    stage.list.has_copies = true;
    stage.list.ask = ask_with_copies;
    CHECK_TEXT(page(&stage, 0, ""), "a0 a1 c0 ~ab ~b |  without ab, b");
    CHECK_TEXT(page(&stage, 2, ""), "a0 a1 | ab:0:");
    CHECK_TEXT(page(&stage, 1, "ab:0:"), "c0 | ~!ab!b:0: without ab, b");
    CHECK_TEXT(page(&stage, 1, "~!ab!b:0:"), "~ab | ~!ab!b:0:2");
    CHECK_TEXT(page(&stage, 1, "~!ab!b:0:2"), "~b | ");
    CHECK_TEXT(page(&stage, 0, "~:0:"), "| ");
    stage_close(&stage);
}

/* The client wants all: engines are not asked for more than is needed, and not for too much at once. */
static void
engines_are_asked_for_what_is_needed(void)
{
    OPEN({"a", .count = 60, .is_engine = true}, {"b", .count = 5000, .is_engine = true},
         {"c", .count = 5000, .is_engine = true}, {"d", .count = 5000, .is_engine = true});
    struct list_page out;
    told = most_at_once = 0;
    CHECK(!merged_list_run(&stage.list, 0, MOST, "", &out));
    CHECK_NUMBER((long long)out.count, MOST);
    CHECK_TEXT(out.entries[59], "a59");
    CHECK_TEXT(out.entries[60], "b0");
    CHECK_TEXT(out.next_token, "b:0:40"); /* the engine's own token, so deletions do not matter */
    CHECK(told <= 3 * MOST);
    CHECK(!merged_list_run(&stage.list, 0, 4000, out.next_token, &out));
    CHECK_TEXT(out.next_token, "b:0:4040");
    CHECK(most_at_once <= 1000);
    stage_close(&stage);
}

static void
a_list_ends_also_if_the_last_one_does_not_answer(void)
{
    OPEN({"a", .count = 1}, {"b", .error = CODE_UNAVAILABLE});
    CHECK_TEXT(page(&stage, 1, ""), "a0 | b:0:");
    CHECK_TEXT(page(&stage, 1, "b:0:"), "|  without b");
    CHECK_TEXT(page(&stage, 1, "b:0:1"), "UNAVAILABLE"); /* it was begun */
    stage_close(&stage);
}

static void
an_id_is_on_a_page_once(void)
{
    OPEN({"a", .count = 2}, {"b", .count = 3, .prefix = "a"}, {"c", .count = 1});
    stage.list.id_of = id_of;
    CHECK_TEXT(page(&stage, 0, ""), "a0 a1 a2 c0 | ");
    CHECK_TEXT(page(&stage, 3, ""), "a0 a1 a2 | c:0:");
    stage_close(&stage);
}

static void
what_was_seen_before_stands_for_those_that_are_left_out(void)
{
    OPEN({"a", .count = 1}, {"b", .error = CODE_UNAVAILABLE}, {"c", .count = 1});
    stage.list.recall = recall;
    CHECK_TEXT(page(&stage, 0, ""), "a0 b0? b1? c0 |  without b");
    CHECK_TEXT(page(&stage, 2, ""), "a0 b0? | b:0:1 without b");
    CHECK_TEXT(page(&stage, 2, "b:0:1"), "b1? c0 |  without b");
    CHECK_TEXT(page(&stage, 1, "b:0:"), "b0? | b:0:1 without b");
    stage_close(&stage);
}

static void
what_a_node_tells_replaces_what_was_seen_before(void)
{
    OPEN({"a", .error = CODE_UNAVAILABLE, .prefix = "x"}, {"b", .count = 1, .prefix = "x"});
    stage.list.recall = recall;
    stage.list.id_of = id_of;
    CHECK_TEXT(page(&stage, 0, ""), "x0 x1? |  without a");
    stage_close(&stage);
}

int
main(void)
{
    struct error *error = runtime_open(&(struct runtime_options){.log = &quiet}, &runtime);
    CHECK(!error);
    entries_come_connection_by_connection();
    own_entries_come_first();
    a_driver_that_gives_more_than_is_wanted_is_told_bit_by_bit();
    who_does_not_answer_is_left_out();
    if_nobody_answers_that_is_an_error();
    an_own_list_that_fails_is_an_error();
    tokens_outlive_their_connection_but_not_their_driver();
    what_is_no_token_is_refused();
    lists_end();
    lists_that_repeat_themselves_end();
    the_error_of_an_endless_list_names_the_connection();
    lists_of_empty_pages_end();
    copies_stand_for_those_that_are_left_out();
    engines_are_asked_for_what_is_needed();
    a_list_ends_also_if_the_last_one_does_not_answer();
    an_id_is_on_a_page_once();
    what_was_seen_before_stands_for_those_that_are_left_out();
    what_a_node_tells_replaces_what_was_seen_before();
    runtime_close(runtime);
    return check_report("merged list");
}
