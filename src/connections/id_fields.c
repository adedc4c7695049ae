/* SPDX-License-Identifier: Apache-2.0 */
/* Ids in messages: see id_fields.h. */
#include "connections/id_fields.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/csi.pb-c.h"

#define DEEPEST 8 /* CSI's own messages go to 4; a type that held itself would go on for ever */

static const struct {
    const char *name;
    enum id_field field;
} names[] = {
    {"volume_id", ID_FIELD_VOLUME},
    {"source_volume_id", ID_FIELD_SOURCE_VOLUME},
    {"source_volume_ids", ID_FIELD_SOURCE_VOLUME},
    {"snapshot_id", ID_FIELD_SNAPSHOT},
    {"snapshot_ids", ID_FIELD_SNAPSHOT},
    {"base_snapshot_id", ID_FIELD_SNAPSHOT},
    {"target_snapshot_id", ID_FIELD_SNAPSHOT},
    {"group_snapshot_id", ID_FIELD_GROUP},
    {"node_id", ID_FIELD_NODE},
    {"published_node_ids", ID_FIELD_NODE},
};

static bool
find_name(const ProtobufCFieldDescriptor *field, enum id_field *out)
{
    if (field->type != PROTOBUF_C_TYPE_STRING)
        return false;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(field->name, names[i].name) == 0) {
            *out = names[i].field;
            return true;
        }
    }
    return false;
}

static bool
type_has_ids(const ProtobufCMessageDescriptor *type, unsigned depth)
{
    enum id_field ignored;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (find_name(field, &ignored))
            return true;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth < DEEPEST &&
            type_has_ids(field->descriptor, depth + 1))
            return true;
    }
    return false;
}

bool
id_fields_are_in(const ProtobufCMessageDescriptor *type)
{
    return type_has_ids(type, 0);
}

/* ---- what is known of types ---- */

/* The fields of a type that are ids, or messages that hold some. */
struct places {
    const ProtobufCMessageDescriptor *type;
    size_t count;
    struct place {
        const ProtobufCFieldDescriptor *field;
        bool is_id; /* else a message */
        enum id_field id;
    } items[];
};

/* Names are compared once for each type, when it is first met, not in every message. There are 150 types or so. */
#define KNOWN_TYPES 1024
static _Atomic(struct places *) known[KNOWN_TYPES];

static struct places *
make_places(const ProtobufCMessageDescriptor *type)
{
    struct places *places = memory_new(sizeof *places + type->n_fields * sizeof(struct place));
    *places = (struct places){type, 0};
    for (unsigned i = 0; i < type->n_fields; i++) {
        struct place place = {.field = &type->fields[i]};
        place.is_id = find_name(place.field, &place.id);
        if (type == &csi__v1__volume_content_source__volume_source__descriptor)
            place.id = ID_FIELD_SOURCE_VOLUME;
        if (type == &csi__v1__volume_content_source__snapshot_source__descriptor)
            place.id = ID_FIELD_SOURCE_SNAPSHOT;
        if (place.is_id || (place.field->type == PROTOBUF_C_TYPE_MESSAGE &&
                            type_has_ids(place.field->descriptor, 0)))
            places->items[places->count++] = place;
    }
    return places;
}

/* Any thread, without a lock: what stands in the table stays there. */
static const struct places *
find_places(const ProtobufCMessageDescriptor *type)
{
    for (size_t i = (uintptr_t)type / sizeof *type;; i++) {
        _Atomic(struct places *) *slot = &known[i % KNOWN_TYPES];
        struct places *found = atomic_load_explicit(slot, memory_order_acquire);
        if (!found) {
            struct places *made = make_places(type);
            if (atomic_compare_exchange_strong(slot, &found, made))
                return made;
            free(made); /* another thread was faster */
        }
        if (found->type == type)
            return found;
    }
}

/* ---- walking ---- */

struct walk {
    id_fields_visit *visit;
    void *context;
};

/* Members of one field: the single one, if it is the chosen of its oneof, or all of a repeated one. */
struct members {
    char *first;
    size_t count;
};

static struct members
find_members(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    char *place = (char *)message + field->offset;
    uint32_t *quantifier = (uint32_t *)((char *)message + field->quantifier_offset);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return (struct members){*(char **)place, *(size_t *)quantifier};
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *quantifier != field->id)
        return (struct members){NULL, 0};
    return (struct members){place, 1};
}

static struct error *
visit_texts(const struct walk *walk, struct members members, enum id_field field)
{
    struct error *error = NULL;
    char **texts = (char **)members.first;
    for (size_t i = 0; i < members.count && !error; i++)
        if (texts[i] && texts[i][0])
            error = walk->visit(walk->context, field, &texts[i]);
    return error;
}

static struct error *
walk_message(const struct walk *walk, ProtobufCMessage *message, unsigned depth)
{
    const struct places *places = find_places(message->descriptor);
    struct error *error = NULL;
    for (size_t i = 0; i < places->count && !error; i++) {
        const struct place *place = &places->items[i];
        struct members members = find_members(message, place->field);
        if (place->is_id) {
            error = visit_texts(walk, members, place->id);
        } else if (depth < DEEPEST) {
            ProtobufCMessage **inner = (ProtobufCMessage **)members.first;
            for (size_t k = 0; k < members.count && !error; k++)
                if (inner[k])
                    error = walk_message(walk, inner[k], depth + 1);
        }
    }
    return error;
}

struct error *
id_fields_walk(ProtobufCMessage *message, id_fields_visit *visit, void *context)
{
    struct walk walk = {visit, context};
    return walk_message(&walk, message, 0);
}
