#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page names a node that is registered but cannot be reached, with the reason and the view that shows more.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../page.sh"
requires curl

# Its registration lasts for a while.
make_cluster 2 --registry-delay 30 --http 127.0.0.1:9100
attention() {
    on node-1 curl --silent --max-time 20 --noproxy '*' http://127.0.0.1:9100/api/v1/overview | value '[tuple(one.values()) for one in v["attention"]]'
}
expect_equal "while all is well" "$(attention)" "[]"
signal_node 2 STOP
at_node 1 volume list >/dev/null 2>&1 || true
expect_equal "with a node that does not answer" "$(attention)" "[('node \"node-2\"', 'it cannot be reached', 'nodes')]"
signal_node 2 CONT
