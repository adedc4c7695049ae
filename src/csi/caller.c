/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls: see caller.h. */
#include "csi/caller.h"

#include <string.h>

#include "rpc/http2/peer.h"

#define PREFIX "node."

struct error *
caller_check_node(const struct call *call, const char *node_id)
{
    const struct peer *peer = call_peer(call);
    const size_t skip = sizeof PREFIX - 1;
    if (!peer->name_count)
        return NULL;
    for (size_t i = 0; i < peer->name_count; i++)
        if (strncmp(peer->names[i], PREFIX, skip) == 0 &&
            strcmp(peer->names[i] + skip, node_id) == 0)
            return NULL;
    return error_new(CODE_PERMISSION_DENIED, "caller \"%s\" is not node \"%s\"", peer->names[0],
                     node_id);
}
