/* SPDX-License-Identifier: Apache-2.0 */
/* YAML and JSON become settings; what has no place in them is refused, with its line. */
#include "connections/config/yaml.h"

#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "check.h"

static struct arena arena;

/* The tree in short, {a: [b, c]}, or what is wrong. */
static void
show(const struct setting *setting, struct buffer *out)
{
    if (setting->kind == SETTING_TEXT) {
        buffer_append_text(out, setting->text);
        return;
    }
    bool is_map = setting->kind == SETTING_MAP;
    buffer_append_byte(out, is_map ? '{' : '[');
    for (const struct setting *one = setting->first; one; one = one->next) {
        if (is_map)
            buffer_print(out, "%s: ", one->key);
        show(one, out);
        if (one->next)
            buffer_append_text(out, ", ");
    }
    buffer_append_byte(out, is_map ? '}' : ']');
}

static const char *
read_bytes(const char *text, size_t size)
{
    static struct buffer out;
    const struct setting *root = NULL;
    /* A copy without a NUL behind it, so that a sanitizer sees a byte too many. */
    char *copy AUTO(memory_cleanup) = memory_new(size ? size : 1);
    memcpy(copy, text, size);
    struct error *error AUTO(error_cleanup) = yaml_read(copy, size, &arena, &root);
    buffer_clear(&out);
    CHECK(!error == !!root);
    if (root)
        show(root, &out);
    if (error) {
        CHECK_NUMBER(error->code, CODE_INVALID_ARGUMENT);
        buffer_append_text(&out, error->message);
    }
    const char *told = arena_string(&arena, buffer_text(&out));
    buffer_clear(&out);
    return told;
}

static const char *
tree_of(const char *text)
{
    return read_bytes(text, strlen(text));
}

static void
test_what_is_read(void)
{
    CHECK_TEXT(tree_of(""), "{}");
    CHECK_TEXT(tree_of("# nothing\n\n"), "{}");
    CHECK_TEXT(tree_of("---\n"), "{}");
    CHECK_TEXT(tree_of("--- ~\n...\n"), "{}");
    CHECK_TEXT(tree_of("{}"), "{}");
    CHECK_TEXT(tree_of("driver: csi\n"), "{driver: csi}");
    CHECK_TEXT(tree_of("driver: csi"), "{driver: csi}");
    CHECK_TEXT(tree_of("---\ndriver: csi\n...\n"), "{driver: csi}");
    CHECK_TEXT(tree_of("%YAML 1.1\n---\ndriver: csi\n"), "{driver: csi}");
    CHECK_TEXT(tree_of("a: {x: 1, y: \"two\"}\nb: [1, {c: d}, [e]]\n"),
               "{a: {x: 1, y: two}, b: [1, {c: d}, [e]]}");
    CHECK_TEXT(tree_of("b:\n- 1\n- c: d\n  e: f\n"), "{b: [1, {c: d, e: f}]}");
    CHECK_TEXT(tree_of("a: ''\nb: \"\"\nc: \"null\"\nd: '~'\n"), "{a: , b: , c: null, d: ~}");
    CHECK_TEXT(tree_of("a: |\n  one\n  two\nb: x\n"), "{a: one\ntwo\n, b: x}");
    CHECK_TEXT(tree_of("a: unix:///run/x.sock # why\n"), "{a: unix:///run/x.sock}");
    CHECK_TEXT(tree_of("\xef\xbb\xbf"
                       "a: b\n"),
               "{a: b}");
    CHECK_TEXT(tree_of("a: b\r\nc: d\r\n"), "{a: b, c: d}");
    CHECK_TEXT(tree_of("a: gr\xc3\xbc\xc3\x9f\n"), "{a: gr\xc3\xbc\xc3\x9f}");
    CHECK_TEXT(tree_of("- a\n"), "[a]");
    CHECK_TEXT(tree_of("text"), "text");
}

static void
test_json(void)
{
    CHECK_TEXT(tree_of("{\"a\":1,\"b\":[true,\"x\"],\"c\":{}}"), "{a: 1, b: [true, x], c: {}}");
    CHECK_TEXT(tree_of("{\n\t\"a\": \"b\",\n\t\"c\": [\n\t\t1\n\t]\n}\n"), "{a: b, c: [1]}");
    CHECK_TEXT(tree_of("{\"a\":\"x\\/y\\n\\u00fc\"}"), "{a: x/y\n\xc3\xbc}");
    CHECK_TEXT(tree_of("{\"a\":null}"),
               "line 1: a: there is no value: leave the key out, or write \"\" for an empty text");
}

static void
test_lines(void)
{
    const struct setting *root = NULL;
    const char *text = "# head\na: 1\nb:\n  c:\n  - x\n  - y\n";
    struct error *error AUTO(error_cleanup) = yaml_read(text, strlen(text), &arena, &root);
    CHECK(!error && root);
    if (!root)
        return;
    const struct setting *b = settings_find(root, "b"), *c = settings_find(b, "c");
    CHECK_NUMBER(root->line, 2);
    CHECK_NUMBER(settings_find(root, "a")->line, 2);
    CHECK_NUMBER(b->line, 3);
    CHECK_NUMBER(c->line, 4);
    CHECK_NUMBER(c->first->line, 5);
    CHECK_NUMBER(c->first->next->line, 6);
}

static void
test_what_has_no_place(void)
{
    CHECK_TEXT(tree_of("a: &x 1\nb: *x\n"), "line 1: anchors (&name) are not supported: write the "
                                            "value where it is needed");
    CHECK_TEXT(tree_of("&x a: 1\n"), "line 1: anchors (&name) are not supported: write the "
                                     "value where it is needed");
    CHECK_TEXT(tree_of("a: 1\nb: *x\n"),
               "line 2: aliases (*name) are not supported: write the value itself");
    CHECK_TEXT(tree_of("a: 1\n*x : 2\n"),
               "line 2: aliases (*name) are not supported: write the value itself");
    CHECK_TEXT(tree_of("\na: !!str 5\n"), "line 2: tags (!name) are not supported: leave it out");
    CHECK_TEXT(tree_of("a: !secret {}\n"), "line 1: tags (!name) are not supported: leave it out");
    CHECK_TEXT(tree_of("--- !!null\n"), "line 1: tags (!name) are not supported: leave it out");
    CHECK_TEXT(tree_of("a: 1\nb: 2\na: 3\n"), "line 3: a: the key occurs twice, first on line 1");
    CHECK_TEXT(tree_of("x: {b: 1, \"b\": 2}\n"),
               "line 1: b: the key occurs twice, first on line 1");
    CHECK_TEXT(tree_of("[a]: 1\n"), "line 1: a key must be a text");
    CHECK_TEXT(tree_of("? {a: b}\n: 1\n"), "line 1: a key must be a text");
    CHECK_TEXT(tree_of("~: 1\n"), "line 1: a key must be a text");
    CHECK_TEXT(tree_of("a:\nb: 1\n"),
               "line 1: a: there is no value: leave the key out, or write \"\" for an empty text");
    CHECK_TEXT(tree_of("a: [x, ~]\n"),
               "line 1: the value is missing: write \"\" for an empty text");
    CHECK_TEXT(tree_of("a: 1\n---\nb: 2\n"),
               "line 2: a second document begins here (---): one file has one");
    CHECK_TEXT(tree_of("---\n---\n"),
               "line 2: a second document begins here (---): one file has one");
}

static void
test_bytes(void)
{
    CHECK_TEXT(read_bytes("a: 1\nb: \0\n", 9), "line 2: there is a NUL byte here");
    CHECK_TEXT(tree_of("a: 1\n\nb: \"x\\0y\"\n"), "line 3: texts with NUL (\\0) are not supported");
    CHECK_TEXT(tree_of("\"x\\0y\": 1\n"), "line 1: texts with NUL (\\0) are not supported");
    CHECK_TEXT(tree_of("a: \xff\n"), "line 1: this is not UTF-8");
    CHECK_TEXT(tree_of("a: 1\nb: \xc3"), "line 2: this is not UTF-8");
    CHECK_TEXT(tree_of("a: \xc0\x80\n"), "line 1: this is not UTF-8");
    CHECK_TEXT(tree_of("a: \"\xed\xa0\x80\"\n"), "line 1: this is not UTF-8");
    CHECK_TEXT(read_bytes("a\0:\0 \0b\0", 8), "line 1: there is a NUL byte here");
    CHECK_TEXT(tree_of("a: 1\nb: \x01\n"),
               "line 2: this is not YAML: control characters are not allowed");
}

static void
test_syntax(void)
{
    CHECK_TEXT(tree_of("a: 1\nb\n"), "line 3: this is not YAML: could not find expected ':' (while "
                                     "scanning a simple key)");
    CHECK_TEXT(tree_of("a: 1\n  b: 2\n"),
               "line 2: this is not YAML: mapping values are not allowed in this context");
    CHECK_TEXT(tree_of("a: 1\n\tb: 2\n"),
               "line 2: this is not YAML: found a tab character that violates "
               "indentation (while scanning a plain scalar)");
    CHECK_TEXT(tree_of("a: [1\n"),
               "line 2: this is not YAML: did not find expected ',' or ']' (while "
               "parsing a flow sequence)");
    CHECK_TEXT(tree_of("%YAML 3.0\n---\na: 1\n"),
               "line 1: this is not YAML: found incompatible YAML document");
}

/* ---- limits ---- */

/* `text` so many times. */
static const char *
repeated(const char *text, size_t times)
{
    struct buffer out AUTO(buffer_clear) = {0};
    for (size_t i = 0; i < times; i++)
        buffer_append_text(&out, text);
    return arena_string(&arena, buffer_text(&out));
}

static void
test_depth(void)
{
    const char *deepest = arena_print(&arena, "%s1%s", repeated("[", 15), repeated("]", 15));
    CHECK_TEXT(tree_of(deepest), deepest);
    CHECK_TEXT(tree_of(arena_print(&arena, "a: 1\nb: %s1%s", repeated("[", 15), repeated("]", 15))),
               "line 2: this is deeper than 16 levels");
    CHECK_TEXT(tree_of(repeated("{a: ", 20)), "line 1: this is deeper than 16 levels");
}

static void
test_count(void)
{
    CHECK(strncmp(tree_of(repeated("- 1\n", 9999)), "[1, 1", 5) == 0);
    CHECK_TEXT(tree_of(repeated("- 1\n", 10000)), "line 10000: there are more than 10000 values");
    struct buffer keys AUTO(buffer_clear) = {0};
    for (int i = 0; i < 5000; i++)
        buffer_print(&keys, "k%d: 1\n", i);
    CHECK_TEXT(tree_of(buffer_text(&keys)), "line 5000: there are more than 10000 values");
}

/* Files of the largest size that are made to be slow take no longer than a second. */
static void
test_time(void)
{
    static const char *const parts[] = {
        "[",   "{",     "{a: ", "- ", "? ",    "[a, ", "\"",          "a: &x\n",       "!a ",
        "*a ", "a:\n ", "|\n",  "'",  "# x\n", "\n",   "- - - - a\n", "%TAG ! tag:\n", "[?,"};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct timespec start, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        tree_of(repeated(parts[i], (256u << 10) / strlen(parts[i])));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        if (end.tv_sec - start.tv_sec > 1)
            fprintf(stderr, "%s\n", parts[i]);
        CHECK(end.tv_sec - start.tv_sec <= 1);
        arena_clear(&arena);
    }
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    test_what_is_read();
    test_json();
    test_lines();
    test_what_has_no_place();
    test_bytes();
    test_syntax();
    test_depth();
    test_count();
    test_time();
    arena_clear(&arena);
    return check_report("test_yaml");
}
