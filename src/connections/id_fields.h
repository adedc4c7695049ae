/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where ids stand in CSI's messages. A field means the same wherever its name occurs, so a list of names is enough: whatever message is
 * walked through, ids in content sources, groups, lists of entries and of nodes are found, those of later versions of CSI too.
 */
#ifndef CONNECTIONS_ID_FIELDS_H
#define CONNECTIONS_ID_FIELDS_H

#include "message/service.h"
#include <stdbool.h>

#include "base/error.h"

enum id_field {
    ID_FIELD_VOLUME,
    ID_FIELD_SNAPSHOT,
    ID_FIELD_GROUP,
    ID_FIELD_NODE,
    ID_FIELD_SOURCE_VOLUME, /* that something was made of; in an answer it need not be there any more */
    ID_FIELD_SOURCE_SNAPSHOT,
};

/* Puts something else into *id, which is not empty, or leaves it. An error ends the walk. */
typedef struct error *id_fields_visit(void *context, enum id_field field, char **id);

/* Visits every id in the message and the messages in it that is not empty. */
MUST_CHECK struct error *id_fields_walk(ProtobufCMessage *message, id_fields_visit *visit,
                                        void *context);

/* Can a message of this type hold an id? */
bool id_fields_are_in(const ProtobufCMessageDescriptor *type);

#endif
