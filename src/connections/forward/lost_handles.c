/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of short ids that are lost: see lost_handles.h. */
#include "connections/forward/lost_handles.h"

#include <string.h>

#include "connections/forward/driver_list.h"
#include "connections/request/csi_fields.h"
#include "connections/request/handles.h"

bool
lost_handles_can_find(const struct connection *connection, enum id_kind kind)
{
    return kind == ID_VOLUME ? CONNECTION_CAN(connection, LIST_VOLUMES)
                             : CONNECTION_CAN(connection, LIST_SNAPSHOTS);
}

/* ---- one list ---- */

struct search {
    const struct router *router;
    const struct connection *connection;
    struct call *call;
    struct global_id wanted;
    enum id_kind kind;
    char *found;   /* in the call's arena */
    bool is_vague; /* more than one handle may be meant */
};

static struct error *
look_at_handle(void *context, enum id_field field, char **id)
{
    struct search *search = context;
    bool is_of_kind = (search->kind == ID_VOLUME && field == ID_FIELD_VOLUME) ||
                      (search->kind == ID_SNAPSHOT && field == ID_FIELD_SNAPSHOT) ||
                      (search->kind == ID_GROUP && field == ID_FIELD_GROUP);
    enum handles_match match = is_of_kind ? handles_match(&search->wanted, *id) : HANDLES_DIFFER;
    bool is_same = search->found && strcmp(search->found, *id) == 0;
    if (match == HANDLES_DIFFER || is_same)
        return NULL;
    search->is_vague |= match == HANDLES_MAY_MATCH || search->found;
    if (match == HANDLES_MATCH)
        search->found = arena_string(call_arena(search->call), *id);
    return NULL;
}

static struct error *
look_at_page(void *context, ProtobufCMessage *page)
{
    return csi_fields_walk(page, &(struct csi_visitor){context, look_at_handle, NULL});
}

/* ---- a request ---- */

static struct error *
check_list(const struct search *search)
{
    struct driver_facts *facts AUTO(driver_facts_cleanup) =
        driver_facts(search->connection->driver);
    if (!facts->is_known)
        return error_new(CODE_UNAVAILABLE, "%s", facts->trouble);
    if (!lost_handles_can_find(search->connection, search->kind))
        return error_new(CODE_UNAVAILABLE,
                         "its driver cannot list them; restore the store, or list them on a server "
                         "whose driver can");
    return NULL;
}

/* Always UNAVAILABLE: a failed search says nothing about the volume. */
static struct error *
restore(struct search *search, const char *id)
{
    char *given;
    struct error *error = check_list(search);
    if (!error)
        error =
            driver_list_read(search->call, search->connection, search->kind, look_at_page, search);
    if (!error && search->is_vague)
        error = error_new(CODE_UNAVAILABLE, "several handles have the same hash");
    if (error) {
        error->code = CODE_UNAVAILABLE;
        return error_wrap(error,
                          "the store does not know what \"%s\" stands for; looking for it in the "
                          "list of connection \"%s\"",
                          id, search->connection->spec->name);
    }
    return search->found
               ? handles_print_id(search->router->shared, search->kind, search->wanted.connection,
                                  search->found, HANDLES_EXISTS, call_arena(search->call), &given)
               : NULL;
}

struct error *
lost_handles_restore(const struct router *router, const struct connection *connection,
                     struct call *call, enum id_kind kind, const char *id,
                     const struct global_id *parts)
{
    struct search search = {
        .router = router, .connection = connection, .call = call, .wanted = *parts, .kind = kind};
    bool is_known;
    struct error *error = handles_is_known(router->shared, id, parts, call_arena(call), &is_known);
    return error || is_known ? error : restore(&search, id);
}
