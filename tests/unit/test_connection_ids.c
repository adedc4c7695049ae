/* SPDX-License-Identifier: Apache-2.0 */
/* Ids across connections: their form, where they stand in messages, and handles that are too long for them. */
#include <string.h>

#include "check.h"
#include "connections/global_id.h"
#include "connections/handles.h"
#include "connections/id_fields.h"
#include "proto/csi.pb-c.h"
#include "rpc/service.h"

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
                                      "v:F/a",
                                      "v:../a/b",
                                      "v:-a/b",
                                      "v:a b/c",
                                      "x:a/b",
                                      "V:a/b",
                                      "v:a\n/b",
                                      "v:./a",
                                      "v:a23456789012345678901/b"};
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
    CHECK(!id_fields_walk(&list.base, note, &notes));
    CHECK_TEXT(notes, "0volume 0from 3n1 3n2 ");
    CHECK_TEXT(volume.volume_id, "new");
    CHECK_TEXT(from.volume_id, "new");
    CHECK_TEXT(nodes[2], "new");
    CHECK_TEXT(list.next_token, "volume_id");
    unsigned count = 0;
    struct error *error AUTO(error_cleanup) = id_fields_walk(&list.base, refuse, &count);
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
            CHECK(id_fields_are_in(type));
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
    CHECK(!id_fields_are_in(&csi__v1__get_capacity_request__descriptor));
}

/* ---- handles ---- */

static void
check_round(struct store *store, const char *handle, bool is_short)
{
    char *id, *again;
    const char *back = NULL;
    struct global_id parts;
    CHECK(!handles_print_id(store, ID_VOLUME, "a-connection", handle, &arena, &id));
    CHECK(strlen(id) <= GLOBAL_ID_MAX);
    CHECK(global_id_parse(ID_VOLUME, id, &parts));
    CHECK(handles_is_short(parts.handle) == is_short);
    CHECK(handles_needs_row("a-connection", handle) == is_short);
    CHECK(!handles_read(store, parts.handle, &arena, &back));
    CHECK_TEXT(back, handle);
    CHECK(!handles_print_id(store, ID_VOLUME, "a-connection", handle, &arena, &again));
    CHECK_TEXT(again, id);
}

static void
test_handles(void)
{
    struct store *store;
    char text[400];
    const char *out;
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
    struct error *error AUTO(error_cleanup) =
        handles_read(store, "~0000000000000000", &arena, &out);
    CHECK(error && error->code == CODE_NOT_FOUND);
    struct error *odd AUTO(error_cleanup) = handles_read(store, "~../x", &arena, &out);
    CHECK(odd && odd->code == CODE_NOT_FOUND);
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
    arena_clear(&arena);
    return check_report("connection ids");
}
