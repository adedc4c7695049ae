/* SPDX-License-Identifier: Apache-2.0 */
/* src/connections/router/seen_volumes.c: the volumes of other nodes as they were last listed. */
#include "connections/router/seen_volumes.h"

#include "check.h"
#include "volumes/handle.h"

static struct arena arena;

#define VOLUME(handle) ((struct seen_volume){handle, "", 1})

/* Sets a page of volumes that are called by one letter each: "abc". */
static void
set(struct seen_volumes *seen, const char *place, const char *after, const char *handles,
    bool has_more)
{
    struct seen_volume items[16];
    size_t count = strlen(handles);
    for (size_t i = 0; i < count; i++)
        items[i] = VOLUME(arena_copy(&arena, handles + i, 1));
    seen_volumes_set(seen, place, after, &(struct seen_page){items, count, has_more});
}

/* "ab+": there are more. */
static const char *
get(struct seen_volumes *seen, const char *place, const char *after, size_t most)
{
    struct seen_page page = seen_volumes_find(seen, place, after, most, &arena);
    const char *text = "";
    for (size_t i = 0; i < page.count; i++)
        text = arena_print(&arena, "%s%s", text, page.items[i].handle);
    return page.has_more ? arena_print(&arena, "%s+", text) : text;
}

static void
pages_replace_what_lies_between_them(void)
{
    struct seen_volumes *seen = seen_volumes_new(100);
    CHECK_TEXT(get(seen, "p", "", 9), "");
    set(seen, "p", "", "ace", true);
    set(seen, "p", "e", "gi", false);
    CHECK_TEXT(get(seen, "p", "", 9), "acegi");
    CHECK_TEXT(get(seen, "p", "a", 2), "ce+");
    CHECK_TEXT(get(seen, "p", "f", 2), "gi");
    CHECK_TEXT(get(seen, "q", "", 9), "");
    set(seen, "p", "", "ad", true); /* c is gone, d is new */
    CHECK_TEXT(get(seen, "p", "", 9), "adegi");
    set(seen, "p", "e", "h", false);
    CHECK_TEXT(get(seen, "p", "", 9), "adeh");
    set(seen, "p", "", "", false);
    CHECK_TEXT(get(seen, "p", "", 9), "");
    seen_volumes_free(seen);
}

static void
names_stay_where_a_list_has_none(void)
{
    struct seen_volumes *seen = seen_volumes_new(100);
    struct seen_volume named = {"a", "data", 5};
    seen_volumes_set(seen, "p", "", &(struct seen_page){&named, 1, false});
    set(seen, "p", "", "ab", false);
    struct seen_page page = seen_volumes_find(seen, "p", "", 9, &arena);
    CHECK_TEXT(page.items[0].name, "data");
    CHECK_NUMBER(page.items[0].size_bytes, 1);
    CHECK_TEXT(page.items[1].name, "");
    seen_volumes_free(seen);
}

static void
there_is_a_limit(void)
{
    struct seen_volumes *seen = seen_volumes_new(3);
    set(seen, "p", "", "ab", false);
    set(seen, "q", "", "cd", false);
    CHECK_TEXT(get(seen, "q", "", 9), "");
    set(seen, "q", "", "c", false);
    CHECK_TEXT(get(seen, "q", "", 9), "c");
    CHECK_TEXT(get(seen, "p", "", 9), "ab");
    seen_volumes_free(seen);
}

/* A node may send what it likes. */
static void
pages_that_are_not_sorted_are_ignored(void)
{
    struct seen_volumes *seen = seen_volumes_new(100);
    set(seen, "p", "", "ba", false);
    set(seen, "p", "", "aa", false);
    set(seen, "p", "c", "b", false);
    set(seen, "p", "", "", true);
    CHECK_TEXT(get(seen, "p", "", 9), "");
    seen_volumes_free(seen);
}

/* The last letters of a handle are its home, and so are those of a place. */
static void
a_volume_is_where_it_was_seen_last(void)
{
    struct seen_volumes *seen = seen_volumes_new(100);
    char handle[BACKEND_HANDLE_SIZE], home[HANDLE_HOME_SIZE];
    const char *moved = "00mh4x0k2aaaaaaaaaaaaaaaaaaaaaa";
    snprintf(handle, sizeof handle, "%s", moved);
    CHECK(handle_read_home(handle, home));
    const char *first = arena_print(&arena, "local@%s", home);
    struct seen_volume volume = VOLUME(handle);
    seen_volumes_set(seen, first, "", &(struct seen_page){&volume, 1, false});
    CHECK_TEXT(get(seen, first, "", 9), handle);
    seen_volumes_set(seen, "local@bbbbbbbb", "", &(struct seen_page){&volume, 1, false});
    CHECK_TEXT(get(seen, first, "", 9), "");
    CHECK_TEXT(get(seen, "local@bbbbbbbb", "", 9), handle);
    struct seen_volume old = VOLUME("00mh4x0k2aaaaaaaaaaaaaa"); /* has no home */
    seen_volumes_set(seen, first, "", &(struct seen_page){&old, 1, false});
    seen_volumes_set(seen, "local@bbbbbbbb", "", &(struct seen_page){&old, 1, false});
    CHECK_TEXT(get(seen, first, "", 9), "");
    seen_volumes_free(seen);
}

/* Their rows make room for others. */
static void
nodes_that_are_removed_are_forgotten(void)
{
    struct seen_volumes *seen = seen_volumes_new(3);
    struct member items[] = {{.id = "a", .home = "aaaaaaaa"}, {.id = "b", .home = "bbbbbbbb"}};
    set(seen, "fast@aaaaaaaa", "", "x", false);
    set(seen, "fast@bbbbbbbb", "", "y", false);
    set(seen, "slow@bbbbbbbb", "", "z", false);
    seen_volumes_keep(seen, &(struct member_list){items, 2, true});
    set(seen, "slow@aaaaaaaa", "", "v", false);
    CHECK_TEXT(get(seen, "slow@aaaaaaaa", "", 9), ""); /* no room */
    seen_volumes_keep(seen, &(struct member_list){items, 1, true});
    CHECK_TEXT(get(seen, "fast@aaaaaaaa", "", 9), "x");
    CHECK_TEXT(get(seen, "fast@bbbbbbbb", "", 9), "");
    set(seen, "slow@aaaaaaaa", "", "vw", false);
    CHECK_TEXT(get(seen, "slow@aaaaaaaa", "", 9), "vw");
    seen_volumes_free(seen);
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    pages_replace_what_lies_between_them();
    names_stay_where_a_list_has_none();
    there_is_a_limit();
    pages_that_are_not_sorted_are_ignored();
    a_volume_is_where_it_was_seen_last();
    nodes_that_are_removed_are_forgotten();
    arena_clear(&arena);
    return check_report("seen volumes");
}
