/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a tree of settings, which is made by hand here: what comes out, and what is said of what is wrong. */
#include "base/settings.h"

#include <string.h>

#include "check.h"

/* The tree:
 *   1 name: fast
 *   2 wrong: many
 *   3 count: 64
 *   4 list: [a, b]
 *   5 map: {x: 1, y: 2}
 *   6 nested: [{z: 3}]
 *   7 strange<TAB>key: [..]
 */
static const struct setting b = {.line = 4, .text = "b"};
static const struct setting a = {.line = 4, .text = "a", .next = &b};
static const struct setting y = {.line = 5, .key = "y", .text = "2"};
static const struct setting x = {.line = 5, .key = "x", .text = "1", .next = &y};
static const struct setting z = {.line = 6, .key = "z", .text = "3"};
static const struct setting inner = {SETTING_MAP, .line = 6, .first = &z};
static const struct setting strange = {SETTING_LIST, .line = 7, .key = "strange\tkey", .first = &a};
static const struct setting nested = {SETTING_LIST, .line = 6, .key = "nested", .first = &inner,
                                      .next = &strange};
static const struct setting map = {SETTING_MAP, .line = 5, .key = "map", .first = &x,
                                   .next = &nested};
static const struct setting list = {SETTING_LIST, .line = 4, .key = "list", .first = &a,
                                    .next = &map};
static const struct setting count = {.line = 3, .key = "count", .text = "64", .next = &list};
static const struct setting wrong = {.line = 2, .key = "wrong", .text = "many", .next = &count};
static const struct setting name = {.line = 1, .key = "name", .text = "fast", .next = &wrong};
static const struct setting root = {SETTING_MAP, .line = 1, .first = &name};

/* The message, "" for none; the error is gone. */
static const char *
message_of(struct error *error)
{
    static char text[512];
    snprintf(text, sizeof text, "%s", error ? error->message : "");
    CHECK(!error || error->code == CODE_INVALID_ARGUMENT);
    error_free(error);
    return text;
}

#define CHECK_GOOD(call) CHECK_TEXT(message_of(call), "")
#define CHECK_REFUSED(call, message) CHECK_TEXT(message_of(call), message)

/* A map of one text, on line 9. */
static const struct setting *
one(const char *text)
{
    static struct setting value, top;
    value = (struct setting){.line = 9, .key = "key", .text = text};
    top = (struct setting){SETTING_MAP, .line = 8, .first = &value};
    return &top;
}

static void
test_find(void)
{
    CHECK(settings_find(&root, "count") == &count);
    CHECK(!settings_find(&root, "none"));
    CHECK(!settings_find(NULL, "count"));
    CHECK(!settings_find(&list, "a"));
    CHECK(!settings_find(&name, "name"));
}

static void
test_texts_and_flags(void)
{
    const char *text = "before";
    bool flag = true;
    CHECK_GOOD(settings_read_text(&root, "none", &text));
    CHECK_GOOD(settings_read_text(NULL, "name", &text));
    CHECK_TEXT(text, "before");
    CHECK_GOOD(settings_read_text(&root, "name", &text));
    CHECK_TEXT(text, "fast");
    CHECK_REFUSED(settings_read_text(&root, "list", &text),
                  "line 4: list: this is a list, and should be one text");
    CHECK_REFUSED(settings_read_text(&root, "map", &text),
                  "line 5: map: this is a map, and should be one text");
    CHECK_GOOD(settings_read_flag(&root, "none", &flag));
    CHECK(flag);
    CHECK_GOOD(settings_read_flag(one("false"), "key", &flag));
    CHECK(!flag);
    CHECK_GOOD(settings_read_flag(one("true"), "key", &flag));
    CHECK(flag);
    CHECK_REFUSED(settings_read_flag(one("yes"), "key", &flag),
                  "line 9: key: \"yes\" is none of: false, true");
    CHECK(flag);
}

static int64_t
number(const char *text, int64_t min, int64_t max)
{
    int64_t out = -77;
    error_free(settings_read_number(one(text), "key", min, max, &out));
    return out;
}

static void
test_numbers(void)
{
    int64_t out = 5;
    CHECK_GOOD(settings_read_number(&root, "none", 1, 2, &out));
    CHECK_NUMBER(out, 5);
    CHECK_GOOD(settings_read_number(&root, "count", 1, 1024, &out));
    CHECK_NUMBER(out, 64);
    CHECK_REFUSED(settings_read_number(&root, "wrong", 1, 1024, &out),
                  "line 2: wrong: \"many\" is no number from 1 to 1024");
    CHECK_REFUSED(settings_read_number(&root, "map", 1, 1024, &out),
                  "line 5: map: this is a map, and should be one text");
    CHECK_NUMBER(out, 64);
    CHECK_NUMBER(number("1", 1, 3), 1);
    CHECK_NUMBER(number("3", 1, 3), 3);
    CHECK_NUMBER(number("0", 1, 3), -77);
    CHECK_NUMBER(number("4", 1, 3), -77);
    CHECK_NUMBER(number("-5", -10, 3), -5);
    CHECK_NUMBER(number("9223372036854775807", 0, INT64_MAX), INT64_MAX);
    CHECK_NUMBER(number("-9223372036854775808", INT64_MIN, 0), INT64_MIN);
    static const char *const none[] = {"9223372036854775808",
                                       "-9223372036854775809",
                                       "",
                                       "-",
                                       "-0",
                                       "+1",
                                       "01",
                                       "0x1",
                                       "1e3",
                                       "1.0",
                                       " 1",
                                       "1 ",
                                       "--1"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        CHECK_NUMBER(number(none[i], INT64_MIN, INT64_MAX), -77);
}

static void
test_sizes(void)
{
    int64_t bytes = 7;
    CHECK_GOOD(settings_read_size(&root, "none", &bytes));
    CHECK_NUMBER(bytes, 7);
    CHECK_GOOD(settings_read_size(one("100Gi"), "key", &bytes));
    CHECK_NUMBER(bytes, INT64_C(100) << 30);
    CHECK_REFUSED(settings_read_size(&root, "wrong", &bytes),
                  "line 2: wrong: \"many\" is no size: use a number of bytes, or like 10Gi");
    CHECK_NUMBER(bytes, INT64_C(100) << 30);
}

static uint32_t
milliseconds(const char *text)
{
    uint32_t out = 0;
    error_free(settings_read_time(one(text), "key", &out));
    return out;
}

static void
test_times(void)
{
    uint32_t out = 7;
    CHECK_GOOD(settings_read_time(&root, "none", &out));
    CHECK_NUMBER(out, 7);
    CHECK_NUMBER(milliseconds("1ms"), 1);
    CHECK_NUMBER(milliseconds("500ms"), 500);
    CHECK_NUMBER(milliseconds("30s"), 30000);
    CHECK_NUMBER(milliseconds("2m"), 120000);
    CHECK_NUMBER(milliseconds("24h"), 86400000);
    CHECK_NUMBER(milliseconds("86400000ms"), 86400000);
    static const char *const none[] = {
        "0s", "25h", "86400001ms", "5", "5 s", "-5s", "1.5s", "s", "18446744073709551617s",
        "",   "5d",  "1m30s"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        CHECK_NUMBER(milliseconds(none[i]), 0);
    CHECK_REFUSED(settings_read_time(&root, "count", &out),
                  "line 3: count: \"64\" is no time from 1ms to 24h: use a number with ms, s, m or "
                  "h behind");
}

static void
test_choices(void)
{
    static const char *const words[] = {"slow", "fast", NULL};
    size_t index = 9;
    CHECK_GOOD(settings_read_choice(&root, "none", words, &index));
    CHECK_NUMBER(index, 9);
    CHECK_GOOD(settings_read_choice(&root, "name", words, &index));
    CHECK_NUMBER(index, 1);
    CHECK_REFUSED(settings_read_choice(&root, "wrong", words, &index),
                  "line 2: wrong: \"many\" is none of: slow, fast");
}

static void
test_maps(struct arena *arena)
{
    struct text_map out = {0};
    CHECK_GOOD(settings_read_map(&root, "none", arena, &out));
    CHECK_NUMBER(out.count, 0);
    CHECK_GOOD(settings_read_map(&root, "map", arena, &out));
    CHECK_NUMBER(out.count, 2);
    CHECK_TEXT(text_map_find(&out, "x"), "1");
    CHECK_TEXT(text_map_find(&out, "y"), "2");
    CHECK_REFUSED(settings_read_map(&root, "list", arena, &out),
                  "line 4: list: this is a list, and should be a map, like {key: value}");
    CHECK_REFUSED(settings_read_pairs(&root, arena, &out),
                  "line 4: list: this is a list, and should be one text");
    CHECK_NUMBER(out.count, 2);
}

static void
test_lists(struct arena *arena)
{
    struct text_list out = {0};
    CHECK_GOOD(settings_read_list(&root, "none", arena, &out));
    CHECK_NUMBER(out.count, 0);
    CHECK_GOOD(settings_read_list(&root, "list", arena, &out));
    CHECK_NUMBER(out.count, 2);
    CHECK_TEXT(out.items[0], "a");
    CHECK_TEXT(out.items[1], "b");
    CHECK_GOOD(settings_read_list(&root, "name", arena, &out));
    CHECK_NUMBER(out.count, 1);
    CHECK_TEXT(out.items[0], "fast");
    CHECK_REFUSED(settings_read_list(&root, "nested", arena, &out),
                  "line 6: nested: each item of the list should be one text");
    CHECK_REFUSED(settings_read_list(&root, "map", arena, &out),
                  "line 5: map: this is a map, and should be a list");
    CHECK_NUMBER(out.count, 1);
}

static void
test_parts(void)
{
    const struct setting *out = &root;
    CHECK_GOOD(settings_read_part(&root, "none", SETTING_MAP, &out));
    CHECK(out == &root);
    CHECK_GOOD(settings_read_part(&root, "map", SETTING_MAP, &out));
    CHECK(out == &map);
    CHECK_REFUSED(settings_read_part(&root, "name", SETTING_LIST, &out),
                  "line 1: name: this is a text, and should be a list");
    CHECK(out == &map);
}

static void
test_keys(void)
{
    static const char *const all[] = {"name", "wrong",  "count",        "list",
                                      "map",  "nested", "strange\tkey", NULL};
    static const char *const few[] = {"name", "wrong", NULL};
    CHECK_GOOD(settings_check_keys(&root, all));
    CHECK_GOOD(settings_check_keys(NULL, few));
    CHECK_REFUSED(settings_check_keys(&root, few),
                  "line 3: \"count\" is not known here; there are: name, wrong");
}

static void
test_equality(void)
{
    struct setting other_x = x, other_y = y, other = map;
    other_y.next = &other_x; /* the other order, elsewhere */
    other_x.next = NULL;
    other_x.line = 70;
    other.first = &other_y;
    CHECK(settings_equal(&map, &other));
    CHECK(settings_equal(&root, &root));
    CHECK(settings_equal(NULL, NULL));
    CHECK(!settings_equal(&map, NULL));
    CHECK(!settings_equal(&list, &map));
    other_x.text = "3";
    CHECK(!settings_equal(&map, &other));
    other_x.text = x.text;
    other_y.next = NULL;
    CHECK(!settings_equal(&map, &other));
    CHECK(!settings_equal(&other, &map));
    struct setting shorter = list;
    shorter.first = &b;
    CHECK(!settings_equal(&list, &shorter));
    CHECK(!settings_equal(&shorter, &list));
}

static void
test_messages(void)
{
    const char *rest;
    const char *text;
    CHECK_NUMBER(settings_line_of("line 12: key: wrong", &rest), 12);
    CHECK_TEXT(rest, "key: wrong");
    CHECK_NUMBER(settings_line_of("linear", &rest), 0);
    CHECK_TEXT(rest, "linear");
    CHECK_NUMBER(settings_line_of("line 12", &rest), 0);
    CHECK_TEXT(rest, "line 12");
    CHECK_NUMBER(settings_line_of("line -1: key", &rest), 0);
    CHECK_NUMBER(settings_line_of("line 4294967296: key", &rest), 0);
    CHECK_REFUSED(settings_refuse(&inner, "%d is wrong", 5), "line 6: 5 is wrong");
    CHECK_REFUSED(settings_refuse_key(&root, "map", "is %s", "odd"), "line 5: map: is odd");
    CHECK_REFUSED(settings_refuse_key(&inner, "q", "is missing"), "line 6: q: is missing");
    CHECK_REFUSED(settings_refuse_key(NULL, "q", "is missing"), "line 1: q: is missing");
    CHECK_REFUSED(settings_read_text(&root, "strange\tkey", &text),
                  "line 7: \"strange\\tkey\": this is a list, and should be one text");
    struct buffer quoted AUTO(buffer_clear) = {0};
    char longer[100];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    settings_quote(&quoted, longer);
    CHECK_NUMBER(quoted.size, 64 + 2 + 3);
}

int
main(void)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    test_find();
    test_texts_and_flags();
    test_numbers();
    test_sizes();
    test_times();
    test_choices();
    test_maps(&arena);
    test_lists(&arena);
    test_parts();
    test_keys();
    test_equality();
    test_messages();
    return check_report("test_settings");
}
