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
# Programs that start_hostpath and start_sample started end with the test, then mounts and loop devices below $SKYCAP_TMP are undone.
source "$(dirname "${BASH_SOURCE[0]}")/peers.sh"
source "$(dirname "${BASH_SOURCE[0]}")/storage.sh"

CONNECTIONS=$SKYCAP_TMP/connections # the directory of their files
CHILD=                              # the process that start_child started last
CHILD_SOCKET=                       # and its socket
declare -A children=()              # their processes, by name
mkdir -p "$CONNECTIONS"

# connection NAME: its file, from stdin, put there whole.
connection() {
    cat >"$CONNECTIONS/.$1.new"
    mv "$CONNECTIONS/.$1.new" "$CONNECTIONS/$1.yaml"
}

# reload: the server that start_skycap started last has looked at the files when it returns.
reload() {
    "$SKYCAP" connection reload --endpoint "unix:$SOCKET" >/dev/null
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

# start_sample NAME [FLAG...]: tests/peers/go/cmd/sample-driver; what it was asked is in $SKYCAP_TMP/NAME.requests.
start_sample() {
    local name=$1
    shift
    start_child "$name" "$PEERS/sample-driver" --listen "unix:$SKYCAP_TMP/$name.sock" --name "$name.example.com" \
        --node-id "$name-node" --record "$SKYCAP_TMP/$name.requests" "$@"
}

# sample NAME [--FLAG=VALUE...] [MEMBER...]: starts it, and writes the file of a connection of that name; MEMBER is one of the file, like
# "default: true".
sample() {
    local name=$1 member flags=()
    shift
    while [ "${1-}" ] && [ "${1#--}" != "$1" ]; do
        flags+=("$1")
        shift
    done
    start_sample "$name" "${flags[@]}"
    sample_file "$name" "$@" | connection "$name"
}

sample_file() { # sample_file NAME [MEMBER...]
    local name=$1 member
    shift
    echo "driver: csi"
    echo "options: {endpoint: \"unix://$SKYCAP_TMP/$name.sock\", probe-interval: 1s}"
    for member in "$@"; do
        echo "$member"
    done
}

# start_child NAME COMMAND...: a CSI driver that serves on $SKYCAP_TMP/NAME.sock. Sets CHILD and CHILD_SOCKET.
start_child() {
    local name=$1
    shift
    CHILD_SOCKET=$SKYCAP_TMP/$name.sock
    setpriv --pdeathsig KILL -- "$@" >>"$SKYCAP_TMP/$name.log" 2>&1 &
    CHILD=$!
    children[$name]=$CHILD
    wait_for $((10 * SLOWER)) child_answers || {
        tail -n 20 "$SKYCAP_TMP/$name.log"
        fail "$name was not ready after 10 s"
    }
}

child_answers() {
    ! has_ended "$CHILD" || fail "a driver ended at once: $(cat "${CHILD_SOCKET%.sock}.log")"
    "$SKYCAP" call --timeout 2 "unix:$CHILD_SOCKET" csi.v1.Identity/Probe '{}' >/dev/null 2>&1
}

# stop_child NAME: at once, as a crash would.
stop_child() {
    local pid=${children[$1]}
    has_ended "$pid" || kill -KILL "$pid"
    wait "$pid" 2>/dev/null || true
}

after_servers() {
    local name
    for name in "${!children[@]}"; do
        stop_child "$name"
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

# program_of SOCKET: the process that it started to serve there.
program_of() {
    local pid
    for pid in $(cat "/proc/$SERVER/task/"*/children); do
        ! grep -qaF "$1" "/proc/$pid/cmdline" || echo "$pid"
    done
}

# is_up NAME: it is in force (which it is a moment after the log says that it is loaded), and its driver has been reached.
is_up() {
    "$SKYCAP" connection show "$1" --endpoint "unix:$SOCKET" --timeout 5 -o json 2>/dev/null | grep -Eq '"state": *"READY"'
}

# wait_until_up NAME...
wait_until_up() {
    local name
    for name in "$@"; do
        wait_for $((10 * SLOWER)) is_up "$name" || fail "connection $name does not come up"
    done
}

# ---- requests, to that server ------------------------------------------------------------------------

# on NAME: the parameter that names a connection.
on() {
    echo "\"parameters\":{\"connection\":\"$1\"}"
}

# create_request NAME [MEMBER...]: MEMBER is one of the request, as JSON.
create_request() {
    local name=$1 member
    shift
    printf '{"name":"%s","volumeCapabilities":[%s]' "$name" "$(capability tree)"
    for member in "$@"; do
        printf ',%s' "$member"
    done
    printf '}'
}

# create_volume NAME [MEMBER...]: prints the answer; create prints the id alone.
create_volume() {
    rpc Controller/CreateVolume "$(create_request "$@")"
}

create() {
    create_volume "$@" | pick 'it["volume"]["volumeId"]'
}

# seen NAME METHOD EXPRESSION: of the requests of that method that reached the sample driver NAME, in Python: `all`, the `last`
# one, or its `line`, which has more than the request.
seen() {
    /usr/bin/python3 - "$@" "$SKYCAP_TMP/$1.requests" <<'END'
import json, os, sys

_, method, expression, path = sys.argv[1:]
lines = [json.loads(text) for text in open(path)] if os.path.exists(path) else []
lines = [line for line in lines if line["Method"] == method]
all = [line["Request"] for line in lines]
last = all[-1] if all else None
line = lines[-1] if lines else None
print(eval(expression))
END
}
