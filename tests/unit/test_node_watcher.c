/* SPDX-License-Identifier: Apache-2.0 */
/* src/registry/client/node_watcher.c: the nodes of a registry, also of one that comes and goes. */
#include "registry/client/node_watcher.h"

#include "registry/entries.h"
#include "registry_ends.h"

/* ---- what was told, as lines ---- */

struct notes {
    pthread_mutex_t lock;
    struct buffer text;
};

static void
add(struct notes *notes, const char *what, const char *id, const char *rest)
{
    pthread_mutex_lock(&notes->lock);
    buffer_print(&notes->text, "%s%s%s%s%s\n", what, id[0] ? " " : "", id, rest[0] ? " " : "",
                 rest);
    pthread_mutex_unlock(&notes->lock);
}

static void
on_changed(void *context, const struct watched_node *node)
{
    char rest[128];
    const char *zone = text_map_find(&node->attributes, "zone");
    snprintf(rest, sizeof rest, "%s%s%s", node->address, zone ? " " : "", zone ? zone : "");
    add(context, node->is_expired ? "expired" : "set", node->id, rest);
}

static void
on_removed(void *context, const char *id)
{
    add(context, "removed", id, "");
}

static void
on_completed(void *context)
{
    add(context, "complete", "", "");
}

/* Whether exactly these lines are told, in time; they are forgotten then. */
static void
check_told(struct notes *notes, const char *wanted)
{
    bool is_told = false;
    for (unsigned i = 0; i < PATIENCE_MS / 10 && !is_told; i++) {
        pthread_mutex_lock(&notes->lock);
        is_told = notes->text.size && !strcmp(buffer_text(&notes->text), wanted);
        pthread_mutex_unlock(&notes->lock);
        if (!is_told)
            sleep_ms(10);
    }
    pthread_mutex_lock(&notes->lock);
    CHECK_TEXT(notes->text.size ? buffer_text(&notes->text) : "", wanted);
    buffer_clear(&notes->text);
    pthread_mutex_unlock(&notes->lock);
}

/* ---- a registry that comes and goes at one address, and who watches it ---- */

struct setup {
    struct office office;    /* its own channel is for requests of the test */
    struct runtime *runtime; /* of the watcher */
    struct notes notes;
    struct node_watcher *watcher;
    char address[96];
};

static void
setup_open(struct setup *setup)
{
    *setup = (struct setup){.notes.lock = PTHREAD_MUTEX_INITIALIZER};
    static const struct log quiet = {.level = LOG_ERROR + 1, .fd = STDERR_FILENO};
    office_open(&setup->office);
    snprintf(setup->address, sizeof setup->address, "%s", setup->office.address);
    succeed(runtime_open(&(struct runtime_options){.log = &quiet}, &setup->runtime));
    const struct node_watcher_options options = {.registry = setup->address,
                                                 .runtime = setup->runtime,
                                                 .log = &quiet,
                                                 .changed = on_changed,
                                                 .removed = on_removed,
                                                 .completed = on_completed,
                                                 .context = &setup->notes};
    succeed(node_watcher_open(&options, &setup->watcher));
}

static void
setup_close(struct setup *setup)
{
    node_watcher_close(setup->watcher);
    runtime_close(setup->runtime);
    office_close(&setup->office);
    buffer_clear(&setup->notes.text);
}

static const char *const zone_a[] = {"zone", "a", NULL};

static void
nodes_are_told_with_all_that_happens_to_them(void)
{
    struct setup setup;
    setup_open(&setup);
    struct office *office = &setup.office;
    succeed(announce_node(office, "n-0", "a:1", 60000, zone_a));
    succeed(register_controller(office, "c", "a:1"));
    succeed(set_value(office, "nodes/n-0/rack", "7"));
    node_watcher_begin(setup.watcher);
    check_told(&setup.notes, "set n-0 a:1 a\ncomplete\n");
    succeed(announce_node(office, "n-1", "a:2", 1000, NULL));
    check_told(&setup.notes, "set n-1 a:2\n");
    check_told(&setup.notes, "expired n-1 a:2\n");
    succeed(announce_node(office, "n-0", "a:1", 60000, zone_a)); /* a mere renewal */
    succeed(register_controller(office, "c", "a:2"));
    succeed(announce_node(office, "n-0", "a:3", 60000, zone_a));
    check_told(&setup.notes, "set n-0 a:3 a\n");
    succeed(announce_node(office, "n-1", "", 0, NULL));
    check_told(&setup.notes, "removed n-1\n");
    setup_close(&setup);
}

static void
stop_serving(struct setup *setup)
{
    struct office *office = &setup->office;
    registry_stop(office->registry);
    server_free(office->server);
    registry_close(office->registry);
}

static void
serve_again(struct setup *setup)
{
    struct office *office = &setup->office;
    static const char *const nobody[] = {NULL};
    const struct registry_options options = {
        .store = office->store, .readers = nobody, .runtime = office->runtime, .log = &office->log};
    succeed(registry_open(&options, &office->registry));
    office->server = server_new(office->runtime, &(struct server_options){0});
    registry_add(office->registry, office->server);
    succeed(server_listen(office->server, office->address, NULL));
}

/* While the registry is away nothing is told. */
static void
what_happened_while_the_registry_was_away_is_told_when_it_is_back(void)
{
    struct setup setup;
    setup_open(&setup);
    struct office *office = &setup.office;
    succeed(announce_node(office, "goes", "a:1", 60000, NULL));
    succeed(announce_node(office, "stays", "a:1", 60000, NULL));
    node_watcher_begin(setup.watcher);
    check_told(&setup.notes, "set goes a:1\nset stays a:1\ncomplete\n");
    stop_serving(&setup);
    struct entry gone = {.path = "nodes/goes/address", .value = ""};
    struct entry come = {.path = "nodes/new/address", .value = "a:2"};
    succeed(entries_set(office->store, &gone));
    succeed(entries_set(office->store, &come));
    sleep_ms(200);
    CHECK_NUMBER(setup.notes.text.size, 0);
    serve_again(&setup);
    check_told(&setup.notes, "set new a:2\nset stays a:1\nremoved goes\ncomplete\n");
    setup_close(&setup);
}

static void
the_end_is_prompt(void)
{
    struct setup setup;
    setup_open(&setup);
    node_watcher_begin(setup.watcher);
    check_told(&setup.notes, "complete\n");
    uint64_t start = timers_now();
    node_watcher_stop(setup.watcher);
    node_watcher_close(setup.watcher);
    CHECK(ms_since(start) < 1000);
    setup.watcher = NULL;
    setup_close(&setup);
}

/* ---- changes that were missed ---- */

/* Sends a change of "x", which then goes unnoticed: the list that follows does not have it. */
static struct error *
send_with_a_gap(struct call *call, const Skycap__V1__WatchRequest *request)
{
    (void)request;
    Skycap__V1__RegistryEntry entry = SKYCAP__V1__REGISTRY_ENTRY__INIT;
    Skycap__V1__WatchReply complete = SKYCAP__V1__WATCH_REPLY__INIT;
    Skycap__V1__WatchReply change = SKYCAP__V1__WATCH_REPLY__INIT;
    Skycap__V1__WatchReply anew = SKYCAP__V1__WATCH_REPLY__INIT;
    complete.what_case = SKYCAP__V1__WATCH_REPLY__WHAT_IS_COMPLETE;
    complete.is_complete = true;
    anew.what_case = SKYCAP__V1__WATCH_REPLY__WHAT_IS_ANEW;
    anew.is_anew = true;
    change.what_case = SKYCAP__V1__WATCH_REPLY__WHAT_ENTRY;
    change.entry = &entry;
    entry.path = (char *)"nodes/x/address";
    entry.value = (char *)"a:1";
    struct error *error = call_send(call, &complete.base);
    if (!error)
        error = call_send(call, &change.base);
    if (!error)
        error = call_send(call, &anew.base);
    if (!error)
        error = call_send(call, &complete.base);
    if (!error)
        await_cancel(call);
    return error;
}

static void
what_a_new_list_does_not_have_is_gone_even_if_it_changed_before(void)
{
    static const struct skycap_v1_registry handlers = {.watch = {send_with_a_gap}};
    struct ends ends;
    struct notes notes = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct node_watcher *watcher;
    ends_open(&ends,
              &(struct ends_setup){.service = &skycap_v1_registry_service, .handlers = &handlers});
    const struct node_watcher_options options = {.registry = ends.address,
                                                 .runtime = ends.runtime,
                                                 .log = &ends.log,
                                                 .changed = on_changed,
                                                 .removed = on_removed,
                                                 .completed = on_completed,
                                                 .context = &notes};
    succeed(node_watcher_open(&options, &watcher));
    node_watcher_begin(watcher);
    check_told(&notes, "complete\nset x a:1\nremoved x\ncomplete\n");
    node_watcher_close(watcher);
    buffer_clear(&notes.text);
    ends_close(&ends);
}

/* ---- a registry that has too many watches ---- */

static struct error *
refuse_watch(struct call *call, const Skycap__V1__WatchRequest *request)
{
    (void)call, (void)request;
    return error_new(CODE_RESOURCE_EXHAUSTED, "too many");
}

/* "a" on the first page, "b" on the second; when it is asked for the third time, "b" is gone. */
static struct error *
list_in_pages(struct call *call, const Skycap__V1__ListEntriesRequest *request,
              Skycap__V1__ListEntriesReply *reply)
{
    atomic_uint *asked = call_context(call);
    bool is_first = !request->starting_token[0];
    bool is_last = !is_first || atomic_fetch_add(asked, 1) > 0;
    Skycap__V1__RegistryEntry *entry = arena_alloc(call_arena(call), sizeof *entry);
    skycap__v1__registry_entry__init(entry);
    entry->path = (char *)(is_first ? "nodes/a/address" : "nodes/b/address");
    entry->value = (char *)"a:1";
    reply->entries = arena_alloc(call_arena(call), sizeof entry);
    reply->entries[reply->n_entries++] = entry;
    reply->next_token = is_last ? reply->next_token : entry->path;
    return NULL;
}

static void
nodes_are_listed_where_no_more_may_watch(void)
{
    static const struct skycap_v1_registry handlers = {.watch = {refuse_watch},
                                                       .list_entries = {list_in_pages}};
    atomic_uint asked = 0;
    struct ends ends;
    struct notes notes = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct node_watcher *watcher;
    ends_open(&ends, &(struct ends_setup){.service = &skycap_v1_registry_service,
                                          .handlers = &handlers,
                                          .context = &asked});
    ends.log.level = LOG_ERROR + 1;
    const struct node_watcher_options options = {.registry = ends.address,
                                                 .runtime = ends.runtime,
                                                 .log = &ends.log,
                                                 .changed = on_changed,
                                                 .removed = on_removed,
                                                 .completed = on_completed,
                                                 .context = &notes};
    succeed(node_watcher_open(&options, &watcher));
    node_watcher_begin(watcher);
    check_told(&notes, "set a a:1\nset b a:1\ncomplete\n");
    check_told(&notes, "set a a:1\nremoved b\ncomplete\n");
    node_watcher_close(watcher);
    buffer_clear(&notes.text);
    ends_close(&ends);
}

int
main(void)
{
    nodes_are_told_with_all_that_happens_to_them();
    what_happened_while_the_registry_was_away_is_told_when_it_is_back();
    the_end_is_prompt();
    what_a_new_list_does_not_have_is_gone_even_if_it_changed_before();
    nodes_are_listed_where_no_more_may_watch();
    return check_report("test_node_watcher");
}
