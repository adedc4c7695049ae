/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of CSI messages that the router translates: ids and topologies. A field name means the
 * same in every message, so a list of names is enough to find the ids in content sources, groups
 * and lists, also in messages of later CSI versions.
 */
#ifndef CONNECTIONS_REQUEST_CSI_FIELDS_H
#define CONNECTIONS_REQUEST_CSI_FIELDS_H

#include <stdbool.h>

#include "base/error.h"
#include "csi/ids.h"
#include "message/service.h"

enum id_field {
    ID_FIELD_VOLUME,
    ID_FIELD_SNAPSHOT,
    ID_FIELD_GROUP,
    ID_FIELD_NODE,
    ID_FIELD_SOURCE_VOLUME, /* of another object; in an answer the source may be gone */
    ID_FIELD_SOURCE_SNAPSHOT,
};

/* The kind of the ids in a field; not for ID_FIELD_NODE. */
enum id_kind csi_fields_kind(enum id_field field);

/*
 * What to do with the fields of a message. A NULL function skips its fields; an error ends the
 * walk.
 */
struct csi_visitor {
    void *context;
    /* May replace *id, which is never empty. */
    struct error *(*visit_id)(void *context, enum id_field field, char **id);
    /*
     * The message has a topology, a list of them or a requirement. Called after its ids are
     * visited.
     */
    struct error *(*visit_topology)(void *context, ProtobufCMessage *owner);
};

/* Visits the message and all messages in it. Any thread; never waits by itself. */
MUST_CHECK struct error *csi_fields_walk(ProtobufCMessage *message,
                                         const struct csi_visitor *visitor);

/* Can a message of this type hold an id? */
bool csi_fields_has_ids(const ProtobufCMessageDescriptor *type);

#endif
