/* SPDX-License-Identifier: Apache-2.0 */
/* Ids and topologies in messages: see csi_fields.h. */
#include "connections/request/csi_fields.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "proto/csi.pb-c.h"

#define MAX_DEPTH 8 /* CSI's messages need 4; the limit is for recursive types */

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

enum id_kind
csi_fields_kind(enum id_field field)
{
    switch (field) {
    case ID_FIELD_VOLUME:
    case ID_FIELD_SOURCE_VOLUME:
        return ID_VOLUME;
    case ID_FIELD_SNAPSHOT:
    case ID_FIELD_SOURCE_SNAPSHOT:
        return ID_SNAPSHOT;
    case ID_FIELD_GROUP:
    case ID_FIELD_NODE:
        break;
    }
    return ID_GROUP;
}

/* ---- types ---- */

static bool
has_topology(const ProtobufCMessageDescriptor *type)
{
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        if (field->type == PROTOBUF_C_TYPE_MESSAGE &&
            (field->descriptor == &csi__v1__topology__descriptor ||
             field->descriptor == &csi__v1__topology_requirement__descriptor))
            return type != &csi__v1__topology_requirement__descriptor; /* its owner is visited */
    }
    return false;
}

static bool
has_own_id(const ProtobufCMessageDescriptor *type)
{
    enum id_field ignored;
    for (unsigned i = 0; i < type->n_fields; i++)
        if (find_name(&type->fields[i], &ignored))
            return true;
    return false;
}

/* Is it true of the type, or of a type in it? */
static bool
is_true_within(const ProtobufCMessageDescriptor *type,
               bool (*is_true)(const ProtobufCMessageDescriptor *), unsigned depth)
{
    if (is_true(type))
        return true;
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE && depth < MAX_DEPTH &&
            is_true_within(type->fields[i].descriptor, is_true, depth + 1))
            return true;
    return false;
}

bool
csi_fields_has_ids(const ProtobufCMessageDescriptor *type)
{
    return is_true_within(type, has_own_id, 0);
}

/* ---- plans ---- */

/* The fields to visit in messages of one type. */
struct plan {
    const ProtobufCMessageDescriptor *type;
    bool has_topology;
    size_t count;
    struct step {
        const ProtobufCFieldDescriptor *field;
        bool is_id; /* else it is a message with fields to visit */
        enum id_field id;
    } steps[];
};

/* Plans by type: names are compared once per type, not in every message. CSI has about 150. */
#define KNOWN_TYPES 1024
static _Atomic(struct plan *) known[KNOWN_TYPES];

static struct plan *
make_plan(const ProtobufCMessageDescriptor *type)
{
    struct plan *plan = memory_new(sizeof *plan + type->n_fields * sizeof(struct step));
    *plan = (struct plan){type, has_topology(type), 0};
    for (unsigned i = 0; i < type->n_fields; i++) {
        struct step step = {.field = &type->fields[i]};
        step.is_id = find_name(step.field, &step.id);
        if (type == &csi__v1__volume_content_source__volume_source__descriptor)
            step.id = ID_FIELD_SOURCE_VOLUME;
        if (type == &csi__v1__volume_content_source__snapshot_source__descriptor)
            step.id = ID_FIELD_SOURCE_SNAPSHOT;
        if (step.is_id || (step.field->type == PROTOBUF_C_TYPE_MESSAGE &&
                           (is_true_within(step.field->descriptor, has_own_id, 0) ||
                            is_true_within(step.field->descriptor, has_topology, 0))))
            plan->steps[plan->count++] = step;
    }
    return plan;
}

/* Made when a type is first met. Any thread, without a lock: entries of the table never change. */
static const struct plan *
plan_for(const ProtobufCMessageDescriptor *type)
{
    for (size_t i = (uintptr_t)type / sizeof *type;; i++) {
        _Atomic(struct plan *) *slot = &known[i % KNOWN_TYPES];
        struct plan *found = atomic_load_explicit(slot, memory_order_acquire);
        if (!found) {
            struct plan *made = make_plan(type);
            if (atomic_compare_exchange_strong(slot, &found, made))
                return made;
            free(made); /* another thread was faster */
        }
        if (found->type == type)
            return found;
    }
}

/* ---- walking ---- */

/* The values of one field: all of a repeated one; none if another member of its oneof is set. */
struct values {
    char *first;
    size_t count;
};

static struct values
find_values(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    char *at = (char *)message + field->offset;
    uint32_t *quantifier = (uint32_t *)((char *)message + field->quantifier_offset);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return (struct values){*(char **)at, *(size_t *)quantifier};
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *quantifier != field->id)
        return (struct values){NULL, 0};
    return (struct values){at, 1};
}

static struct error *
visit_ids(const struct csi_visitor *visitor, struct values values, enum id_field field)
{
    struct error *error = NULL;
    char **ids = (char **)values.first;
    for (size_t i = 0; visitor->visit_id && i < values.count && !error; i++)
        if (ids[i] && ids[i][0])
            error = visitor->visit_id(visitor->context, field, &ids[i]);
    return error;
}

static struct error *walk_message(const struct csi_visitor *visitor, ProtobufCMessage *message,
                                  unsigned depth);

static struct error *
walk_messages(const struct csi_visitor *visitor, struct values values, unsigned depth)
{
    struct error *error = NULL;
    ProtobufCMessage **messages = (ProtobufCMessage **)values.first;
    for (size_t i = 0; depth <= MAX_DEPTH && i < values.count && !error; i++)
        if (messages[i])
            error = walk_message(visitor, messages[i], depth);
    return error;
}

static struct error *
walk_message(const struct csi_visitor *visitor, ProtobufCMessage *message, unsigned depth)
{
    const struct plan *plan = plan_for(message->descriptor);
    struct error *error = NULL;
    for (size_t i = 0; i < plan->count && !error; i++) {
        const struct step *step = &plan->steps[i];
        struct values values = find_values(message, step->field);
        error = step->is_id ? visit_ids(visitor, values, step->id)
                            : walk_messages(visitor, values, depth + 1);
    }
    if (!error && plan->has_topology && visitor->visit_topology)
        error = visitor->visit_topology(visitor->context, message);
    return error;
}

struct error *
csi_fields_walk(ProtobufCMessage *message, const struct csi_visitor *visitor)
{
    return walk_message(visitor, message, 0);
}
