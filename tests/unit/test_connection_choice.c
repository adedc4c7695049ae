/* SPDX-License-Identifier: Apache-2.0 */
/* Which connection a volume goes to: by name, by labels in the order of priorities, by its content, by default. */
#include "connections/request/choice.h"

#include "check.h"
#include "connection_sets.h"

#define FILE_OF(more) "driver: csi\noptions: {endpoint: 'unix:///x'}\n" more

static struct arena arena;
static struct runtime *runtime;

static struct connection *
add(struct connection_set *set, const char *name, const char *text)
{
    return add_connection(set, silent_driver_new(runtime, "n", NULL, NULL), name, text);
}

/* "b,a": what is chosen, in this order; or the code of the error. */
static const char *
chosen(const struct connection_set *set, const char *key, const char *value,
       struct connection *source)
{
    struct text_map parameters = {0};
    struct choice choice;
    const char *names = "";
    if (key)
        text_map_set(&parameters, &arena, key, value);
    struct error *error AUTO(error_cleanup) =
        choice_make(set, &parameters, source, &arena, &choice);
    if (error)
        return error_code_name(error->code);
    for (size_t i = 0; i < choice.count; i++)
        names = arena_print(&arena, "%s%s%s", names, i ? "," : "", choice.items[i]->spec->name);
    return names;
}

static void
test_names(void)
{
    struct connection_set *set = connection_set_new(3);
    CHECK_TEXT(chosen(set, NULL, NULL, NULL), "INVALID_ARGUMENT");
    struct connection *a = add(set, "a", FILE_OF("aliases: [old]\n"));
    CHECK_TEXT(chosen(set, NULL, NULL, NULL), "a"); /* the only one */
    add(set, "b", FILE_OF(""));
    CHECK_TEXT(chosen(set, NULL, NULL, NULL), "INVALID_ARGUMENT");
    CHECK_TEXT(chosen(set, NULL, NULL, a), "a"); /* where its content is */
    add(set, "c", FILE_OF("default: true\n"));
    CHECK_TEXT(chosen(set, NULL, NULL, NULL), "c");
    CHECK_TEXT(chosen(set, "connection", "b", NULL), "b");
    CHECK_TEXT(chosen(set, "connection", "b", a), "b");
    CHECK_TEXT(chosen(set, "connection", "old", NULL), "a");
    static const char *const bad[] = {
        "",  "d",      "../../etc/x", "a/b",
        "A", "a.yaml", "-a",          "a234567890123456789012345678901234567890"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK_TEXT(chosen(set, "connection", bad[i], NULL), "INVALID_ARGUMENT");
    connection_set_release(set);
}

/* Of a file that was wrong from the start nobody knows whether it is the default one. */
static void
test_wrong_files(void)
{
    struct connection_set *set = connection_set_new(4);
    set->slots[set->count++] = (struct connection_slot){"A.old", NULL, "that is no name"};
    add(set, "a", FILE_OF(""));
    CHECK_TEXT(chosen(set, NULL, NULL, NULL), "a");
    set->slots[set->count++] = (struct connection_slot){"b", NULL, "line 1: it is wrong"};
    CHECK_TEXT(chosen(set, NULL, NULL, NULL), "UNAVAILABLE");
    CHECK_TEXT(chosen(set, "connection", "a", NULL), "a");
    add(set, "c", FILE_OF("default: true\n"));
    CHECK_TEXT(chosen(set, NULL, NULL, NULL), "c");
    connection_set_release(set);
}

static void
test_labels(void)
{
    struct connection_set *set = connection_set_new(3);
    add(set, "a", FILE_OF("labels: {media: ssd, tier: warm}\n"));
    add(set, "b", FILE_OF("labels: {media: ssd, tier: hot}\npriority: 5\n"));
    add(set, "c", FILE_OF("labels: {media: disk}\npriority: 9\n"));
    CHECK_TEXT(chosen(set, "connection-selector", "media=ssd", NULL), "b,a");
    CHECK_TEXT(chosen(set, "connection-selector", "media=ssd,tier!=hot", NULL), "a");
    CHECK_TEXT(chosen(set, "connection-selector", "tier!=hot", NULL), "c,a");
    CHECK_TEXT(chosen(set, "connection-selector", "media=tape", NULL), "INVALID_ARGUMENT");
    static const char *const bad[] = {"", "media", "=ssd", "!=ssd", "media=ssd,,tier=hot"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK_TEXT(chosen(set, "connection-selector", bad[i], NULL), "INVALID_ARGUMENT");
    connection_set_release(set);
}

int
main(void)
{
    struct log log = {.fd = 2, .level = LOG_ERROR};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    struct error *error = runtime_open(&(struct runtime_options){.log = &log}, &runtime);
    CHECK(!error);
    test_names();
    test_wrong_files();
    test_labels();
    runtime_close(runtime);
    arena_clear(&arena);
    return check_report("connection choice");
}
