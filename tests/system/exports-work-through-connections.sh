#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# With --connections, snapshots of connections with the driver local are exported and imported; those of other drivers are refused with what to do. The
# operation of an export is found by the id that the export gives. A scheduled drill runs once, however many connections there are.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../connections.sh"
source "$(dirname "$0")/../exports.sh"

make_repositories main
# The third-party driver is another skycap.
start_skycap_at "$SKYCAP_TMP/child.sock" --node-id child-node
connection fast <<<"{driver: local, default: true, options: {backend: dir}}"
connection slow <<<"{driver: local, options: {backend: dir}}"
connection foreign <<<"{driver: csi, options: {endpoint: unix://$SKYCAP_TMP/child.sock, probe-interval: 300ms}}"
start_connected --node-id n1 --repositories "$REPOSITORIES"
foreign_is() { [ "$(cli connection list | awk '$1 == "foreign" { print $2 }')" = "$1" ]; }
wait_for 5 foreign_is ready || fail "the third-party driver is not ready"
cli repository init main >/dev/null

# An export from the connection that is not the default, and back into both.
cli volume create a --connection slow --publish "$SKYCAP_TMP/a" >/dev/null
mkdir "$SKYCAP_TMP/a/directory"
head -c 3000000 /dev/urandom >"$SKYCAP_TMP/a/directory/large"
ln -s directory/large "$SKYCAP_TMP/a/link"
cli snapshot create a a-one >/dev/null
operation=$(cli snapshot export a-one --background)
case $operation in s:slow/*.main) ;; *) fail "the operation's id: $operation" ;; esac
export_json a-one >"$SKYCAP_TMP/export"
case $(pick 'it["volumeId"]' <"$SKYCAP_TMP/export") in v:slow/*) ;; *) fail "the volume's id: $(cat "$SKYCAP_TMP/export")" ;; esac
cli op list | grep -F "$operation" | grep -q -i succeeded || fail "op list does not have $operation: $(cli op list)"
cli op watch "$operation" >/dev/null || fail "op watch"
cli snapshot show a-one | grep -q main || fail "the snapshot does not show its export: $(cli snapshot show a-one)"
cli snapshot import a-one --name b >/dev/null
cli snapshot import a-one --name c --connection slow >/dev/null
cli volume publish b "$SKYCAP_TMP/b" >/dev/null
cli volume publish c "$SKYCAP_TMP/c" >/dev/null
same_trees "imported to the default connection" "$SKYCAP_TMP/a" "$SKYCAP_TMP/b"
same_trees "imported to another connection" "$SKYCAP_TMP/a" "$SKYCAP_TMP/c"
case $(cli volume list | grep '^b ') in *v:fast/*) ;; *) fail "b is in the wrong connection: $(cli volume list)" ;; esac
case $(cli volume list | grep '^c ') in *v:slow/*) ;; *) fail "c is in the wrong connection: $(cli volume list)" ;; esac
refuses "a name that another connection has" . 'there is a volume "b" already' cli snapshot import a-one --name b --connection slow

# Other drivers.
foreign=$(cli volume create f --connection foreign | awk 'END { print $NF ~ /^v:/ ? $NF : $(NF - 1) }')
snapshot=$(rpc Controller/CreateSnapshot "{\"sourceVolumeId\":\"$foreign\",\"name\":\"f-one\"}" | pick 'it["snapshot"]["snapshotId"]')
refuses "an export from another driver" . 'copy the volume to a connection with the driver local' cli snapshot export "$snapshot"
refuses "an import to another driver" . 'with the driver local' cli snapshot import a-one --name g --connection foreign

# Care, and drills: by hand and by the clock.
cli snapshot verify --data >/dev/null || fail "verify"
cli repository list | grep -q '^main' || fail "repository list"
said=$(cli repository rebuild main 2>&1) || fail "its index cannot be made anew: $said"
stop_server "$SERVER" || fail "the server ended badly"
echo "drill: {every: 1h}" >>"$REPOSITORIES/main.yaml"
start_connected --node-id n1 --repositories "$REPOSITORIES"
drills() { grep -c "a restore drill has succeeded" "$LOG"; }
has_drilled() { [ "$(drills)" -ge 1 ]; }
wait_for 20 has_drilled || fail "no drill was run"
cli snapshot drill a-one >/dev/null || fail "a drill by hand"
expect_equal "drills by the clock" "$(drills)" 1
