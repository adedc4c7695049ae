# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of connections share. A test sources it first:
#
#     source "$(dirname "$0")/../connections.sh"
#     need_hostpath
#     start_hostpath hostpath --enable-attach
#     connection hostpath <<<"{driver: csi, options: {endpoint: unix://$CHILD_SOCKET}}"
#     start_connected
#
# Programs that start_hostpath started end with the test, then mounts and loop devices below $SKYCAP_TMP are undone.
source "$(dirname "${BASH_SOURCE[0]}")/peers.sh"
source "$(dirname "${BASH_SOURCE[0]}")/storage.sh"

CONNECTIONS=$SKYCAP_TMP/connections # the directory of their files
CHILD=                              # the process that start_child started last
CHILD_SOCKET=                       # and its socket
children=()
mkdir -p "$CONNECTIONS"

# connection NAME: its file, from stdin, put there whole.
connection() {
    cat >"$CONNECTIONS/.$1.new"
    mv "$CONNECTIONS/.$1.new" "$CONNECTIONS/$1.yaml"
}

# start_connected [FLAG...]: skycap, with the connections that there are.
start_connected() {
    start_skycap --connections "$CONNECTIONS" "$@"
}

# The program of csi-driver-host-path is no part of the peers that tests/peers/install can make: whoever wants these
# tests puts it beside them, or on PATH.
need_hostpath() {
    HOSTPATH=$PEERS/hostpathplugin
    [ -x "$HOSTPATH" ] || HOSTPATH=$(command -v hostpathplugin) || {
        echo "needs hostpathplugin, the program of csi-driver-host-path, in $PEERS or on PATH"
        exit 77
    }
    need_storage
}

# start_hostpath NAME [FLAG...]: its volumes outlive it, below $SKYCAP_TMP/NAME.state.
start_hostpath() {
    local name=$1
    shift
    start_child "$name" "$HOSTPATH" --endpoint "unix://$SKYCAP_TMP/$name.sock" --nodeid "$name-node" \
        --statedir "$SKYCAP_TMP/$name.state" --drivername "$name.example.com" "$@"
}

# start_child NAME COMMAND...: a CSI driver that serves on $SKYCAP_TMP/NAME.sock. Sets CHILD and CHILD_SOCKET.
start_child() {
    local name=$1
    shift
    CHILD_SOCKET=$SKYCAP_TMP/$name.sock
    setpriv --pdeathsig KILL -- "$@" >>"$SKYCAP_TMP/$name.log" 2>&1 &
    CHILD=$!
    children+=("$CHILD")
    wait_for $((10 * SLOWER)) child_answers || {
        tail -n 20 "$SKYCAP_TMP/$name.log"
        fail "$name was not ready after 10 s"
    }
}

child_answers() {
    ! has_ended "$CHILD" || fail "a driver ended at once: $(cat "${CHILD_SOCKET%.sock}.log")"
    "$SKYCAP" call --timeout 2 "unix:$CHILD_SOCKET" csi.v1.Identity/Probe '{}' >/dev/null 2>&1
}

# stop_child PID: at once, as a crash would.
stop_child() {
    has_ended "$1" || kill -KILL "$1"
    wait "$1" 2>/dev/null || true
}

after_servers() {
    local child
    for child in "${children[@]}"; do
        stop_child "$child"
    done
    undo_storage "$SKYCAP_TMP" || true
    chattr -R -i "$SKYCAP_TMP" 2>/dev/null || true
}

# ---- what the server that start_skycap started last says -------------------------------------------

# memory_kib: what it holds.
memory_kib() {
    awk '$1 == "VmRSS:" { print $2 }' "/proc/$SERVER/status"
}

# With a sanitizer memory is not what it is otherwise.
measures_memory() {
    ! grep -qE '__(asan|tsan)_init' "$SKYCAP"
}
