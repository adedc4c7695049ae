/* SPDX-License-Identifier: Apache-2.0 */
/* src/registry/client/path.c: the normal form, ids, and what is below what. */
#include "registry/client/path.h"

#include "store_ends.h"

static struct arena arena;

static const char *
normal(const char *text)
{
    const char *path;
    struct error *error = path_normalize(text, &arena, &path);
    if (!error)
        return path;
    return error_code_name(code_of(error));
}

static void
slashes_are_made_one(void)
{
    CHECK_TEXT(normal(""), "");
    CHECK_TEXT(normal("///"), "");
    CHECK_TEXT(normal("a"), "a");
    CHECK_TEXT(normal("/a//b///c/"), "a/b/c");
    CHECK_TEXT(normal("a/.b/..c/d../..."), "a/.b/..c/d../...");
}

static void
dots_are_refused(void)
{
    CHECK_TEXT(normal("."), "INVALID_ARGUMENT");
    CHECK_TEXT(normal(".."), "INVALID_ARGUMENT");
    CHECK_TEXT(normal("a/./b"), "INVALID_ARGUMENT");
    CHECK_TEXT(normal("a/.."), "INVALID_ARGUMENT");
    CHECK_TEXT(normal("//../a"), "INVALID_ARGUMENT");
}

static void
what_is_no_text_or_too_long_is_refused(void)
{
    static char longest[PATH_MAX_BYTES + 2], slashes[5000];
    memset(longest, 'x', PATH_MAX_BYTES);
    CHECK_TEXT(normal("a\xff"), "INVALID_ARGUMENT");
    CHECK_TEXT(normal("\xc0\xaf"), "INVALID_ARGUMENT"); /* an overlong slash */
    CHECK_TEXT(normal(longest), longest);
    longest[PATH_MAX_BYTES] = 'x';
    CHECK_TEXT(normal(longest), "INVALID_ARGUMENT");
    memset(slashes, '/', sizeof slashes - 1);
    CHECK_TEXT(normal(slashes), "INVALID_ARGUMENT");
}

static void
ids_are_one_element_that_fits_a_header(void)
{
    static char longest[PATH_MAX_ID_BYTES + 2];
    memset(longest, 'x', PATH_MAX_ID_BYTES);
    CHECK_OK(path_check_id("host-0"));
    CHECK_OK(path_check_id("host 0"));
    CHECK_CODE(path_check_id("h\xc3\xb6st"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id(" host"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id("host "), CODE_INVALID_ARGUMENT);
    CHECK_OK(path_check_id("..."));
    CHECK_OK(path_check_id(longest));
    longest[PATH_MAX_ID_BYTES] = 'x';
    CHECK_CODE(path_check_id(longest), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id(""), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id("."), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id(".."), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id("a/b"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id("a\tb"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id("a\x7f"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_id("\xff"), CODE_INVALID_ARGUMENT);
}

static void
ids_of_nodes_are_shorter(void)
{
    static char longest[PATH_MAX_NODE_ID_BYTES + 2];
    memset(longest, 'x', PATH_MAX_NODE_ID_BYTES);
    CHECK_OK(path_check_node_id("node-0"));
    CHECK_OK(path_check_node_id(longest));
    longest[PATH_MAX_NODE_ID_BYTES] = 'x';
    CHECK_OK(path_check_id(longest));
    CHECK_SAYS(path_check_node_id(longest), CODE_INVALID_ARGUMENT, "the node's id has 129 bytes");
    CHECK_CODE(path_check_node_id(""), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_node_id("a/b"), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_node_id(".."), CODE_INVALID_ARGUMENT);
    CHECK_CODE(path_check_node_id("a\tb"), CODE_INVALID_ARGUMENT);
}

static void
nodes_are_told_from_other_paths(void)
{
    size_t size = 0;
    const char *path = "nodes/n-0/address";
    CHECK(path_find_node(path, &size) == path + 6);
    CHECK_NUMBER(size, 3);
    CHECK(!path_is_address(path, &size));
    CHECK(!path_find_node("nodes/address", &size)); /* the controller "nodes" */
    CHECK(path_is_address("nodes/address", &size));
    CHECK(!path_find_node("nodes", &size));
    CHECK(!path_find_node("nodes/", &size));
    CHECK(!path_find_node("node", &size));
    CHECK(!path_find_node("", &size));
    CHECK(!path_find_node("nodes/n-0", &size));
    CHECK(!path_find_node("nodes/n-0/rack", &size));
    CHECK(!path_find_node("nodes/n-0/address/x", &size));
    CHECK(!path_find_node("other/n-0/address", &size));
    CHECK_TEXT(path_of_node("n-0", &arena), path);
}

static void
addresses_are_told_from_other_paths(void)
{
    size_t size = 0;
    CHECK(path_is_address("host-0/address", &size));
    CHECK_NUMBER(size, 6);
    CHECK(!path_is_address("host-0", &size));
    CHECK(!path_is_address("address", &size));
    CHECK(!path_is_address("host-0/addresses", &size));
    CHECK(!path_is_address("a/host-0/address", &size));
    CHECK(!path_is_address("host-0/address/x", &size));
    CHECK_TEXT(path_of_address("host-0", &arena), "host-0/address");
}

static void
below_means_whole_elements(void)
{
    CHECK(path_is_below("a/b", ""));
    CHECK(path_is_below("a/b", "a"));
    CHECK(path_is_below("a", "a"));
    CHECK(!path_is_below("ab", "a"));
    CHECK(!path_is_below("a", "a/b"));
    CHECK(!path_is_below("b/a", "a"));
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    slashes_are_made_one();
    dots_are_refused();
    what_is_no_text_or_too_long_is_refused();
    ids_are_one_element_that_fits_a_header();
    ids_of_nodes_are_shorter();
    addresses_are_told_from_other_paths();
    nodes_are_told_from_other_paths();
    below_means_whole_elements();
    arena_clear(&arena);
    return check_report("test_registry_path");
}
