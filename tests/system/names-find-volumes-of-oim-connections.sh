#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands find a volume of an `oim` connection by its name alone, as they find any other. A name that two connections have is refused with both ids. While a connection
# cannot be asked nobody is told that there is no such volume, nor is one of another connection taken for it. To look for a name makes nothing.
#
# In a mount namespace of its own: see volume-commands-do-the-whole-life.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../oim-driver.sh"
need_storage

start_controller
connect "endpoint: unix://$CONTROLLER_SOCKET"
echo "max-calls: 1" >>"$CONNECTIONS/acc.yaml"
connection own <<<"{driver: local, default: true, options: {backend: dir}}"
start_node
export CSI_ENDPOINT=unix:$SOCKET
at=$SKYCAP_TMP/at
mkdir "$at"

# complains WHAT LINE ARGUMENT...: the command fails, with this line.
complains() {
    local what=$1 line=$2
    shift 2
    if "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err"; then
        fails "$what" "it succeeds: $(cat "$SKYCAP_TMP/out")"
    else
        check "$what" "$(cat "$SKYCAP_TMP/err")" "skycap: $line"
    fi
}
succeeds() { # succeeds WHAT ARGUMENT...
    local what=$1
    shift
    if "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err"; then passes "$what"; else fails "$what" "$(cat "$SKYCAP_TMP/err")"; fi
}
id_of() { # id_of NAME
    "$SKYCAP" volume show "$1" -o json 2>&1 | pick 'it["volume"]["volumeId"]' 2>/dev/null
}
bdev() { # bdev NAME: whether the controller has it
    "$SKYCAP" call --compact "unix:$CONTROLLER_SOCKET" oim.v0.Controller/CheckMallocBDev "{\"bdevName\":\"$1\"}" 2>&1 | grep -o 'NOT_FOUND\|{}'
}

# ---- every command ----

"$SKYCAP" volume create data --connection acc --size 4Mi >/dev/null
check "show" "$(id_of data)" v:acc/data
check "the name is listed" "$("$SKYCAP" volume list | awk 'NR > 1 { print $1 }')" data
succeeds "publish" volume publish data "$at/data"
echo hello >"$at/data/file"
complains "delete, while it is published" "the volume is in use at $(mounts_below "$SKYCAP_TMP" | grep /staging/)" volume delete data
complains "snapshot, which oim has not" 'the driver behind connection "acc" does not support CreateSnapshot' snapshot create data monday
check "snapshots of it" "$("$SKYCAP" snapshot list --of data | wc -l)" 1
complains "expand, which oim has not" 'the driver behind connection "acc" does not support ControllerExpandVolume' volume expand data 8Mi
complains "a snapshot of that name" 'there is no snapshot "data"' snapshot show data
succeeds "unpublish" volume unpublish data "$at/data"
succeeds "clone, into another connection" volume clone data copy --connection own
odd="a name/ü with $(printf 'l%.0s' {1..80})"
"$SKYCAP" volume create "$odd" --connection acc >/dev/null
check "a name whose id is a hash" "$(id_of "$odd" | grep -oE '^v:acc/h-[0-9a-f]{32}$')" "$(volumes | grep v:acc/h-)"

# ---- no name, and two of them ----

complains "a name that nobody has" 'there is no volume "none"' volume show none
complains "what is deleted must be there" 'there is no volume "none"' volume delete none
check "looking for it has made nothing" "$(bdev none)" NOT_FOUND
own=$("$SKYCAP" volume create data --connection own -o json | pick 'it["volume"]["volumeId"]')
for command in "show data" "delete data" "publish data $at/data" "unpublish data $at/data"; do
    # shellcheck disable=SC2086 # several words
    complains "a name that two connections have: ${command%% *}" \
        "\"data\" is the name of several volumes; use the id of one: v:acc/data, $own" volume $command
done
check "nothing was deleted" "$(bdev data)" "{}"
"$SKYCAP" volume delete "$own"

# ---- when a connection cannot be asked ----

kill -STOP "$CONTROLLER"
check "what is known needs no controller" "$(id_of data)" v:acc/data
take_the_slot() { # of the connection's one call; a question at that moment has it, and then it is refused
    "$SKYCAP" call --timeout 60 "$CSI_ENDPOINT" csi.v1.Controller/DeleteVolume '{"volumeId":"v:acc/other"}' >/dev/null 2>&1 &
    busy=$!
    sleep 0.2
}
take_the_slot
full='connection "acc": 1 calls are in progress, as many as max-calls allows; try again later'
is_full() {
    ! has_ended "$busy" || take_the_slot
    ! "$SKYCAP" volume show none 2>"$SKYCAP_TMP/err" && grep -q "in progress" "$SKYCAP_TMP/err"
}
if wait_for 5 is_full; then
    complains "nobody can say that there is none" "not all connections could be asked whether they have a volume \"none\": $full" volume show none
    complains "nor that it is the only one" \
        "\"copy\" is a name of $(id_of "$("$SKYCAP" volume list | grep -o 'v:own/[^ ]*')"), but not all connections could be asked whether they have a volume \"copy\", too; use the id: $full" \
        volume delete copy
else
    fails "nobody can say that there is none" "$("$SKYCAP" volume show none 2>&1)"
fi
kill -CONT "$CONTROLLER"
wait "$busy" || true
check "now it is known" "$(id_of copy | cut -c 1-6)" v:own/

connection broken <<<"{driver: oim, options: {}}"
! reload 2>/dev/null || fail "a wrong file is taken for a good one"
complains "a connection whose file is wrong" \
    "not all connections could be asked whether they have a volume \"none\": the file of connection \"broken\" is wrong: $("$SKYCAP" connection show broken -o json | pick 'it["fileTrouble"]')" volume show none
check "an id needs no other connection" "$(id_of v:acc/data)" v:acc/data
rm "$CONNECTIONS/broken.yaml"
reload

# ---- nothing is left ----

succeeds "delete" volume delete data copy "$odd"
check "volumes that are left" "$("$SKYCAP" volume list | wc -l) $(bdev data)" "1 NOT_FOUND"
finish
