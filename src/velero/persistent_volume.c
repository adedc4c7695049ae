/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and changing a PersistentVolume: see persistent_volume.h. */
#include "velero/persistent_volume.h"

#include <string.h>

#include "base/json.h"
#include "message/json_value.h"

/* ---- reading ---- */

static const char *
text_of(const struct json_value *value)
{
    const char *text = json_value_text(value);
    return text ? text : "";
}

static void
read_names(struct persistent_volume *volume)
{
    const struct json_value *metadata = json_value_member(volume->root, "metadata");
    const struct json_value *spec = json_value_member(volume->root, "spec");
    const struct json_value *csi = json_value_member(spec, "csi");
    volume->name = text_of(json_value_member(metadata, "name"));
    volume->driver = text_of(json_value_member(csi, "driver"));
    volume->handle = text_of(json_value_member(csi, "volumeHandle"));
}

struct error *
persistent_volume_parse(const void *json, size_t size, struct persistent_volume *out)
{
    struct json_value *root AUTO(json_value_cleanup) = NULL;
    struct error *error = json_value_parse(json, size, &root);
    if (error)
        return error_wrap(error, "the PersistentVolume");
    if (strcmp(text_of(json_value_member(root, "kind")), "PersistentVolume") != 0)
        return error_new(CODE_INVALID_ARGUMENT, "the object is no PersistentVolume");
    *out = (struct persistent_volume){.root = STEAL(root)};
    read_names(out);
    return NULL;
}

void
persistent_volume_clear(struct persistent_volume *volume)
{
    json_value_free(volume->root);
    *volume = (struct persistent_volume){0};
}

bool
persistent_volume_is_of(const struct persistent_volume *volume, const char *driver)
{
    return volume->handle[0] && strcmp(volume->driver, driver) == 0;
}

const char *
persistent_volume_annotation(const struct persistent_volume *volume, const char *name)
{
    const struct json_value *metadata = json_value_member(volume->root, "metadata");
    return text_of(json_value_member(json_value_member(metadata, "annotations"), name));
}

/* ---- changing ---- */

static struct error *
cannot_change(const char *what)
{
    return error_new(CODE_INVALID_ARGUMENT, "the PersistentVolume has no %s that can be changed",
                     what);
}

struct error *
persistent_volume_set_handle(struct persistent_volume *volume, const char *handle)
{
    struct json_value *csi = json_value_child(json_value_child(volume->root, "spec"), "csi");
    if (!json_value_set_text(csi, "volumeHandle", handle))
        return cannot_change("spec.csi.volumeHandle");
    read_names(volume);
    return NULL;
}

static struct error *
parse_own(struct buffer *json, struct json_value **out)
{
    struct error *error = json_value_parse(json->bytes, json->size, out);
    if (error)
        error->code = CODE_INTERNAL;
    return error;
}

/* The object `name` of `parent`; makes it if it is absent or null. */
static struct json_value *
make_child(struct json_value *parent, const char *name)
{
    struct json_value *child = json_value_child(parent, name);
    if (child && !json_value_is_null(child))
        return child;
    struct json_value *empty = NULL;
    error_free(json_value_parse("{}", 2, &empty));
    return json_value_set(parent, name, empty) ? json_value_child(parent, name) : NULL;
}

struct error *
persistent_volume_annotate(struct persistent_volume *volume, const char *name, const char *value)
{
    struct json_value *metadata = json_value_child(volume->root, "metadata");
    if (!value) {
        json_value_remove(json_value_child(metadata, "annotations"), name);
        return NULL;
    }
    if (!json_value_set_text(make_child(metadata, "annotations"), name, value))
        return cannot_change("metadata.annotations");
    return NULL;
}

static void
append_quoted(struct buffer *out, const char *text)
{
    json_append_string(out, text, strlen(text));
}

static void
append_term(struct buffer *out, const struct text_map *segments)
{
    buffer_append_text(out, "{\"matchExpressions\":[");
    for (size_t i = 0; i < segments->count; i++) {
        buffer_append_text(out, i ? ",{\"key\":" : "{\"key\":");
        append_quoted(out, segments->pairs[i].key);
        buffer_append_text(out, ",\"operator\":\"In\",\"values\":[");
        append_quoted(out, segments->pairs[i].value);
        buffer_append_text(out, "]}");
    }
    buffer_append_text(out, "]}");
}

struct error *
persistent_volume_set_nodes(struct persistent_volume *volume, const struct text_map *segments,
                            size_t count)
{
    struct json_value *spec = json_value_child(volume->root, "spec"), *affinity;
    struct buffer json AUTO(buffer_clear) = {0};
    if (!count) {
        json_value_remove(spec, "nodeAffinity");
        return NULL;
    }
    buffer_append_text(&json, "{\"required\":{\"nodeSelectorTerms\":[");
    for (size_t i = 0; i < count; i++) {
        buffer_append_text(&json, i ? "," : "");
        append_term(&json, &segments[i]);
    }
    buffer_append_text(&json, "]}}");
    struct error *error = parse_own(&json, &affinity);
    if (!error && !json_value_set(spec, "nodeAffinity", affinity))
        error = cannot_change("spec.nodeAffinity");
    return error;
}

uint8_t *
persistent_volume_print(const struct persistent_volume *volume, struct arena *arena, size_t *size)
{
    struct buffer json AUTO(buffer_clear) = {0};
    json_value_print(volume->root, &json);
    *size = json.size;
    return (uint8_t *)arena_copy(arena, json.bytes, json.size);
}
