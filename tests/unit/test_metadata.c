/* SPDX-License-Identifier: Apache-2.0 */
/* src/rpc/grpc/metadata.c */
#include "rpc/grpc/metadata.h"

#include "check.h"

static struct arena arena;

static enum code
add(struct metadata *metadata, const char *key, const void *value, size_t size)
{
    struct error *error AUTO(error_cleanup) = metadata_add(metadata, &arena, key, value, size);
    return error ? error->code : CODE_OK;
}

static enum code
decode(struct metadata *metadata)
{
    struct error *error AUTO(error_cleanup) = metadata_decode_binary(metadata, &arena);
    return error ? error->code : CODE_OK;
}

/* As it comes from the wire. */
static void
receive(struct metadata *metadata, const char *key, const char *value)
{
    metadata_add_bytes(metadata, &arena, key, strlen(key), value, strlen(value));
}

static void
entries_keep_their_order_and_are_found_by_their_key(void)
{
    struct metadata metadata = {0};
    CHECK_NUMBER(add(&metadata, "a", "1", 1), CODE_OK);
    CHECK_NUMBER(add(&metadata, "b", "2", 1), CODE_OK);
    CHECK_NUMBER(add(&metadata, "a", "3", 1), CODE_OK);
    CHECK_NUMBER(metadata.count, 3);
    CHECK_TEXT(metadata_find(&metadata, "a"), "1");
    CHECK_TEXT(metadata_find(&metadata, "b"), "2");
    CHECK_TEXT(metadata_find(&metadata, "c"), NULL);
    CHECK_NUMBER(metadata_count(&metadata, "a"), 2);
    CHECK_NUMBER(metadata_count(&metadata, "c"), 0);
    CHECK_TEXT(metadata.last->value, "3");
}

static void
keys_and_values_are_copied(void)
{
    struct metadata metadata = {0};
    char key[] = "key", value[] = "value";
    CHECK_NUMBER(add(&metadata, key, value, 5), CODE_OK);
    key[0] = value[0] = 'X';
    CHECK_TEXT(metadata_find(&metadata, "key"), "value");
}

static void
what_may_not_be_sent_is_refused(void)
{
    struct metadata metadata = {0};
    CHECK_NUMBER(add(&metadata, "", "v", 1), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(add(&metadata, "Key", "v", 1), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(add(&metadata, ":path", "v", 1), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(add(&metadata, "grpc-status", "0", 1), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(add(&metadata, "k", "line\n", 5), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(add(&metadata, "k", "\xc3\xa9", 2), CODE_INVALID_ARGUMENT);
    CHECK_NUMBER(add(&metadata, "k-bin", "\0\xff\n", 3), CODE_OK);
    CHECK_NUMBER(metadata.count, 1);
}

static void
a_key_is_binary_by_its_end(void)
{
    CHECK(metadata_key_is_binary("trace-bin", 9));
    CHECK(metadata_key_is_binary("-bin", 4));
    CHECK(!metadata_key_is_binary("bin", 3));
    CHECK(!metadata_key_is_binary("trace-binary", 12));
    CHECK(!metadata_key_is_binary("", 0));
}

static void
binary_values_are_decoded_and_others_left_alone(void)
{
    struct metadata metadata = {0};
    receive(&metadata, "plain", "Zm9v");
    receive(&metadata, "a-bin", "Zm9v");
    receive(&metadata, "b-bin", "AP8K");
    receive(&metadata, "c-bin", "");
    CHECK_NUMBER(decode(&metadata), CODE_OK);
    CHECK_TEXT(metadata_find(&metadata, "plain"), "Zm9v");
    CHECK_TEXT(metadata_find(&metadata, "a-bin"), "foo");
    CHECK_TEXT(metadata_find(&metadata, "c-bin"), "");
    const struct metadata_entry *b = metadata.first->next->next;
    CHECK(b->value_size == 3 && memcmp(b->value, "\0\xff\n", 4) == 0);
}

static void
a_binary_value_that_is_no_base64_is_an_error(void)
{
    struct metadata metadata = {0};
    receive(&metadata, "a-bin", "no base64!");
    CHECK_NUMBER(decode(&metadata), CODE_INTERNAL);
}

/* gRPC: "a,b" is the same as two fields with the same key. */
static void
binary_values_that_somebody_joined_are_taken_apart(void)
{
    struct metadata metadata = {0};
    receive(&metadata, "k-bin", "Zm9v,YmFy,,YmF6");
    receive(&metadata, "after", "x,y");
    CHECK_NUMBER(decode(&metadata), CODE_OK);
    static const char *const values[] = {"foo", "bar", "", "baz", "x,y"};
    const struct metadata_entry *entry = metadata.first;
    for (size_t i = 0; i < COUNT_OF(values) && entry; i++, entry = entry->next)
        CHECK_TEXT(entry->value, values[i]);
    CHECK(!entry);
    CHECK_NUMBER(metadata.count, 5);
    CHECK_NUMBER(metadata_count(&metadata, "k-bin"), 4);
    receive(&metadata, "last", "z");
    CHECK_TEXT(metadata_find(&metadata, "last"), "z");
}

/* What a header of 16 KiB may hold would take more than a megabyte, for as long as its call lasts. */
static void
more_joined_values_than_anybody_needs_are_refused(void)
{
    char commas[600];
    memset(commas, ',', sizeof commas);
    commas[256] = '\0';
    struct metadata most = {0}, too_many = {0};
    receive(&most, "k-bin", commas);
    CHECK_NUMBER(decode(&most), CODE_OK);
    CHECK_NUMBER(most.count, 257);
    receive(&too_many, "k-bin", commas);
    receive(&too_many, "l-bin", ",");
    CHECK_NUMBER(decode(&too_many), CODE_RESOURCE_EXHAUSTED);
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    entries_keep_their_order_and_are_found_by_their_key();
    keys_and_values_are_copied();
    what_may_not_be_sent_is_refused();
    a_key_is_binary_by_its_end();
    binary_values_are_decoded_and_others_left_alone();
    a_binary_value_that_is_no_base64_is_an_error();
    binary_values_that_somebody_joined_are_taken_apart();
    more_joined_values_than_anybody_needs_are_refused();
    arena_clear(&arena);
    return check_report("test_metadata");
}
