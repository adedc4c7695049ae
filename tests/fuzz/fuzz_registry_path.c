/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is a path or an error. A path that was taken is normal: it becomes itself again, has no empty element and no dots, and is below each of
 * its own beginnings that end at a slash, and below no other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "registry/client/path.h"
#include "require.h"

static void
check_elements(const char *path)
{
    REQUIRE(path[0] != '/');
    REQUIRE(!strstr(path, "//"));
    for (const char *element = path; element && *element;) {
        size_t size = strcspn(element, "/");
        REQUIRE(size > 0);
        REQUIRE(!(size == 1 && element[0] == '.'));
        REQUIRE(!(size == 2 && element[0] == '.' && element[1] == '.'));
        REQUIRE(!element[size] || element[size + 1]);
        element += size + (element[size] == '/');
    }
}

static void
check_below(const char *path, struct arena *arena)
{
    size_t size = strlen(path);
    for (size_t i = 0; i <= size; i++) {
        bool is_whole = i == 0 || i == size || path[i] == '/';
        REQUIRE(path_is_below(path, arena_copy(arena, path, i)) == is_whole);
    }
}

static void
check_path(const char *path, struct arena *arena)
{
    const char *again;
    size_t id_size;
    struct error *error AUTO(error_cleanup) = path_normalize(path, arena, &again);
    REQUIRE(!error && !strcmp(path, again));
    REQUIRE(strlen(path) <= PATH_MAX_BYTES);
    check_elements(path);
    check_below(path, arena);
    if (path_is_address(path, &id_size))
        REQUIRE(!strcmp(path_of_address(arena_copy(arena, path, id_size), arena), path));
    const char *node = path_find_node(path, &id_size);
    if (node)
        REQUIRE(!strcmp(path_of_node(arena_copy(arena, node, id_size), arena), path) &&
                path_is_below(path, PATH_NODES));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    char *text AUTO(memory_cleanup) = memory_new(size + 1);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    const char *path;
    struct error *error AUTO(error_cleanup) = path_normalize(text, &arena, &path);
    struct error *id_error AUTO(error_cleanup) = path_check_id(text);
    struct error *node_error AUTO(error_cleanup) = path_check_node_id(text);
    if (!error)
        check_path(path, &arena);
    if (!id_error)
        REQUIRE(!error && !strcmp(path, text) && !strchr(path, '/'));
    if (!node_error)
        REQUIRE(!id_error && strlen(text) <= PATH_MAX_NODE_ID_BYTES);
    return 0;
}
