# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Members of etcd on the loopback, for tests of the store on etcd. To be sourced behind lib.sh. Data and logs are in $SKYCAP_TMP.
#
#     new_members 3
#     for n in 1 2 3; do start_member "$n"; done
#     wait_for_member 1
#     kill_member 2

requires etcd
# shellcheck disable=SC2034 # for the tests
STORE_TOOL=$SKYCAP_BUILD/tests/store-tool
# shellcheck disable=SC2034
STORE_HAMMER=$SKYCAP_BUILD/tests/store-hammer
MEMBERS= # their addresses, as in a URL
member_scheme=
initial_cluster=
client_ports=()
peer_ports=()
member_pids=()

# new_members COUNT [https]: numbers 1 to COUNT get their ports.
new_members() {
    local n ports
    member_scheme=${2:-http}
    # All at once: a port that is free again could be given twice.
    mapfile -t ports < <(/usr/bin/python3 -c '
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2 * int(sys.argv[1]))]
for s in sockets: print(s.getsockname()[1])' "$1")
    initial_cluster=
    MEMBERS=
    for ((n = 1; n <= $1; n++)); do
        client_ports[n]=${ports[2 * n - 2]}
        peer_ports[n]=${ports[2 * n - 1]}
        initial_cluster+=${initial_cluster:+,}m$n=http://127.0.0.1:${peer_ports[n]}
        MEMBERS+=${MEMBERS:+,}127.0.0.1:${client_ports[n]}
    done
}

# member_address N
member_address() {
    echo "127.0.0.1:${client_ports[$1]}"
}

# start_member N [FLAG...]
start_member() {
    local n=$1
    shift
    etcd --name "m$n" --data-dir "$SKYCAP_TMP/m$n" \
        --listen-client-urls "$member_scheme://127.0.0.1:${client_ports[n]}" \
        --advertise-client-urls "$member_scheme://127.0.0.1:${client_ports[n]}" \
        --listen-peer-urls "http://127.0.0.1:${peer_ports[n]}" \
        --initial-advertise-peer-urls "http://127.0.0.1:${peer_ports[n]}" \
        --initial-cluster "$initial_cluster" "$@" >>"$SKYCAP_TMP/m$n.log" 2>&1 &
    member_pids[n]=$!
}

# signal_member N SIGNAL
signal_member() {
    kill "-$2" "${member_pids[$1]}"
}

# kill_member N: with SIGKILL.
kill_member() {
    signal_member "$1" KILL || true # one that has ended by itself
    wait "${member_pids[$1]}" 2>>"$SKYCAP_TMP/notices" || true
    member_pids[$1]=
}

member_has_leader() {
    "$SKYCAP" call --timeout 1 "$(member_address "$1")" etcdserverpb.KV/Range '{"key": "YQ=="}' >/dev/null 2>&1
}

# wait_for_member N: until it answers, which it does when there is a leader.
wait_for_member() {
    wait_for 20 member_has_leader "$1" || fail "member $1 is not ready: $(tail -n 3 "$SKYCAP_TMP/m$1.log")"
}

# Ends the members that are left, a stopped one too.
after_servers() {
    local n
    for n in "${!member_pids[@]}"; do
        [ -z "${member_pids[n]}" ] || kill_member "$n"
    done
}
