#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The kubelet asks NodeGetInfo once, when a driver registers. Where connections come, or drivers are reached at last, the answer is another one: skycap registers again. It does
# not where the answer is the same, not more often than every 10 s, and not while it has no answer.
source "$(dirname "$0")/../connections.sh"
need_peers go

registry=$SKYCAP_TMP/plugins_registry
socket=$registry/test.skycap.dev-reg.sock
events=$SKYCAP_TMP/kubelet.events
mkdir "$registry"

start_kubelet() {
    setpriv --pdeathsig KILL -- /usr/bin/python3 "$SKYCAP_ROOT/tests/kubelet.py" "$SKYCAP" "$registry" >>"$events" 2>&1 &
    # shellcheck disable=SC2034 # connections.sh ends it
    children["kubelet"]=$!
}
start_node() {
    start_connected --node-id worker-1 --driver-name test.skycap.dev --kubelet-registration-dir "$registry"
}
# of_kubelet EXPRESSION: in Python, of `all` that it says it did, and of its `answers`, those that it got.
of_kubelet() {
    /usr/bin/python3 - "$events" "$1" <<'END'
import json, sys

all = [json.loads(line) for line in open(sys.argv[1])]
answers = [(one["topology"], one["limit"]) for one in all if one["what"] == "registered"]
print(eval(sys.argv[2]))
END
}
has_said() { # has_said NUMBER WHAT: it has done that so often
    [ "$(of_kubelet "sum(one['what'] == '$2' for one in all)")" -ge "$1" ]
}
wait_for_kubelet() { # wait_for_kubelet SECONDS NUMBER WHAT
    wait_for $(($1 * SLOWER)) has_said "$2" "$3" || fail "the kubelet has not said '$3' $2 times: $(cat "$events")"
}

sample alpha --topology=example.com/zone=a
start_node
wait_until_up alpha
start_kubelet
wait_for_kubelet 5 1 registered
check "the first registration" "$(of_kubelet 'answers[-1]')" "({'example.com/zone': 'a'}, 0)"

sample beta --topology=example.com/rack=r1 --max-volumes=7
wait_for_kubelet 20 2 registered
check "a connection comes" "$(of_kubelet 'answers[-1]')" "({'example.com/rack': 'r1', 'example.com/zone': 'a'}, 7)"
check "it has been deregistered before" "$(of_kubelet '[one["what"] for one in all]')" "['started', 'registered', 'deregistered', 'registered']"
grep -q 'registering with the kubelet again' "$LOG" || fail "the log does not tell of it"

# ---- nothing that the kubelet is told changes ------------------------------------------------------------

mv "$CONNECTIONS/beta.yaml" "$SKYCAP_TMP/beta.away"
reload
mv "$SKYCAP_TMP/beta.away" "$CONNECTIONS/beta.yaml"
reload
wait_until_up beta
sample_file beta "labels: {media: disk}" | connection beta
reload
stop_child alpha
sleep 2
start_sample alpha --topology=example.com/zone=a
wait_until_up alpha
sample same --topology=example.com/zone=a --max-volumes=9
reload
wait_until_up same
sleep 11
check "the same answer is not told again" "$(of_kubelet 'len(answers)')" 2

# ---- a driver that is not there yet ----------------------------------------------------------------------

sample_file late | connection late
reload
refuses "NodeGetInfo" UNAVAILABLE late rpc Node/NodeGetInfo '{}'
sleep 1
[ -S "$socket" ] || fail "the socket goes while there is no answer"
check "nobody registers without an answer" "$(of_kubelet 'len(all)')" 4
stop_child kubelet
start_kubelet
wait_for_kubelet 5 1 refused
start_sample late --topology=example.com/row=2
wait_for_kubelet 20 3 registered
check "the driver comes up" "$(of_kubelet 'answers[-1]')" "({'example.com/rack': 'r1', 'example.com/row': '2', 'example.com/zone': 'a'}, 7)"
wait_for 5 grep -q 'registered with the kubelet' "$LOG" || fail "the log does not tell of it"

# ---- a start before the drivers --------------------------------------------------------------------------

stop_server "$SERVER" || fail "the server ended badly"
wait_for_kubelet 5 3 deregistered
sample_file new | connection new
start_node
wait_until_up alpha beta late
[ ! -e "$socket" ] || fail "there is a socket before there is an answer"
grep -q 'registration with the kubelet waits.*new' "$LOG" || fail "the log does not tell of that"
start_sample new --max-volumes=3
wait_for_kubelet 5 4 registered
check "all drivers are there" "$(of_kubelet 'answers[-1][1]')" 3

times="[one['time'] for one in all if one['what'] == 'registered'][:2]"
check "two registrations are apart" "$(of_kubelet "(lambda t: t[1] - t[0] > 8)($times)")" True
check "there were no more" "$(of_kubelet 'len(answers)')" 4
finish
