/* SPDX-License-Identifier: Apache-2.0 */
/* src/message/message_field.c */
#include "message/message_field.h"

#include "check.h"
#include "sample_message.h"

/* A repeated field of a type like that of a map; each test changes one thing. */
struct map_case {
    ProtobufCFieldDescriptor entry_fields[3];
    ProtobufCMessageDescriptor entry;
    ProtobufCFieldDescriptor field;
};

static void
map_case_init(struct map_case *map)
{
    memset(map, 0, sizeof *map);
    memcpy(map->entry_fields, sample_by_name_fields, sizeof sample_by_name_fields);
    map->entry = sample_by_name_type;
    map->entry.short_name = "SomeNames2XEntry";
    map->entry.fields = map->entry_fields;
    map->field.name = "some_names2_x";
    map->field.label = PROTOBUF_C_LABEL_REPEATED;
    map->field.type = PROTOBUF_C_TYPE_MESSAGE;
    map->field.descriptor = &map->entry;
}

static void
a_map_is_known_by_the_name_of_its_type(void)
{
    static const char *const others[] = {
        "SomeNames2X", "SomeNames2XEntryX", "SomeNames2xEntry", "SomeNames2Entry", "Entry", ""};
    struct map_case map;
    map_case_init(&map);
    CHECK(message_field_is_map(&map.field));
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        map.entry.short_name = others[i];
        CHECK(!message_field_is_map(&map.field));
    }
}

static void
a_map_has_just_a_key_and_a_value(void)
{
    struct map_case map;
    map_case_init(&map);
    map.entry_fields[1].id = 3;
    CHECK(!message_field_is_map(&map.field));
    map_case_init(&map);
    map.entry_fields[0].name = "name";
    CHECK(!message_field_is_map(&map.field));
    map_case_init(&map);
    map.entry.n_fields = 3;
    CHECK(!message_field_is_map(&map.field));
    map_case_init(&map);
    map.field.label = PROTOBUF_C_LABEL_NONE;
    CHECK(!message_field_is_map(&map.field));
}

static void
check_json_name(const char *name, const char *expected)
{
    ProtobufCFieldDescriptor field = {.name = name};
    struct buffer out AUTO(buffer_clear) = {0};
    message_field_append_json_name(&field, &out);
    CHECK_TEXT(buffer_text(&out), expected);
}

/* As protoc makes them. */
static void
json_names_are_camel_case(void)
{
    check_json_name("name", "name");
    check_json_name("volume_content_source", "volumeContentSource");
    check_json_name("persistentVolume", "persistentVolume");
    check_json_name("field_1_x", "field1X");
    check_json_name("__odd__name_", "OddName");
    check_json_name("CAPS_name", "CAPSName");
}

static void
a_field_is_found_by_both_names(void)
{
    CHECK(message_field_find(&sample_type, "small_unsigned") == &sample_fields[1]);
    CHECK(message_field_find(&sample_type, "smallUnsigned") == &sample_fields[1]);
    CHECK(!message_field_find(&sample_type, "smallunsigned"));
    CHECK(!message_field_find(&sample_type, "small_Unsigned"));
    CHECK(!message_field_find(&sample_type, "smallUnsigne"));
    CHECK(!message_field_find(&sample_type, "smallUnsignedX"));
    CHECK(!message_field_find(&sample_type, ""));
}

int
main(void)
{
    a_map_is_known_by_the_name_of_its_type();
    a_map_has_just_a_key_and_a_value();
    json_names_are_camel_case();
    a_field_is_found_by_both_names();
    return check_report("message_field");
}
