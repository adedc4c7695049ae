/* SPDX-License-Identifier: Apache-2.0 */
/* src/velero/plugin_settings.c and plugin_error.c. */
#include "velero/plugin_settings.h"

#include <stdlib.h>

#include "check.h"
#include "message/message_bytes.h"
#include "proto/status.pb-c.h"
#include "proto/velero_v1.pb-c.h"
#include "velero/plugin_error.h"

static struct arena arena;

static struct error *
read_pairs(struct text_pair *pairs, size_t count, struct plugin_settings *out)
{
    struct text_map map = text_map_of(pairs, count, &arena);
    return plugin_settings_read(&map, &arena, out);
}

#define READ(out, ...)                                                                             \
    read_pairs((struct text_pair[]){__VA_ARGS__},                                                  \
               sizeof((struct text_pair[]){__VA_ARGS__}) / sizeof(struct text_pair), (out))

static void
check_error(struct error *error, enum code code, const char *text)
{
    CHECK(error && error->code == code);
    CHECK(error && strstr(error->message, text));
    error_free(error);
}

static void
the_configuration_comes_before_the_environment(void)
{
    struct plugin_settings settings;
    check_error(READ(&settings, {"driver", "x"}), CODE_FAILED_PRECONDITION, "SKYCAP_ENDPOINT");
    CHECK(!plugin_settings_has_environment());
    setenv("SKYCAP_ENDPOINT", "unix:/env", 1);
    setenv("SKYCAP_DRIVER", "env.driver", 1);
    CHECK(plugin_settings_has_environment());
    CHECK(!plugin_settings_read(NULL, &arena, &settings));
    CHECK_TEXT(settings.endpoint, "unix:/env");
    CHECK_TEXT(settings.driver, "env.driver");
    CHECK_NUMBER(settings.timeout_ms, 30000);
    CHECK(!READ(&settings, {"endpoint", "unix:/map"}, {"driver", ""}, {"timeout", "7"}));
    CHECK_TEXT(settings.endpoint, "unix:/map");
    CHECK_TEXT(settings.driver, "env.driver");
    CHECK_NUMBER(settings.timeout_ms, 7000);
    unsetenv("SKYCAP_DRIVER");
    CHECK(!READ(&settings, {"credentialsFile", "/x"}));
    CHECK_TEXT(settings.driver, "csi.skycap.dev");
    setenv("SKYCAP_ENDPOINT", "", 1);
    CHECK(!plugin_settings_has_environment());
}

static void
mistakes_are_named(void)
{
    struct plugin_settings settings;
    check_error(READ(&settings, {"endpoint", "x:1"}, {"zone", "1"}, {"area", "2"}),
                CODE_INVALID_ARGUMENT, "config has invalid keys area, zone; known are endpoint");
    check_error(READ(&settings, {"endpoint", "x:1"}, {"tls-ca", "a"}), CODE_INVALID_ARGUMENT,
                "tls-ca, tls-cert and tls-key go together");
    static const char *const times[] = {"0", "-1", "3601", "10s", "many", "99999999999999999999"};
    for (size_t i = 0; i < COUNT_OF(times); i++)
        check_error(READ(&settings, {"endpoint", "x:1"}, {"timeout", times[i]}),
                    CODE_INVALID_ARGUMENT, "is no number of seconds from 1 to 3600");
}

static void
settings_are_compared(void)
{
    struct plugin_settings a, b;
    CHECK(!READ(&a, {"endpoint", "x:1"}));
    b = plugin_settings_copy(&a, &arena);
    CHECK(plugin_settings_equal(&a, &b) && a.endpoint != b.endpoint);
    CHECK(!READ(&b, {"endpoint", "x:1"}, {"tls-name", "y"}));
    CHECK(!plugin_settings_equal(&a, &b));
}

static void
an_error_tells_where_it_comes_from(void)
{
    CHECK(!PLUGIN_ERROR(NULL));
    struct error *error =
        plugin_error_locate(error_new(CODE_NOT_FOUND, "gone"), "../src/a.c", 42, "find");
    const Google__Rpc__Status *status = (const Google__Rpc__Status *)message_bytes_unpack(
        &google__rpc__status__descriptor, error->details, error->details_size, &arena);
    CHECK_NUMBER(status->code, CODE_NOT_FOUND);
    CHECK_TEXT(status->message, "gone");
    CHECK_NUMBER(status->n_details, 1);
    CHECK_TEXT(status->details[0]->type_url, "type.googleapis.com/generated.Stack");
    const Generated__Stack *stack = (const Generated__Stack *)message_bytes_unpack(
        &generated__stack__descriptor, status->details[0]->value.data,
        status->details[0]->value.len, &arena);
    CHECK_NUMBER(stack->n_frames, 1);
    CHECK_TEXT(stack->frames[0]->file, "src/a.c");
    CHECK_NUMBER(stack->frames[0]->line, 42);
    CHECK_TEXT(stack->frames[0]->function, "find");
    error_free(error);
}

int
main(void)
{
    arena_init(&arena, NULL, 0, SIZE_MAX);
    unsetenv("SKYCAP_ENDPOINT");
    the_configuration_comes_before_the_environment();
    mistakes_are_named();
    settings_are_compared();
    an_error_tells_where_it_comes_from();
    arena_clear(&arena);
    return check_report("test_plugin_settings");
}
