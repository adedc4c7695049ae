/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of other nodes: see peer_watch.h. */
#include "connections/router/peer_watch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "connections/router/parallel_calls.h"
#include "connections/router/router_internal.h"
#include "message/message_bytes.h"

#define EVERY_NS UINT64_C(1000000000)
#define ASK_NS UINT64_C(2000000000) /* a node that hangs delays the changes of others this long */
#define MOST_PAGES 10               /* of one node, each time */

typedef Skycap__V1__Operation operation_message;

/* An operation as it was sent last. */
struct sent {
    uint64_t id; /* hashes */
    uint64_t content;
    uint64_t round; /* in which it was there */
};

struct peer_watch {
    struct sent *sent; /* by id */
    size_t count;
    uint64_t round;
    uint64_t asked_ns;
    int64_t began_s; /* Unix time */
};

struct peer_watch *
peer_watch_new(void)
{
    struct peer_watch *watch = memory_zeroed(sizeof *watch);
    watch->began_s = clock_unix_ms() / 1000;
    return watch;
}

void
peer_watch_cleanup(struct peer_watch **watch)
{
    free((*watch)->sent);
    free(*watch);
}

/* ---- changes ---- */

static size_t
find(const struct peer_watch *watch, uint64_t id)
{
    size_t low = 0, high = watch->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (watch->sent[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct sent *
insert(struct peer_watch *watch, size_t at, uint64_t id)
{
    watch->sent = memory_resize(watch->sent, (watch->count + 1) * sizeof *watch->sent);
    memmove(&watch->sent[at + 1], &watch->sent[at], (watch->count - at) * sizeof *watch->sent);
    watch->count++;
    watch->sent[at] = (struct sent){.id = id};
    return &watch->sent[at];
}

/* What ended before is not sent. */
static bool
is_of_now(const struct peer_watch *watch, const operation_message *operation)
{
    return operation->state == SKYCAP__V1__OPERATION__STATE__RUNNING ||
           (operation->updated && operation->updated->seconds >= watch->began_s);
}

/* Has it changed since it was sent? */
static bool
has_changed(struct peer_watch *watch, const operation_message *operation, struct arena *arena)
{
    size_t size;
    const uint8_t *bytes = message_bytes_pack(&operation->base, arena, &size);
    uint64_t content = hash_bytes((const char *)bytes, size);
    uint64_t id = hash_text(arena_print(arena, "%s %s", operation->node_id, operation->id));
    size_t at = find(watch, id);
    bool is_new = at == watch->count || watch->sent[at].id != id;
    struct sent *sent = is_new ? insert(watch, at, id) : &watch->sent[at];
    bool is_other = is_new || sent->content != content;
    sent->content = content;
    sent->round = watch->round;
    return is_other && (!is_new || is_of_now(watch, operation));
}

/* Operations that no node has any more. */
static void
drop_old(struct peer_watch *watch)
{
    size_t kept = 0;
    for (size_t i = 0; i < watch->count; i++)
        if (watch->sent[i].round + 60 > watch->round) /* its node may just not answer */
            watch->sent[kept++] = watch->sent[i];
    watch->count = kept;
}

/* ---- asking ---- */

struct question {
    struct connection *connection;
    Skycap__V1__ListOperationsResponse pages[MOST_PAGES];
    size_t count;
};

static struct error *
ask(struct call *call, void *context)
{
    struct question *question = context;
    const struct method *method = service_find_method("skycap.v1.Operations/List");
    const struct driver_ops *driver = question->connection->spec->driver;
    Skycap__V1__ListOperationsRequest request = SKYCAP__V1__LIST_OPERATIONS_REQUEST__INIT;
    for (; question->count < MOST_PAGES;
         request.starting_token = question->pages[question->count++].next_token) {
        Skycap__V1__ListOperationsResponse *page = &question->pages[question->count];
        if (question->count && !request.starting_token[0])
            return NULL;
        skycap__v1__list_operations_response__init(page);
        struct error *error =
            driver->call(question->connection->driver, call, method, &request.base, &page->base);
        if (error)
            return error;
    }
    return NULL;
}

static struct error *
send_changes(struct peer_watch *watch, struct call *call, const struct question *question,
             struct arena *arena)
{
    struct error *error = NULL;
    for (size_t i = 0; i < question->count; i++)
        for (size_t j = 0; j < question->pages[i].n_operations && !error; j++) {
            operation_message *operation = question->pages[i].operations[j];
            router_translate_operation(router_of(call), question->connection, arena, operation);
            if (has_changed(watch, operation, arena))
                error = call_send(call, &operation->base);
        }
    return error;
}

/* Has a call of its own, because there may be very many. */
static struct error *
look(struct peer_watch *watch, struct call *call, const struct connection_set *set)
{
    struct call *part = call_new_part(call, ASK_NS);
    struct arena *arena = call_arena(part);
    struct question *questions = arena_zeroed(arena, set->elsewhere_count * sizeof *questions);
    struct parallel_call *calls = arena_alloc(arena, set->elsewhere_count * sizeof *calls);
    size_t count = 0;
    for (size_t i = 0; i < set->elsewhere_count; i++) {
        if (!set->elsewhere[i]->spec->driver->speaks_our_ids)
            continue;
        questions[count].connection = set->elsewhere[i];
        calls[count] = (struct parallel_call){ask, &questions[count], NULL};
        count++;
    }
    parallel_calls_run(part, calls, count, ASK_NS);
    struct error *error = NULL;
    for (size_t i = 0; i < count; i++) {
        error_free(calls[i].error);
        if (!error)
            error = send_changes(watch, call, &questions[i], arena);
    }
    call_free_detached(part);
    return error;
}

struct error *
peer_watch_look(struct peer_watch *watch, struct call *call, const struct connection_set *set)
{
    uint64_t now = clock_now_ns();
    if (!set->elsewhere_count || (watch->asked_ns && now < watch->asked_ns + EVERY_NS))
        return NULL;
    watch->asked_ns = now;
    watch->round++;
    struct error *error = look(watch, call, set);
    drop_old(watch);
    return error;
}
