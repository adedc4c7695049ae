/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the router knows about each CSI method: the capability that it needs, and how its ids count.
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
    bool unknown_id_is_ok; /* an id that is none of ours is answered with OK: it does not exist */
    bool lacking_is_ok;    /* a driver without the capability counts as having done it */
    bool forgets_choice;   /* it deletes a volume whose connection labels may have selected */
    bool may_be_inline;    /* an id that is none of ours may be that of an inline volume */
    const char *required;  /* fields that must be set beside the id, if no driver is asked */
    /* Can the driver's answer be given? NULL: always. Never waits. */
    struct error *(*check)(const struct connection *connection, const ProtobufCMessage *reply);
};

/* A method without a rule needs nothing. */
const struct rule *rules_find(const char *path);

/*
 * Does the driver have the capability, as far as is known? False: `*error` says that it has not, or
 * is NULL where the call counts as done.
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
