/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of skycap node. */
#ifndef CLI_NODE_H
#define CLI_NODE_H

#include "cli/client.h"
#include "proto/cluster.pb-c.h"

/* The nodes, and how each of them is; in the client's arena. node_list.c. */
MUST_CHECK struct error *node_ask_for_list(struct client *client, Skycap__V1__ListNodesReply **out);

extern const struct command node_drain_command;
extern const struct command node_forget_command;

#endif
