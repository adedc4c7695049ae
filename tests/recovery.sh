# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of recovered volumes share, beyond moves.sh: three nodes on btrfs, of which one can be cut off.
source "$(dirname "${BASH_SOURCE[0]}")/moves.sh"

with() { # with NUMBER VOLUME COMMAND...: publishes the volume, and runs the command in it
    at_node "$1" volume publish "$2" "$SKYCAP_TMP/with" >/dev/null
    (cd "$SKYCAP_TMP/with" && "${@:3}")
    at_node "$1" volume unpublish "$2" "$SKYCAP_TMP/with" >/dev/null
}

write_to() { # write_to DIRECTORY TEXT: a greeting
    echo "$2" >"$1/greeting"
    sync -f "$1"
}

greet() { # greet NUMBER VOLUME TEXT
    with "$1" "$2" bash -c 'echo "$0" >greeting; sync -f .' "$3"
}

# cut_off NUMBER: of three nodes; returns when the others see that it is lost. reconnect NUMBER: returns when all are ready.
cut_off() {
    on "node-$1" ip link set eth0 down
    wait_until_lost "$1"
}

reconnect() {
    on "node-$1" ip link set eth0 up
    wait_until_settled 3
}

wait_until_lost() { # wait_until_lost NUMBER
    local number all=
    for number in 1 2 3; do
        all+="${all:+ }node-$number=$([ "$number" = "$1" ] && echo LOST || echo READY)"
    done
    for number in 1 2 3; do
        [ "$number" = "$1" ] || wait_for $((20 * SLOWER)) has_states "$number" "$all" || fail "node-$number sees '$(states "$number")'"
    done
}

has_snapshot() { # has_snapshot NUMBER NAME
    at_node "$1" snapshot list | grep -q "^$2 "
}

# wait_for_snapshot NUMBER NAME TEXT: it is there, and has this greeting; it is restored on the node.
wait_for_snapshot() {
    wait_for $((30 * SLOWER)) has_snapshot "$1" "$2" || fail "no snapshot $2: $(at_node "$1" snapshot list)"
    at_node "$1" snapshot restore "$2" found --node "node-$1" >/dev/null
    expect_equal "the greeting in the snapshot $2" "$(with "$1" found cat greeting)" "$3"
    at_node "$1" volume delete found >/dev/null
}
