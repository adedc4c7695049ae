/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router: forgetting a lost node. Choices of nodes for new volumes (choice_rows.h) that name it
 * go first: a repeated request for such a volume would wait for the node for ever. If the volume
 * has moved, or was recovered by another node, the row names that node from now on.
 */
#include <string.h>

#include "cluster/cluster.h"
#include "cluster/owners.h"
#include "connections/request/global_id.h"
#include "connections/router/router_internal.h"
#include "csi/checks.h"
#include "volumes/handle.h"

#define CHOICE "choice/"
#define CHOSEN "chosen/"
#define PAGE 500

struct forgetting {
    struct router *router;
    const char *node_id;
    char home[HANDLE_HOME_SIZE];
    struct arena *arena;      /* of the call */
    struct store_list chosen; /* the rows of all volumes that were made by choice */
};

/* The volume that was made by this choice; NULL: none was answered. */
static const struct store_entry *
find_chosen(const struct forgetting *forgetting, const char *key)
{
    size_t size = strlen(key);
    for (size_t i = 0; i < forgetting->chosen.count; i++) {
        const struct store_entry *entry = &forgetting->chosen.entries[i];
        if (entry->value_size == size && memcmp(entry->value, key, size) == 0)
            return entry;
    }
    return NULL;
}

/* Where the volume is now: NAME@HOME; NULL: on the node that is forgotten. */
static struct error *
find_place(const struct forgetting *forgetting, const struct store_entry *chosen, const char **out)
{
    struct global_id id;
    struct owner owner;
    char home[HANDLE_HOME_SIZE];
    *out = NULL;
    if (!chosen || !global_id_parse(ID_VOLUME, chosen->key + sizeof CHOSEN - 1, &id))
        return NULL;
    struct error *error =
        owners_peek(cluster_rows(forgetting->router->cluster), id.connection, id.handle, &owner);
    if (error || !owner.epoch || !owner.node_id[0] ||
        strcmp(owner.node_id, forgetting->node_id) == 0)
        return error;
    handle_print_home(owner.node_id, home);
    *out = arena_print(forgetting->arena, "%s@%s", id.connection, home);
    return NULL;
}

/* Somebody who has written another choice meanwhile wins. */
static struct error *
change_choice(const struct forgetting *forgetting, const struct store_entry *choice)
{
    const char *place;
    const struct store_entry *chosen = find_chosen(forgetting, choice->key);
    struct error *error = find_place(forgetting, chosen, &place);
    if (error)
        return error;
    struct store_change changes[2] = {
        {choice->key, (const uint8_t *)place, place ? strlen(place) : 0, choice->revision}};
    if (chosen)
        changes[1] = (struct store_change){.key = chosen->key, .expected = STORE_ANY};
    error = store_write(forgetting->router->shared, changes, chosen && !place ? 2 : 1, NULL);
    return error_forgive(error, CODE_ABORTED);
}

static bool
names_node(const struct forgetting *forgetting, const struct store_entry *choice)
{
    size_t size = strlen(forgetting->home);
    return choice->value_size > size && choice->value[choice->value_size - size - 1] == '@' &&
           memcmp(choice->value + choice->value_size - size, forgetting->home, size) == 0;
}

static struct error *
change_choices(const struct forgetting *forgetting)
{
    const char *after = NULL;
    struct store_list page = {.has_more = true};
    struct error *error = NULL;
    while (!error && page.has_more) {
        error =
            store_list(forgetting->router->shared, CHOICE, after, PAGE, forgetting->arena, &page);
        for (size_t i = 0; !error && i < page.count; i++) {
            after = page.entries[i].key;
            if (names_node(forgetting, &page.entries[i]))
                error = change_choice(forgetting, &page.entries[i]);
        }
    }
    return error;
}

struct error *
router_forget_node(struct call *call, const Skycap__V1__ForgetNodeRequest *request,
                   Skycap__V1__ForgetNodeReply *reply)
{
    (void)reply;
    struct router *router = router_of(call);
    struct forgetting forgetting = {
        .router = router, .node_id = request->node_id, .arena = call_arena(call)};
    struct error *error = checks_node_id("node_id", request->node_id);
    if (!error)
        error = cluster_check_lost(router->cluster, request->node_id);
    handle_print_home(request->node_id, forgetting.home);
    if (!error)
        error = store_list(router->shared, CHOSEN, NULL, 0, forgetting.arena, &forgetting.chosen);
    if (!error)
        error = change_choices(&forgetting);
    return error ? error : cluster_forget(router->cluster, request->node_id);
}
