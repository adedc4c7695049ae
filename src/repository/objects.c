/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the place of objects by its URL: see objects.h. */
#include "repository/objects.h"

#include <string.h>

#define NODE_SCHEME "node://"
#define NODE_BYTES 256u

static struct error *
open_node(const struct repository_options *options, bool creates, struct objects **out)
{
    char node[NODE_BYTES];
    const char *place = options->url + sizeof NODE_SCHEME - 1;
    size_t size = strcspn(place, "/");
    const char *name = place + size + (place[size] == '/');
    if (!size || size >= sizeof node || !name[0] || strchr(name, '/'))
        return error_new(CODE_INVALID_ARGUMENT, "\"%s\": write node://NODE/NAME", options->url);
    if (!options->nodes)
        return error_new(CODE_FAILED_PRECONDITION,
                         "%s: this server is not a node of a cluster; start it with --registry",
                         options->url);
    memcpy(node, place, size);
    node[size] = '\0';
    struct repository_node what = {node, name, creates, options->is_stopping};
    return options->nodes->open(options->nodes->context, &what, out);
}

struct error *
objects_open(const struct repository_options *options, bool creates, struct objects **out)
{
    *out = NULL;
    if (!strncmp(options->url, "file:///", 8))
        return objects_directory_open(options->url + 7, creates, out);
    if (!strncmp(options->url, "s3://", 5))
        return objects_s3_open(options, out);
    if (!strncmp(options->url, NODE_SCHEME, sizeof NODE_SCHEME - 1))
        return open_node(options, creates, out);
    return error_new(CODE_INVALID_ARGUMENT,
                     "\"%s\" is no repository: write file:///PATH, s3://HOST[:PORT]/BUCKET or "
                     "node://NODE/NAME",
                     options->url);
}

void
objects_close(struct objects *objects)
{
    if (objects)
        objects->ops->close(objects);
}

struct error *
objects_put(struct objects *objects, enum object_kind kind, const struct object_name *name,
            const void *bytes, size_t size, enum objects_put how)
{
    char key[OBJECT_KEY_BYTES];
    object_key_print(kind, name, key);
    return error_wrap(objects->ops->put(objects, key, bytes, size, how), "put the object %s", key);
}

struct error *
objects_sync(struct objects *objects)
{
    return objects->ops->sync(objects);
}

struct error *
objects_get(struct objects *objects, enum object_kind kind, const struct object_name *name,
            uint64_t offset, void *bytes, size_t size)
{
    char key[OBJECT_KEY_BYTES];
    object_key_print(kind, name, key);
    return error_wrap(objects->ops->get(objects, key, offset, bytes, size), "read the object %s",
                      key);
}

struct error *
objects_size(struct objects *objects, enum object_kind kind, const struct object_name *name,
             uint64_t *size)
{
    char key[OBJECT_KEY_BYTES];
    uint64_t age_ms;
    object_key_print(kind, name, key);
    return error_wrap(objects->ops->size(objects, key, size, &age_ms), "look at the object %s",
                      key);
}

struct error *
objects_age(struct objects *objects, enum object_kind kind, const struct object_name *name,
            uint64_t *age_ms)
{
    char key[OBJECT_KEY_BYTES];
    uint64_t size;
    object_key_print(kind, name, key);
    return error_wrap(objects->ops->size(objects, key, &size, age_ms), "look at the object %s",
                      key);
}

struct error *
objects_list(struct objects *objects, enum object_kind kind, objects_each *each, void *context)
{
    return objects->ops->list(objects, kind, each, context);
}

static struct error *
collect_name(const struct object_name *name, uint64_t size, void *context)
{
    (void)size;
    buffer_append(context, name->bytes, sizeof name->bytes);
    return NULL;
}

struct error *
objects_list_names(struct objects *objects, enum object_kind kind, struct buffer *names)
{
    return objects_list(objects, kind, collect_name, names);
}

struct object_name
objects_name_at(const struct buffer *names, size_t at)
{
    struct object_name name;
    memcpy(name.bytes, names->bytes + at, sizeof name.bytes);
    return name;
}

struct error *
objects_delete(struct objects *objects, enum object_kind kind, const struct object_name *name)
{
    char key[OBJECT_KEY_BYTES];
    object_key_print(kind, name, key);
    return error_wrap(objects->ops->delete (objects, key), "delete the object %s", key);
}
