/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message with every kind of field, for tests of what works on descriptors. It is laid out by
 * hand as protobuf-c would do it, because csi.proto has no bytes, reals or unsigned numbers and
 * nothing that contains itself. As a .proto file:
 *
 *     package test;
 *     enum Colour { NONE = 0; RED = 1; BLUE = 5; }
 *     message Sample {
 *         int32 small = 1;    uint32 small_unsigned = 2;
 *         int64 large = 3;    uint64 large_unsigned = 4;
 *         sint32 zigzag = 5;  fixed64 fixed = 6;    float single = 7;  double real = 8;
 *         bool flag = 9;      Colour colour = 10;   string text = 11;  bytes data = 12;
 *         oneof choice {
 *             int32 chosen_number = 13;  string chosen_text = 14;
 *             bytes chosen_data = 15;    Sample chosen_sample = 16;
 *         }
 *         repeated int64 numbers = 17;     repeated string texts = 18;
 *         repeated bytes blobs = 19;       repeated Sample children = 20;
 *         repeated Colour colours = 21;    map<string, int32> by_name = 22;
 *         map<int64, Sample> by_number = 23;
 *         map<bool, string> by_flag = 24;
 *         google.protobuf.Duration duration = 25;
 *         google.protobuf.Int64Value wrapped = 26;
 *         optional int32 maybe = 27;
 *     }
 */
#ifndef UNIT_SAMPLE_MESSAGE_H
#define UNIT_SAMPLE_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "base/attributes.h"

struct sample_duration {
    ProtobufCMessage base;
    int64_t seconds;
    int32_t nanos;
};

struct sample_wrapped {
    ProtobufCMessage base;
    int64_t value;
};

struct sample_by_name {
    ProtobufCMessage base;
    char *key;
    int32_t value;
};

struct sample_by_number {
    ProtobufCMessage base;
    int64_t key;
    struct sample *value;
};

struct sample_by_flag {
    ProtobufCMessage base;
    protobuf_c_boolean key;
    char *value;
};

struct sample {
    ProtobufCMessage base;
    int32_t small;
    uint32_t small_unsigned;
    int64_t large;
    uint64_t large_unsigned;
    int32_t zigzag;
    uint64_t fixed;
    float single;
    double real;
    protobuf_c_boolean flag;
    int colour;
    char *text;
    ProtobufCBinaryData data;
    int choice_case;
    union {
        int32_t chosen_number;
        char *chosen_text;
        ProtobufCBinaryData chosen_data;
        struct sample *chosen_sample;
    };
    size_t n_numbers;
    int64_t *numbers;
    size_t n_texts;
    char **texts;
    size_t n_blobs;
    ProtobufCBinaryData *blobs;
    size_t n_children;
    struct sample **children;
    size_t n_colours;
    int *colours;
    size_t n_by_name;
    struct sample_by_name **by_name;
    size_t n_by_number;
    struct sample_by_number **by_number;
    size_t n_by_flag;
    struct sample_by_flag **by_flag;
    struct sample_duration *duration;
    struct sample_wrapped *wrapped;
    protobuf_c_boolean has_maybe;
    int32_t maybe;
};

#define SAMPLE_PLAIN(struct_, id_, name_, type_)                                                   \
    {                                                                                              \
        .name = #name_, .id = (id_), .label = PROTOBUF_C_LABEL_NONE,                               \
        .type = PROTOBUF_C_TYPE_##type_, .offset = offsetof(struct struct_, name_)                 \
    }
#define SAMPLE_TEXT(struct_, id_, name_)                                                           \
    {                                                                                              \
        .name = #name_, .id = (id_), .label = PROTOBUF_C_LABEL_NONE,                               \
        .type = PROTOBUF_C_TYPE_STRING, .offset = offsetof(struct struct_, name_),                 \
        .default_value = &protobuf_c_empty_string                                                  \
    }
#define SAMPLE_TYPED(struct_, id_, name_, type_, descriptor_)                                      \
    {                                                                                              \
        .name = #name_, .id = (id_), .label = PROTOBUF_C_LABEL_NONE,                               \
        .type = PROTOBUF_C_TYPE_##type_, .offset = offsetof(struct struct_, name_),                \
        .descriptor = (descriptor_)                                                                \
    }
#define SAMPLE_CHOICE(id_, name_, type_, descriptor_, default_)                                    \
    {                                                                                              \
        .name = #name_, .id = (id_), .label = PROTOBUF_C_LABEL_NONE,                               \
        .type = PROTOBUF_C_TYPE_##type_, .offset = offsetof(struct sample, name_),                 \
        .quantifier_offset = offsetof(struct sample, choice_case), .descriptor = (descriptor_),    \
        .default_value = (default_), .flags = PROTOBUF_C_FIELD_FLAG_ONEOF                          \
    }
#define SAMPLE_REPEATED(id_, name_, type_, descriptor_)                                            \
    {                                                                                              \
        .name = #name_, .id = (id_), .label = PROTOBUF_C_LABEL_REPEATED,                           \
        .type = PROTOBUF_C_TYPE_##type_, .offset = offsetof(struct sample, name_),                 \
        .quantifier_offset = offsetof(struct sample, n_##name_), .descriptor = (descriptor_)       \
    }
#define SAMPLE_TYPE(struct_, package_, short_name_, fields_, ranges_, init_)                       \
    {                                                                                              \
        .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC, .name = package_ "." short_name_,           \
        .short_name = (short_name_), .c_name = (short_name_), .package_name = (package_),          \
        .sizeof_message = sizeof(struct struct_), .n_fields = COUNT_OF(fields_),                   \
        .fields = (fields_), .n_field_ranges = 1, .field_ranges = (ranges_),                       \
        .message_init = (init_)                                                                    \
    }

static const ProtobufCIntRange sample_one_field[] = {{1, 0}, {0, 1}};
static const ProtobufCIntRange sample_two_fields[] = {{1, 0}, {0, 2}};
static const ProtobufCIntRange sample_all_fields[] = {{1, 0}, {0, 27}};

static const ProtobufCMessageDescriptor sample_type, sample_duration_type, sample_wrapped_type,
    sample_by_name_type, sample_by_number_type, sample_by_flag_type;

static const ProtobufCEnumValue sample_colours[] = {
    {"NONE", "NONE", 0}, {"RED", "RED", 1}, {"BLUE", "BLUE", 5}};
static const ProtobufCEnumValueIndex sample_colours_by_name[] = {
    {"BLUE", 2}, {"NONE", 0}, {"RED", 1}};
static const ProtobufCIntRange sample_colour_ranges[] = {{0, 0}, {5, 2}, {0, 3}};
static const ProtobufCEnumDescriptor sample_colour_type = {
    .magic = PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC,
    .name = "test.Colour",
    .short_name = "Colour",
    .c_name = "Colour",
    .package_name = "test",
    .n_values = 3,
    .values = sample_colours,
    .n_value_names = 3,
    .values_by_name = sample_colours_by_name,
    .n_value_ranges = 2,
    .value_ranges = sample_colour_ranges,
};

static inline void
sample_duration_init(ProtobufCMessage *message)
{
    *(struct sample_duration *)message =
        (struct sample_duration){.base = {.descriptor = &sample_duration_type}};
}

static inline void
sample_wrapped_init(ProtobufCMessage *message)
{
    *(struct sample_wrapped *)message =
        (struct sample_wrapped){.base = {.descriptor = &sample_wrapped_type}};
}

static inline void
sample_by_name_init(ProtobufCMessage *message)
{
    *(struct sample_by_name *)message = (struct sample_by_name){
        .base = {.descriptor = &sample_by_name_type}, .key = (char *)protobuf_c_empty_string};
}

static inline void
sample_by_number_init(ProtobufCMessage *message)
{
    *(struct sample_by_number *)message =
        (struct sample_by_number){.base = {.descriptor = &sample_by_number_type}};
}

static inline void
sample_by_flag_init(ProtobufCMessage *message)
{
    *(struct sample_by_flag *)message = (struct sample_by_flag){
        .base = {.descriptor = &sample_by_flag_type}, .value = (char *)protobuf_c_empty_string};
}

static inline void
sample_init(ProtobufCMessage *message)
{
    *(struct sample *)message = (struct sample){.base = {.descriptor = &sample_type},
                                                .text = (char *)protobuf_c_empty_string};
}

static const ProtobufCFieldDescriptor sample_duration_fields[] = {
    SAMPLE_PLAIN(sample_duration, 1, seconds, INT64),
    SAMPLE_PLAIN(sample_duration, 2, nanos, INT32),
};
static const ProtobufCFieldDescriptor sample_wrapped_fields[] = {
    SAMPLE_PLAIN(sample_wrapped, 1, value, INT64),
};
static const ProtobufCFieldDescriptor sample_by_name_fields[] = {
    SAMPLE_TEXT(sample_by_name, 1, key),
    SAMPLE_PLAIN(sample_by_name, 2, value, INT32),
};
static const ProtobufCFieldDescriptor sample_by_number_fields[] = {
    SAMPLE_PLAIN(sample_by_number, 1, key, INT64),
    SAMPLE_TYPED(sample_by_number, 2, value, MESSAGE, &sample_type),
};
static const ProtobufCFieldDescriptor sample_by_flag_fields[] = {
    SAMPLE_PLAIN(sample_by_flag, 1, key, BOOL),
    SAMPLE_TEXT(sample_by_flag, 2, value),
};
static const ProtobufCFieldDescriptor sample_fields[] = {
    SAMPLE_PLAIN(sample, 1, small, INT32),
    SAMPLE_PLAIN(sample, 2, small_unsigned, UINT32),
    SAMPLE_PLAIN(sample, 3, large, INT64),
    SAMPLE_PLAIN(sample, 4, large_unsigned, UINT64),
    SAMPLE_PLAIN(sample, 5, zigzag, SINT32),
    SAMPLE_PLAIN(sample, 6, fixed, FIXED64),
    SAMPLE_PLAIN(sample, 7, single, FLOAT),
    SAMPLE_PLAIN(sample, 8, real, DOUBLE),
    SAMPLE_PLAIN(sample, 9, flag, BOOL),
    SAMPLE_TYPED(sample, 10, colour, ENUM, &sample_colour_type),
    SAMPLE_TEXT(sample, 11, text),
    SAMPLE_PLAIN(sample, 12, data, BYTES),
    SAMPLE_CHOICE(13, chosen_number, INT32, NULL, NULL),
    SAMPLE_CHOICE(14, chosen_text, STRING, NULL, &protobuf_c_empty_string),
    SAMPLE_CHOICE(15, chosen_data, BYTES, NULL, NULL),
    SAMPLE_CHOICE(16, chosen_sample, MESSAGE, &sample_type, NULL),
    SAMPLE_REPEATED(17, numbers, INT64, NULL),
    SAMPLE_REPEATED(18, texts, STRING, NULL),
    SAMPLE_REPEATED(19, blobs, BYTES, NULL),
    SAMPLE_REPEATED(20, children, MESSAGE, &sample_type),
    SAMPLE_REPEATED(21, colours, ENUM, &sample_colour_type),
    SAMPLE_REPEATED(22, by_name, MESSAGE, &sample_by_name_type),
    SAMPLE_REPEATED(23, by_number, MESSAGE, &sample_by_number_type),
    SAMPLE_REPEATED(24, by_flag, MESSAGE, &sample_by_flag_type),
    SAMPLE_TYPED(sample, 25, duration, MESSAGE, &sample_duration_type),
    SAMPLE_TYPED(sample, 26, wrapped, MESSAGE, &sample_wrapped_type),
    {.name = "maybe",
     .id = 27,
     .label = PROTOBUF_C_LABEL_OPTIONAL,
     .type = PROTOBUF_C_TYPE_INT32,
     .offset = offsetof(struct sample, maybe),
     .quantifier_offset = offsetof(struct sample, has_maybe)},
};

static const ProtobufCMessageDescriptor sample_duration_type =
    SAMPLE_TYPE(sample_duration, "google.protobuf", "Duration", sample_duration_fields,
                sample_two_fields, sample_duration_init);
static const ProtobufCMessageDescriptor sample_wrapped_type =
    SAMPLE_TYPE(sample_wrapped, "google.protobuf", "Int64Value", sample_wrapped_fields,
                sample_one_field, sample_wrapped_init);
static const ProtobufCMessageDescriptor sample_by_name_type =
    SAMPLE_TYPE(sample_by_name, "test", "ByNameEntry", sample_by_name_fields, sample_two_fields,
                sample_by_name_init);
static const ProtobufCMessageDescriptor sample_by_number_type =
    SAMPLE_TYPE(sample_by_number, "test", "ByNumberEntry", sample_by_number_fields,
                sample_two_fields, sample_by_number_init);
static const ProtobufCMessageDescriptor sample_by_flag_type =
    SAMPLE_TYPE(sample_by_flag, "test", "ByFlagEntry", sample_by_flag_fields, sample_two_fields,
                sample_by_flag_init);
static const ProtobufCMessageDescriptor sample_type =
    SAMPLE_TYPE(sample, "test", "Sample", sample_fields, sample_all_fields, sample_init);

#endif
