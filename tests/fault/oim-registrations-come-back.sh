#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 240
# Registry and controllers are killed and started again in turn, the registry also without its data, a controller also at another address: what is registered
# comes back by itself, and calls reach the right controller again.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../oim.sh"

make_machines registry control-0 control-1 spare host-0
issue user.admin host.node-0 host.node-1
start_registry
registry=$SERVER
start_controller control-0 node-0
control_0=$SERVER
start_controller control-1 node-1
control_1=$SERVER

kill_server() { # kill_server PID
    kill -KILL "$1"
    wait "$1" 2>/dev/null || true
}
reaches() { # reaches ID: a call of its host is answered by the controller itself
    [ "$(answer host-0 "host.$1" to_registry --controller "$1" "$ASK" '{"bdevName":"none"}')" = NOT_FOUND ]
}
check_reached() { # check_reached CASE
    local id
    for id in node-0 node-1; do
        if wait_for $((15 * SLOWER)) reaches "$id"; then passes "$1: $id is reached"; else fails "$1: $id is reached" "$(cat "$SKYCAP_TMP/answer")"; fi
    done
}
check_reached "at first"

for signal in KILL TERM; do
    kill "-$signal" "$registry"
    wait "$registry" || true
    check "$signal: without the registry nothing is passed on" "$(answer host-0 host.node-0 to_registry --controller node-0 "$ASK" '{"bdevName":"none"}')" UNAVAILABLE
    start_registry
    registry=$SERVER
    check "$signal: the entry is there at once" "$(address_of node-0)" "$(at control-0)"
    check_reached "$signal: the registry came back"
done

kill_server "$registry"
rm -r "$SKYCAP_TMP/registry.data"
start_registry
registry=$SERVER
check_reached "the registry came back with nothing"

kill_server "$control_0"
check "node-0 is down" "$(answer host-0 host.node-0 to_registry --controller node-0 "$ASK" '{"bdevName":"none"}')" UNAVAILABLE
check "node-1 is not" "$(answer host-0 host.node-1 to_registry --controller node-1 "$ASK" '{"bdevName":"none"}')" NOT_FOUND
start_controller control-0 node-0
control_0=$SERVER
check_reached "node-0 came back"

kill_server "$control_1"
start_controller spare node-1
wait_until_registered node-1 "$(at spare)"
check_reached "node-1 came back elsewhere"

kill_server "$control_0"
kill_server "$registry"
start_controller control-0 node-0 # first the controller: it waits for the registry
tries() { tail -n 5 "$LOG" | grep -q 'cannot register; retrying'; }
wait_for $((10 * SLOWER)) tries || fail "the controller does not say that it cannot register"
start_registry
check_reached "all came back in another order"
finish
