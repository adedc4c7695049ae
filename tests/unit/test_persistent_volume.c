/* SPDX-License-Identifier: Apache-2.0 */
/* src/velero/persistent_volume.c. */
#include "velero/persistent_volume.h"

#include "check.h"

#define HEAD "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\","
#define OURS                                                                                       \
    HEAD "\"metadata\":{\"name\":\"pv-1\",\"labels\":{\"a\":\"\\u00e4\"}},\"spec\":{\"csi\":{"     \
         "\"driver\":\"csi.skycap.dev\",\"volumeHandle\":\"v:local/1\",\"fsType\":\"ext4\"},"      \
         "\"capacity\":{\"storage\":\"1Gi\"}},\"status\":{\"n\":9007199254740993}}"

static struct error *
parse(const char *text, struct persistent_volume *out)
{
    return persistent_volume_parse(text, strlen(text), out);
}

static void
check_print(const struct persistent_volume *volume, const char *expected)
{
    struct arena arena AUTO(arena_clear);
    arena_init(&arena, NULL, 0, SIZE_MAX);
    size_t size;
    const char *text = (const char *)persistent_volume_print(volume, &arena, &size);
    CHECK_NUMBER(size, strlen(text));
    CHECK_TEXT(text, expected);
}

static void
names_are_found(void)
{
    struct persistent_volume volume AUTO(persistent_volume_clear) = {0};
    CHECK(!parse(OURS, &volume));
    CHECK_TEXT(volume.name, "pv-1");
    CHECK_TEXT(volume.driver, "csi.skycap.dev");
    CHECK_TEXT(volume.handle, "v:local/1");
    CHECK(persistent_volume_is_of(&volume, "csi.skycap.dev"));
    CHECK(!persistent_volume_is_of(&volume, "csi.skycap"));
    CHECK_TEXT(persistent_volume_annotation(&volume, "x"), "");
}

static void
what_is_not_changed_stays(void)
{
    struct persistent_volume volume AUTO(persistent_volume_clear) = {0};
    CHECK(!parse(OURS, &volume));
    CHECK(!persistent_volume_set_handle(&volume, "v:local/22"));
    CHECK_TEXT(volume.handle, "v:local/22");
    check_print(&volume,
                HEAD "\"metadata\":{\"name\":\"pv-1\",\"labels\":{\"a\":\"\xc3\xa4\"}},\"spec\":{"
                     "\"csi\":{\"driver\":\"csi.skycap.dev\",\"volumeHandle\":\"v:local/22\","
                     "\"fsType\":\"ext4\"},\"capacity\":{\"storage\":\"1Gi\"}},"
                     "\"status\":{\"n\":9007199254740993}}");
}

static void
annotations_come_and_go(void)
{
    static const char *const before[] = {"", ",\"annotations\":{}", ",\"annotations\":null"};
    for (size_t i = 0; i < COUNT_OF(before); i++) {
        char text[200];
        snprintf(text, sizeof text, HEAD "\"metadata\":{\"name\":\"p\"%s}}", before[i]);
        struct persistent_volume volume AUTO(persistent_volume_clear) = {0};
        CHECK(!parse(text, &volume));
        CHECK(!persistent_volume_annotate(&volume, "a/b", "c"));
        CHECK_TEXT(persistent_volume_annotation(&volume, "a/b"), "c");
        check_print(&volume, HEAD "\"metadata\":{\"name\":\"p\",\"annotations\":{\"a/b\":\"c\"}}}");
        CHECK(!persistent_volume_annotate(&volume, "a/b", NULL));
        check_print(&volume, HEAD "\"metadata\":{\"name\":\"p\",\"annotations\":{}}}");
    }
}

static void
nodes_replace_nodes(void)
{
    struct text_pair one[] = {{"k1", "a"}, {"k2", "b\""}}, other[] = {{"k1", "c"}};
    const struct text_map segments[] = {{one, 2, 2}, {other, 1, 1}};
    struct persistent_volume volume AUTO(persistent_volume_clear) = {0};
    CHECK(!parse(HEAD "\"spec\":{\"nodeAffinity\":{\"required\":7},\"x\":1.5}}", &volume));
    CHECK(!persistent_volume_set_nodes(&volume, segments, 2));
    check_print(&volume,
                HEAD "\"spec\":{\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":["
                     "{\"matchExpressions\":[{\"key\":\"k1\",\"operator\":\"In\",\"values\":"
                     "[\"a\"]},{\"key\":\"k2\",\"operator\":\"In\",\"values\":[\"b\\\"\"]}]},"
                     "{\"matchExpressions\":[{\"key\":\"k1\",\"operator\":\"In\",\"values\":"
                     "[\"c\"]}]}]}},\"x\":1.5}}");
    CHECK(!persistent_volume_set_nodes(&volume, NULL, 0));
    check_print(&volume, HEAD "\"spec\":{\"x\":1.5}}");
}

static void
check_refused(struct error *error, const char *text)
{
    CHECK(error && error->code == CODE_INVALID_ARGUMENT);
    CHECK(error && strstr(error->message, text));
    error_free(error);
}

static void
odd_objects_are_refused(void)
{
    static const char *const wrong[] = {
        "{}", "[]", "null", "7", "{\"kind\":\"Pod\"}", "{\"kind\":[\"PersistentVolume\"]}"};
    struct persistent_volume volume = {0};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        check_refused(parse(wrong[i], &volume), "is no PersistentVolume");
    check_refused(parse("", &volume), "not valid JSON");
    check_refused(parse(HEAD "\"kind\":\"PersistentVolume\"}", &volume), "not valid JSON");
    CHECK(!volume.root);
}

/* Members that have another type than they should have. */
static void
odd_members_are_no_volumes(void)
{
    static const char *const odd[] = {
        HEAD "\"metadata\":[],\"spec\":7}",
        HEAD "\"metadata\":{\"name\":7},\"spec\":{\"csi\":[]}}",
        HEAD "\"spec\":{\"csi\":{\"driver\":\"csi.skycap.dev\",\"volumeHandle\":\"\"}}}",
        HEAD "\"spec\":{\"csi\":{\"driver\":\"csi.skycap.dev\",\"volumeHandle\":1}}}",
        HEAD "\"spec\":{\"nfs\":{}}}",
    };
    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        struct persistent_volume volume AUTO(persistent_volume_clear) = {0};
        CHECK(!parse(odd[i], &volume));
        CHECK_TEXT(volume.name, "");
        CHECK(!persistent_volume_is_of(&volume, "csi.skycap.dev"));
    }
    struct persistent_volume volume AUTO(persistent_volume_clear) = {0};
    CHECK(!parse(odd[0], &volume));
    check_refused(persistent_volume_set_handle(&volume, "x"), "spec.csi.volumeHandle");
    check_refused(persistent_volume_annotate(&volume, "a", "b"), "metadata.annotations");
    CHECK(!persistent_volume_annotate(&volume, "a", NULL));
    struct text_pair pair = {"a", "b"};
    const struct text_map segments = {&pair, 1, 1};
    check_refused(persistent_volume_set_nodes(&volume, &segments, 1), "spec.nodeAffinity");
    check_refused(persistent_volume_set_handle(&volume, "\xff"), "spec.csi.volumeHandle");
}

int
main(void)
{
    names_are_found();
    what_is_not_changed_stays();
    annotations_come_and_go();
    nodes_replace_nodes();
    odd_objects_are_refused();
    odd_members_are_no_volumes();
    return check_report("test_persistent_volume");
}
