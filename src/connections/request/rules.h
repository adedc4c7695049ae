/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the router knows about each CSI method: the capability that it needs, what unknown ids mean.
 */
#ifndef CONNECTIONS_REQUEST_RULES_H
#define CONNECTIONS_REQUEST_RULES_H

#include "connections/config/connection.h"

/* Which list of a driver's capabilities has the one that a method needs. */
enum rule_need { NEED_NOTHING, NEED_CONTROLLER, NEED_NODE, NEED_GROUP, NEED_SERVICE };

struct rule {
    const char *path;
    enum rule_need need;
    int capability;
    bool unknown_id_is_ok; /* a foreign id is answered with OK: there is nothing to undo */
    bool gone_is_ok;       /* and so is the driver's NOT_FOUND: what it deletes is not there */
    bool lacking_is_ok;    /* without the capability the call succeeds and does nothing */
    bool forgets_choice;   /* it deletes a volume that may have rows of a choice */
    bool begins_use;       /* afterwards the volume is in use on a node */
    bool may_be_inline;    /* a foreign id may be that of an inline volume */
    const char *required;  /* fields beside the id that are checked if no driver is called */
    /* Checks the driver's answer; may be NULL. Never waits. */
    struct error *(*check)(const struct connection *connection, const ProtobufCMessage *reply);
    /* With lacking_is_ok: the answer in place of the driver's; NULL: an empty one. */
    void (*fill_lacking)(const struct connection *connection, ProtobufCMessage *reply);
};

/* A method without a rule needs nothing. */
const struct rule *rules_find(const char *path);

/*
 * Does the driver have the capability, as far as is known? If not, `*error` is the answer; NULL:
 * the call succeeds and does nothing.
 */
bool rules_is_supported(const struct rule *rule, const struct connection *connection,
                        struct error **error);

/* INVALID_ARGUMENT: the driver lacks this method. */
MUST_CHECK struct error *rules_unsupported_error(const struct connection *connection,
                                                 const char *path);

/* INVALID_ARGUMENT: the request lacks a required field. For calls that no driver sees. */
MUST_CHECK struct error *rules_check_required(const struct rule *rule,
                                              const ProtobufCMessage *request);

#endif
