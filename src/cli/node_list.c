/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for the nodes of a cluster: see node.h. */
#include "cli/node.h"

struct error *
node_ask_for_list(struct client *client, Skycap__V1__ListNodesReply **out)
{
    Skycap__V1__ListNodesRequest request = SKYCAP__V1__LIST_NODES_REQUEST__INIT;
    return client_ask(client, "skycap.v1.Nodes/List", &request, out);
}
