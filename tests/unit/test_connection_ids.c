/* SPDX-License-Identifier: Apache-2.0 */
/* Ids across connections: their form, where they stand in messages, and handles that are too long for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "connections/request/csi_fields.h"
#include "connections/request/global_id.h"
#include "connections/request/handles.h"
#include "message/service.h"
#include "proto/csi.pb-c.h"

static struct arena arena;

static void
test_form(void)
{
    struct global_id id;
    CHECK(global_id_parse(ID_VOLUME, "v:fast/abc", &id));
    CHECK_TEXT(id.connection, "fast");
    CHECK_TEXT(id.handle, "abc");
    CHECK(global_id_parse(ID_SNAPSHOT, "s:a/x=1&y=/z", &id));
    CHECK_TEXT(id.handle, "x=1&y=/z");
    CHECK_TEXT(global_id_print(ID_GROUP, "a", "h/i", &arena), "g:a/h/i");
    static const char *const bad[] = {"",
                                      "v",
                                      "v:",
                                      "v:fast",
                                      "v:fast/",
                                      "v:/abc",
                                      "s:fast/abc",
                                      "vfast/a",
                                      "v:_F/a",
                                      "v:../a/b",
                                      "v:-a/b",
                                      "v:a b/c",
                                      "x:a/b",
                                      "V:a/b",
                                      "v:a\n/b",
                                      "v:./a",
                                      ("v:a234567890123456789012345678901234567890123456789012"
                                       "345678901234/b")};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(!global_id_parse(ID_VOLUME, bad[i], &id));
}

/* ---- fields ---- */

static struct error *
note(void *context, enum id_field field, char **id)
{
    const char **notes = context;
    *notes = arena_print(&arena, "%s%d%s ", *notes, (int)field, *id);
    *id = "new";
    return NULL;
}

static struct error *
refuse(void *context, enum id_field field, char **id)
{
    (void)field;
    ++*(unsigned *)context;
    return error_new(CODE_NOT_FOUND, "%s", *id);
}

static void
test_fields(void)
{
    Csi__V1__VolumeContentSource__VolumeSource from =
        CSI__V1__VOLUME_CONTENT_SOURCE__VOLUME_SOURCE__INIT;
    Csi__V1__VolumeContentSource source = CSI__V1__VOLUME_CONTENT_SOURCE__INIT;
    Csi__V1__Volume volume = CSI__V1__VOLUME__INIT;
    Csi__V1__ListVolumesResponse__VolumeStatus status =
        CSI__V1__LIST_VOLUMES_RESPONSE__VOLUME_STATUS__INIT;
    Csi__V1__ListVolumesResponse__Entry entry = CSI__V1__LIST_VOLUMES_RESPONSE__ENTRY__INIT;
    Csi__V1__ListVolumesResponse__Entry *entries[] = {&entry};
    Csi__V1__ListVolumesResponse list = CSI__V1__LIST_VOLUMES_RESPONSE__INIT;
    char *nodes[] = {"n1", "", "n2"};
    from.volume_id = "from";
    source.type_case = CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_VOLUME;
    source.volume = &from;
    volume.volume_id = "volume";
    volume.content_source = &source;
    status.published_node_ids = nodes;
    status.n_published_node_ids = COUNT_OF(nodes);
    entry.volume = &volume;
    entry.status = &status;
    list.entries = entries;
    list.n_entries = 1;
    list.next_token = "volume_id";
    const char *notes = "";
    CHECK(!csi_fields_walk(&list.base, &(struct csi_visitor){&notes, note, NULL}));
    CHECK_TEXT(notes, "0volume 4from 3n1 3n2 ");
    CHECK_TEXT(volume.volume_id, "new");
    CHECK_TEXT(from.volume_id, "new");
    CHECK_TEXT(nodes[2], "new");
    CHECK_TEXT(list.next_token, "volume_id");
    unsigned count = 0;
    struct error *error AUTO(error_cleanup) =
        csi_fields_walk(&list.base, &(struct csi_visitor){&count, refuse, NULL});
    CHECK(error && count == 1);
}

/* Every text that CSI calls an id is one of those that are looked for: the table of names is complete. */
static void
check_type(const ProtobufCMessageDescriptor *type, unsigned depth)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        size_t size = strlen(field->name);
        bool is_id = field->type == PROTOBUF_C_TYPE_STRING &&
                     ((size > 3 && strcmp(field->name + size - 3, "_id") == 0) ||
                      (size > 4 && strcmp(field->name + size - 4, "_ids") == 0));
        if (is_id)
            CHECK(csi_fields_has_ids(type));
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth < 8)
            check_type(field->descriptor, depth + 1);
    }
}

static void
test_table(void)
{
    for (size_t i = 0; all_services[i]; i++) {
        if (strncmp(all_services[i]->name, "csi.v1.", 7) != 0)
            continue;
        for (size_t k = 0; k < all_services[i]->method_count; k++) {
            check_type(all_services[i]->methods[k].input, 0);
            check_type(all_services[i]->methods[k].output, 0);
        }
    }
    CHECK(!csi_fields_has_ids(&csi__v1__get_capacity_request__descriptor));
}

/* ---- handles ---- */

static void
check_round(struct store *store, const char *handle, bool is_short)
{
    char *id, *again;
    const char *back = NULL;
    struct global_id parts;
    CHECK(
        !handles_print_id(store, ID_VOLUME, "a-connection", handle, HANDLES_CREATED, &arena, &id));
    CHECK(strlen(id) <= GLOBAL_ID_MAX);
    CHECK(global_id_parse(ID_VOLUME, id, &parts));
    CHECK(handles_is_short(parts.handle) == is_short);
    CHECK(handles_needs_row("a-connection", handle) == is_short);
    CHECK(!handles_read(store, id, &parts, &arena, &back));
    CHECK_TEXT(back, handle);
    static const enum handles_state state[] = {HANDLES_EXISTS, HANDLES_CREATED,
                                               HANDLES_MAY_BE_GONE};
    for (size_t i = 0; i < COUNT_OF(state); i++) {
        CHECK(
            !handles_print_id(store, ID_VOLUME, "a-connection", handle, state[i], &arena, &again));
        CHECK_TEXT(again, id);
    }
}

static void
check_unknown(struct store *store, const char *id)
{
    const char *out;
    struct global_id parts;
    CHECK(global_id_parse(ID_VOLUME, id, &parts));
    struct error *error AUTO(error_cleanup) = handles_read(store, id, &parts, &arena, &out);
    CHECK(error && error->code == CODE_NOT_FOUND);
}

static void
test_handles(void)
{
    struct store *store;
    char text[400];
    CHECK(!store_open("memory:", NULL, &store));
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    check_round(store, "short", false);
    check_round(store, text, true);
    text[113] = '\0'; /* 128 bytes with "v:a-connection/" */
    check_round(store, text, false);
    text[113] = 'x', text[114] = '\0';
    check_round(store, text, true);
    check_round(store, "~looks-short", true);
    check_round(store, "~0123456789abcdef", true);
    check_unknown(store, "v:a-connection/~0000000000000000");
    check_unknown(store, "v:a-connection/~../x");
    store_close(store);
}

/* ---- rows of handles ---- */

#define LONG "~a handle that looks short, and needs a row"

static size_t
count_rows(struct store *store)
{
    struct store_list rows;
    CHECK(!store_list(store, "handle/", NULL, 0, &arena, &rows));
    return rows.count;
}

static char *
print(struct store *store, enum id_kind kind, const char *connection, enum handles_state state)
{
    char *id;
    CHECK(!handles_print_id(store, kind, connection, LONG, state, &arena, &id));
    return id;
}

static struct handles_row *
find_row(struct store *store, const char *id)
{
    struct handles_row *rows = NULL;
    struct global_id parts;
    CHECK(global_id_parse(ID_VOLUME, id, &parts));
    CHECK(!handles_find_row(store, ID_VOLUME, parts.connection, parts.handle, LONG, false, &arena,
                            &rows));
    return rows;
}

/* What is deleted leaves no row; what else has the same handle keeps its own. */
static void
test_forgetting(struct store *store)
{
    const char *id = print(store, ID_VOLUME, "a", HANDLES_CREATED);
    print(store, ID_VOLUME, "b", HANDLES_EXISTS);
    print(store, ID_SNAPSHOT, "a", HANDLES_CREATED);
    CHECK_NUMBER(count_rows(store), 3);
    struct handles_row *rows = find_row(store, id);
    CHECK(rows && !rows->next);
    CHECK(!handles_forget(store, rows, &arena));
    check_unknown(store, id);
    CHECK_NUMBER(count_rows(store), 2);
    CHECK(!handles_forget(store, rows, &arena)); /* a repetition */
    CHECK(!find_row(store, id));
    /* As the source of something it is told as before, and none is made for it. */
    CHECK_TEXT(print(store, ID_VOLUME, "a", HANDLES_MAY_BE_GONE), id);
    CHECK_NUMBER(count_rows(store), 2);
    CHECK_TEXT(print(store, ID_VOLUME, "a", HANDLES_EXISTS), id);
    CHECK_NUMBER(count_rows(store), 3);
}

/* A volume is made again before the deletion of the one before has quite ended. */
static void
test_made_again(struct store *store)
{
    const char *id = print(store, ID_VOLUME, "a", HANDLES_CREATED);
    struct handles_row *rows = find_row(store, id);
    CHECK_TEXT(print(store, ID_VOLUME, "a", HANDLES_CREATED), id);
    CHECK(!handles_forget(store, rows, &arena));
    CHECK(find_row(store, id));
}

static bool
is_known(struct store *store, const char *id)
{
    struct global_id parts;
    bool known;
    CHECK(global_id_parse(ID_VOLUME, id, &parts));
    CHECK(!handles_is_known(store, id, &parts, &arena, &known));
    return known;
}

/* Where nobody else could tell that something is deleted the store does, for a month. */
static void
test_marks(struct store *store)
{
    const char *id = print(store, ID_VOLUME, "m", HANDLES_CREATED);
    const char *key = arena_print(&arena, "deleted/%s", id);
    struct handles_row *rows = find_row(store, id);
    rows->leaves_mark = true;
    CHECK(is_known(store, id));
    CHECK(!handles_forget(store, rows, &arena));
    CHECK(!handles_drop_old_marks(store));
    CHECK(is_known(store, id));
    check_unknown(store, id);
    struct store_change old = {key, (const uint8_t *)"1700000000", 10, STORE_ANY};
    CHECK(!store_write(store, &old, 1, NULL));
    CHECK(!handles_drop_old_marks(store));
    CHECK(!is_known(store, id));
}

/* Of two with the same hash the first keeps its place, so that the second keeps its id. */
static void
test_alike(struct store *store)
{
    const char *id = print(store, ID_VOLUME, "c", HANDLES_CREATED);
    char next[GLOBAL_ID_MAX];
    struct global_id parts;
    CHECK(global_id_parse(ID_VOLUME, id, &parts));
    snprintf(next, sizeof next, "handle/v:c/~%016llx", strtoull(parts.handle + 1, NULL, 16) + 1);
    struct store_change change = {next, (const uint8_t *)"another", 7, STORE_ABSENT};
    CHECK(!store_write(store, &change, 1, NULL));
    CHECK(!find_row(store, id));
}

static void
test_rows(void)
{
    struct store *store;
    CHECK(!store_open("memory:", NULL, &store));
    test_forgetting(store);
    test_made_again(store);
    test_marks(store);
    test_alike(store);
    store_close(store);
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    test_form();
    test_fields();
    test_table();
    test_handles();
    test_rows();
    arena_clear(&arena);
    return check_report("connection ids");
}
