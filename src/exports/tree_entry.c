/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of manifests: see tree_entry.h; docs/repository-contents.md has the bytes. */
#include "exports/tree_entry.h"

#include <stdlib.h>

#include "base/memory.h"
#include "exports/varint.h"

#define RECENT_IDS 8
#define SECOND_NS 1000000000u

/* ---- keys ---- */

static void
append_path(struct buffer *key, const char *path)
{
    size_t start = key->size;
    buffer_append(key, path, strlen(path));
    for (size_t i = start; i < key->size; i++)
        if (key->bytes[i] == '/')
            key->bytes[i] = 0;
}

void
tree_entry_key(struct buffer *key, const char *directory, const char *name)
{
    key->size = 0;
    append_path(key, directory);
    buffer_append(key, "\0", 2);
    buffer_append(key, name, strlen(name));
}

/* Nothing is behind the root: a name may begin with any byte, but it is not that long. */
void
tree_entry_end_key(struct buffer *key, const char *directory)
{
    size_t size = directory[0] ? 1 : TREE_NAME_MAX + 1;
    key->size = 0;
    append_path(key, directory);
    memset(buffer_reserve(key, size), directory[0] ? 1 : 0xff, size);
    key->size += size;
}

int
tree_entry_compare(const void *a, size_t a_size, const void *b, size_t b_size)
{
    size_t common = a_size < b_size ? a_size : b_size;
    int order = common ? memcmp(a, b, common) : 0;
    return order ? order : a_size < b_size ? -1 : a_size > b_size;
}

bool
tree_entry_read_key(const void *key, size_t size, char directory[TREE_PATH_MAX + 1],
                    char name[TREE_NAME_MAX + 1])
{
    const char *middle = memmem(key, size, "\0", 2);
    if (!middle)
        return false;
    size_t before = (size_t)(middle - (const char *)key), behind = size - before - 2;
    if (before > TREE_PATH_MAX || behind > TREE_NAME_MAX || memchr(middle + 2, 0, behind))
        return false;
    memcpy(directory, key, before);
    directory[before] = 0;
    for (size_t i = 0; i < before; i++)
        if (!directory[i])
            directory[i] = '/';
    memcpy(name, middle + 2, behind);
    name[behind] = 0;
    return (!before || tree_entry_is_path(directory, before)) &&
           (!behind || tree_entry_is_name(name, behind));
}

bool
tree_entry_is_name(const char *name, size_t size)
{
    bool is_dots = (size == 1 && name[0] == '.') || (size == 2 && !memcmp(name, "..", 2));
    return size && size <= TREE_NAME_MAX && !is_dots && !memchr(name, '/', size);
}

bool
tree_entry_is_path(const char *path, size_t size)
{
    if (size > TREE_PATH_MAX)
        return false;
    for (size_t start = 0;;) {
        const char *slash = memchr(path + start, '/', size - start);
        size_t part = slash ? (size_t)(slash - path) - start : size - start;
        if (!tree_entry_is_name(path + start, part))
            return false;
        if (!slash)
            return true;
        start += part + 1;
    }
}

/* ---- ids ---- */

size_t
tree_ids_reserve(struct tree_ids *ids)
{
    if (ids->count == ids->capacity) {
        ids->capacity = ids->capacity ? ids->capacity * 2 : 64;
        ids->ids = memory_resize(ids->ids, ids->capacity * sizeof *ids->ids);
    }
    ids->ids[ids->count] = (struct repository_id){0};
    return ids->count++;
}

size_t
tree_ids_add(struct tree_ids *ids, const struct repository_id *id)
{
    for (size_t i = ids->count; i > 0 && i + RECENT_IDS > ids->count; i--)
        if (!memcmp(&ids->ids[i - 1], id, sizeof *id))
            return i - 1;
    size_t index = tree_ids_reserve(ids);
    ids->ids[index] = *id;
    return index;
}

void
tree_ids_clear(struct tree_ids *ids)
{
    free(ids->ids);
    *ids = (struct tree_ids){0};
}

/* ---- writing ---- */

static void
encode_part(struct buffer *out, struct tree_ids *ids, const struct tree_part *part)
{
    bool is_data = part->kind == TREE_DATA || part->kind == TREE_OPEN;
    buffer_append_byte(out, (uint8_t)(is_data ? TREE_DATA : part->kind));
    varint_put(out, part->size);
    if (part->kind != TREE_HOLE)
        varint_put(out, part->kind == TREE_OPEN ? ids->open : tree_ids_add(ids, &part->id));
    if (is_data)
        varint_put(out, part->offset);
}

void
tree_parts_encode(struct buffer *out, struct tree_ids *ids, const struct tree_part *parts,
                  size_t count)
{
    varint_put(out, count);
    for (size_t i = 0; i < count; i++)
        encode_part(out, ids, &parts[i]);
}

static void
encode_metadata(struct buffer *out, const struct tree_entry *entry)
{
    varint_put(out, entry->mode);
    varint_put(out, entry->user);
    varint_put(out, entry->group);
    varint_put_signed(out, entry->modified_s);
    varint_put(out, entry->modified_ns);
    varint_put_signed(out, entry->changed_s);
    varint_put(out, entry->changed_ns);
    varint_put(out, entry->links);
    varint_put(out, entry->attributes_size);
    buffer_append(out, entry->attributes, entry->attributes_size);
}

void
tree_entry_encode(struct buffer *out, struct tree_ids *ids, const struct tree_entry *entry)
{
    buffer_append_byte(out, (uint8_t)entry->kind);
    varint_put_text(out, entry->name, entry->name_size);
    varint_put(out, entry->inode);
    if (entry->kind == TREE_CHILD)
        return;
    encode_metadata(out, entry);
    if (entry->kind == TREE_SYMLINK)
        varint_put_text(out, entry->target, entry->target_size);
    if (entry->kind == TREE_BLOCK || entry->kind == TREE_CHARACTER)
        varint_put(out, entry->device);
    if (entry->kind == TREE_FILE) {
        varint_put(out, entry->size);
        tree_parts_encode(out, ids, entry->parts, entry->part_count);
    }
}

/* ---- reading ---- */

static bool
decode_part(struct varint_reader *in, const struct repository_id *ids, size_t id_count,
            bool allows_lists, struct tree_part *out)
{
    *out = (struct tree_part){
        .kind = (enum tree_part_kind)varint_get_up_to(in, allows_lists ? TREE_LIST : TREE_DATA),
        .size = varint_get_up_to(in, INT64_MAX)};
    if (out->kind != TREE_HOLE) {
        uint64_t index = varint_get(in);
        if (index >= id_count)
            return false;
        out->id = ids[index];
    }
    if (out->kind == TREE_DATA) {
        out->offset = varint_get_up_to(in, REPOSITORY_CHUNK_MAX);
        if (out->size > REPOSITORY_CHUNK_MAX - out->offset)
            return false;
    }
    return !in->is_bad && out->size;
}

bool
tree_parts_decode(struct varint_reader *in, const struct repository_id *ids, size_t id_count,
                  bool allows_lists, struct tree_part *parts, size_t *count, uint64_t *size)
{
    *count = (size_t)varint_get_up_to(in, TREE_PARTS_MAX);
    *size = 0;
    for (size_t i = 0; i < *count; i++) {
        if (!decode_part(in, ids, id_count, allows_lists, &parts[i]) ||
            parts[i].size > INT64_MAX - *size)
            return false;
        *size += parts[i].size;
    }
    return !in->is_bad;
}

bool
tree_attributes_next(struct varint_reader *in, const char **name, const uint8_t **value,
                     size_t *size)
{
    size_t name_size;
    if (in->at == in->end)
        return false;
    *name = varint_get_text(in, TREE_NAME_MAX, &name_size);
    *size = (size_t)varint_get_up_to(in, UINT16_MAX + 1);
    *value = varint_get_bytes(in, *size);
    return !in->is_bad && name_size;
}

static bool
decode_attributes(struct varint_reader *in, struct tree_entry *out)
{
    out->attributes_size = (size_t)varint_get_up_to(in, TREE_ATTRIBUTES_MAX);
    out->attributes = varint_get_bytes(in, out->attributes_size);
    if (in->is_bad)
        return false;
    struct varint_reader pairs = {out->attributes, out->attributes + out->attributes_size, false};
    const char *name;
    const uint8_t *value;
    size_t size;
    while (tree_attributes_next(&pairs, &name, &value, &size))
        ;
    return !pairs.is_bad && pairs.at == pairs.end;
}

static bool
decode_metadata(struct varint_reader *in, struct tree_entry *out)
{
    out->mode = (uint32_t)varint_get_up_to(in, 07777);
    out->user = (uint32_t)varint_get_up_to(in, UINT32_MAX - 1);
    out->group = (uint32_t)varint_get_up_to(in, UINT32_MAX - 1);
    out->modified_s = varint_get_signed(in);
    out->modified_ns = (uint32_t)varint_get_up_to(in, SECOND_NS - 1);
    out->changed_s = varint_get_signed(in);
    out->changed_ns = (uint32_t)varint_get_up_to(in, SECOND_NS - 1);
    out->links = varint_get(in);
    return decode_attributes(in, out);
}

static bool
decode_rest(struct varint_reader *in, const struct repository_id *ids, size_t id_count,
            struct tree_part *parts, struct tree_entry *out)
{
    uint64_t size;
    switch (out->kind) {
    case TREE_SYMLINK:
        out->target = varint_get_text(in, TREE_PATH_MAX, &out->target_size);
        return out->target_size > 0;
    case TREE_BLOCK:
    case TREE_CHARACTER:
        out->device = varint_get(in);
        return true;
    case TREE_FILE:
        out->size = varint_get_up_to(in, INT64_MAX);
        out->parts = parts;
        return tree_parts_decode(in, ids, id_count, true, parts, &out->part_count, &size) &&
               size == out->size;
    case TREE_DIRECTORY:
    case TREE_FIFO:
    case TREE_SOCKET:
        return true;
    case TREE_CHILD:
        break;
    }
    return false;
}

bool
tree_entry_decode(struct varint_reader *in, const struct repository_id *ids, size_t id_count,
                  struct tree_part *parts, struct tree_entry *out)
{
    const uint8_t *kind = varint_get_bytes(in, 1);
    *out = (struct tree_entry){.kind = kind ? (enum tree_kind) * kind : TREE_DIRECTORY};
    bool is_directory = out->kind == TREE_DIRECTORY;
    out->name = varint_get_text(in, is_directory ? TREE_PATH_MAX : TREE_NAME_MAX, &out->name_size);
    out->inode = varint_get(in);
    if (in->is_bad)
        return false;
    bool is_named = is_directory ? !out->name_size || tree_entry_is_path(out->name, out->name_size)
                                 : tree_entry_is_name(out->name, out->name_size);
    if (!is_named)
        return false;
    if (out->kind == TREE_CHILD)
        return true;
    return decode_metadata(in, out) && decode_rest(in, ids, id_count, parts, out) && !in->is_bad;
}
