#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The commands work with a server that has connections as with any other: by name over all that skycap keeps itself, by id with third-party drivers, and from
# one connection into another.
# time-limit: 300
#
# In a mount namespace of its own: see volume-commands-do-the-whole-life.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs a mount namespace, which is not allowed here"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../connections.sh"

# The third-party driver is another skycap.
start_skycap_at "$SKYCAP_TMP/child.sock" --node-id child-node
child=$SERVER
connection fast <<<"{driver: local, default: true, options: {backend: dir}}"
connection slow <<<"{driver: local, aliases: [old], options: {backend: dir}}"
connection foreign <<<"{driver: csi, options: {endpoint: unix://$SKYCAP_TMP/child.sock, probe-interval: 300ms}}"
start_connected --node-id n1
export CSI_ENDPOINT=unix:$SOCKET
at=$SKYCAP_TMP/at
mkdir "$at"

foreign_is() {
    [ "$("$SKYCAP" connection list | awk '$1 == "foreign" { print $2 }')" = "$1" ]
}
wait_for 5 foreign_is ready || fail "the third-party driver is not ready"
expect_equal "the manifest" "$("$SKYCAP" call --compact "unix:$SOCKET" csi.v1.Identity/GetPluginInfo | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["manifest"]["node"])')" n1

skycap() { # quietly
    "$SKYCAP" "$@" >/dev/null
}

# id_from COMMAND...: of the last row that it shows.
id_from() {
    "$SKYCAP" "$@" | awk 'END { print $NF ~ /^[vs]:/ ? $NF : $(NF - 1) }'
}

# names: of the volumes and their connections, as they are listed.
names() {
    "$SKYCAP" volume list | awk 'NR > 1 { id = $(NF - 1); sub(/^v:/, "", id); sub(/\/.*/, "", id); print $1 "@" id }' | xargs
}

# fails WHAT LINE ARGUMENT...
fails() {
    local what=$1 line=$2 code=0
    shift 2
    "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    expect_equal "exit code for $what" "$code" 1
    expect_equal "$what" "$(cat "$SKYCAP_TMP/err")" "skycap: $line"
}

# ---- names and ids ----

data=$(id_from volume create data)
case $data in v:fast/*) ;; *) fail "the default connection: $data" ;; esac
other=$(id_from volume create data --connection slow --size 1Gi)
case $other in v:slow/*) ;; *) fail "--connection: $other" ;; esac
strange=$(id_from volume create data --connection foreign --publish "$at/strange")
case $strange in v:foreign/v:local/*) ;; *) fail "a third-party driver's: $strange" ;; esac
skycap volume create mine --connection slow
expect_equal "volumes of all connections" "$(names)" "data@fast -@foreign data@slow mine@slow"
expect_equal "the same command again" "$(id_from volume create data)" "$data"

fails "a name that two connections have" "\"data\" is the name of several volumes; use the id of one: $data, $other" volume show data
fails "the operation of that name" "\"data\" is the name of several volumes; use the id of one: $data, $other" op show data
fails "a name that nobody has" 'there is no volume "none"' volume show none
fails "an id that nobody has" 'there is no volume "v:slow/none"' volume show v:slow/none
fails "a third-party id that nobody has" 'there is no volume "v:foreign/none"' volume show v:foreign/none
fails "an id of no connection" 'there is no connection "gone" for "v:gone/x"' volume show v:gone/x
# The engines call their own volumes so; through a connection that is nobody's.
fails "an id as an engine has it" 'there is no connection "local" for "v:local/x"' volume show v:local/x
fails "a connection that there is not" 'there is no connection "none"; there are: fast, foreign, slow' \
    volume create more --connection none
expect_equal "by its id" "$("$SKYCAP" volume show "$other" | sed -n 's/^size *//p')" "1 GiB"
expect_equal "by the id that it had" "$("$SKYCAP" volume show "v:old/${other#*/}" -o json | pick 'it["volume"]["volumeId"]')" "$other"
expect_equal "by its name alone" "$("$SKYCAP" volume show mine -o json | pick 'it["volume"]["volumeId"][:7]')" "v:slow/"
expect_equal "a third-party volume's facts" "$("$SKYCAP" volume show "$strange" -o json | pick '(it.get("name"), it["ready"], it["nodeIds"])')" \
    "(None, True, ['n1'])"

# Page by page it is the same list.
token=
all=()
while :; do
    "$SKYCAP" call --compact "unix:$SOCKET" skycap.v1.Inventory/ListVolumes "{\"maxEntries\":1,\"startingToken\":\"$token\"}" >"$SKYCAP_TMP/page"
    all+=("$(pick '" ".join(v["volume"]["volumeId"] for v in it.get("volumes", []))' <"$SKYCAP_TMP/page")")
    token=$(pick 'it.get("nextToken", "")' <"$SKYCAP_TMP/page")
    [ -n "$token" ] || break
done
expect_equal "the list in pages of one" "$(echo "${all[@]}")" "$("$SKYCAP" volume list | awk 'NR > 1 { print $(NF - 1) }' | xargs)"

# ---- a life on an engine ----

skycap volume publish mine "$at/mine"
echo one >"$at/mine/file"
skycap snapshot create mine monday
echo two >"$at/mine/file"
snapshot=$(id_from snapshot restore monday back --publish "$at/back")
case $snapshot in v:slow/*) ;; *) fail "a restored volume is where its snapshot is: $snapshot" ;; esac
expect_equal "the file in the restored volume" "$(cat "$at/back/file")" one
expect_equal "snapshots of a volume" "$("$SKYCAP" snapshot list --of mine | awk 'NR > 1 { print $1 }')" monday
expect_equal "snapshots of another" "$("$SKYCAP" snapshot list --of "$data" | wc -l)" 1
expect_equal "a snapshot's source" "$("$SKYCAP" snapshot show monday | sed -n 's/^of *//p')" \
    "mine ($("$SKYCAP" volume show mine | sed -n 's/^id *//p'))"
skycap volume expand mine 2Gi
expect_equal "where it is published" "$("$SKYCAP" volume list | awk '$1 == "mine" { print $2 $3, $8 }')" "2GiB $at/mine"

# ---- a life on a third-party driver ----

echo foreign >"$at/strange/file"
skycap snapshot create "$strange" tuesday
taken=$("$SKYCAP" snapshot list --of "$strange" | awk 'NR > 1 { print $NF }')
case $taken in s:foreign/s:local/*) ;; *) fail "a third-party snapshot: $taken" ;; esac
expect_equal "its facts" "$("$SKYCAP" snapshot show "$taken" -o json | pick '(it["snapshot"]["sourceVolumeId"], it["snapshot"]["readyToUse"])')" \
    "('$strange', True)"
copied=$(id_from volume clone "$strange" twin --publish "$at/twin")
expect_equal "the file in its clone" "$(cat "$at/twin/file")" foreign
skycap volume unpublish "$copied" "$at/twin"
skycap volume delete "$copied"
disk=$(id_from volume create disk --connection foreign --block --size 8Mi)
skycap volume publish "$disk" "$at/disk" --block
[ -b "$at/disk" ] || fail "what is published of a third-party block volume is no device"
skycap volume unpublish "$disk" "$at/disk"
skycap volume delete "$disk"

# ---- from one into another ----

skycap volume clone "$strange" own --connection fast --publish "$at/own"
expect_equal "the file from a third-party driver" "$(cat "$at/own/file")" foreign
away=$(id_from snapshot restore monday away --connection foreign --publish "$at/away")
expect_equal "the file in a third-party volume" "$(cat "$at/away/file")" one
expect_equal "the operations of these copies" "$("$SKYCAP" op list | awk '$1 == "copy-across" { print $2, substr($NF, 1, 8) }' | sort | xargs)" \
    "succeeded v:fast/0 succeeded v:foreig"
expect_equal "one of them by its volume's name" "$("$SKYCAP" op show own | sed -n 's/^kind *//p')" copy-across

# ---- when the driver is down ----

stop_server "$child" || fail "the third-party driver ended with exit code $?"
wait_for 10 foreign_is down || fail "the third-party driver is not down"
expect_equal "volumes of those that answer" "$(names)" "data@fast own@fast data@slow mine@slow back@slow"
! "$SKYCAP" volume show "$strange" >/dev/null 2>"$SKYCAP_TMP/err" || fail "a volume of a driver that is down is shown"
grep -q foreign "$SKYCAP_TMP/err" || fail "why it is not: $(cat "$SKYCAP_TMP/err")"
start_skycap_at "$SKYCAP_TMP/child.sock" --node-id child-node
SOCKET=$SKYCAP_TMP/csi.sock
wait_for 10 foreign_is ready || fail "the third-party driver is not ready again"

# ---- nothing is left ----

skycap volume unpublish "$strange" "$at/strange"
skycap volume unpublish "$away" "$at/away"
for name in mine back own; do
    skycap volume unpublish "$name" "$at/$name"
done
skycap volume delete "$strange" "$away" "$data" "$other" mine back own
skycap snapshot delete monday "$taken"
expect_equal "volumes and snapshots that are left" "$("$SKYCAP" volume list | wc -l) $("$SKYCAP" snapshot list | wc -l)" "1 1"
expect_equal "mounts that are left" "$(grep -c -e " $SKYCAP_TMP/staging/" -e " $at/" /proc/self/mounts || true)" 0
expect_equal "directories that are left" "$(ls "$at" "$SKYCAP_TMP/staging")" "$(printf '%s:\n\n%s:' "$at" "$SKYCAP_TMP/staging")"
