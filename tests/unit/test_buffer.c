/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/buffer.c */
#include "base/buffer.h"

#include "check.h"

static void
what_is_appended_stands_behind_what_was_there(void)
{
    struct buffer buffer AUTO(buffer_clear) = {0};
    buffer_append_text(&buffer, "ab");
    buffer_append_byte(&buffer, 'c');
    buffer_append(&buffer, "de", 2);
    buffer_print(&buffer, "%d%s", 12, "x");
    CHECK_NUMBER(buffer.size, 8);
    CHECK_TEXT(buffer_text(&buffer), "abcde12x");
    CHECK_NUMBER(buffer.size, 8);
}

static void
nothing_appended_is_nothing_allocated(void)
{
    struct buffer buffer AUTO(buffer_clear) = {0};
    buffer_append(&buffer, NULL, 0);
    buffer_append_text(&buffer, "");
    CHECK(!buffer.bytes && !buffer.size && !buffer.capacity);
    CHECK_TEXT(buffer_text(&buffer), "");
}

static void
it_grows_as_far_as_it_is_filled(void)
{
    struct buffer buffer AUTO(buffer_clear) = {0};
    for (unsigned i = 0; i < 100000; i++)
        buffer_append_byte(&buffer, (uint8_t)i);
    CHECK_NUMBER(buffer.size, 100000);
    CHECK(buffer.capacity < 300000);
    bool is_whole = true;
    for (unsigned i = 0; i < 100000; i++)
        is_whole = is_whole && buffer.bytes[i] == (uint8_t)i;
    CHECK(is_whole);
}

static void
reserved_room_counts_only_when_the_caller_says_so(void)
{
    struct buffer buffer AUTO(buffer_clear) = {0};
    buffer_append_text(&buffer, "head");
    uint8_t *room = buffer_reserve(&buffer, 1000);
    memset(room, 'r', 1000);
    CHECK_NUMBER(buffer.size, 4);
    buffer.size += 3;
    CHECK_TEXT(buffer_text(&buffer), "headrrr");
    /* Room that is there already does not move the bytes. */
    CHECK(buffer_reserve(&buffer, 900) == buffer.bytes + 7);
}

static void
a_cleared_buffer_is_usable(void)
{
    struct buffer buffer AUTO(buffer_clear) = {0};
    buffer_append_text(&buffer, "first");
    buffer_clear(&buffer);
    CHECK(!buffer.bytes && !buffer.size && !buffer.capacity);
    buffer_append_text(&buffer, "second");
    CHECK_TEXT(buffer_text(&buffer), "second");
}

static void
a_long_print_is_whole(void)
{
    struct buffer buffer AUTO(buffer_clear) = {0};
    buffer_append_text(&buffer, "<");
    buffer_print(&buffer, "%05000d", 7);
    buffer_append_text(&buffer, ">");
    CHECK_NUMBER(buffer.size, 5002);
    CHECK_TEXT(buffer_text(&buffer) + 4999, "07>");
}

int
main(void)
{
    what_is_appended_stands_behind_what_was_there();
    nothing_appended_is_nothing_allocated();
    it_grows_as_far_as_it_is_filled();
    reserved_room_counts_only_when_the_caller_says_so();
    a_cleared_buffer_is_usable();
    a_long_print_is_whole();
    return check_report("test_buffer");
}
