#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# A command that comes with the request for a drill is run only if --allow-drill-commands is given, and only for the server's own user. The refusal says
# what to do, and nothing is restored. (drills-run-by-the-clock.sh: the command in the file of a repository needs no permission.)
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"
requires setpriv

start_exporting
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
cli snapshot create data one >/dev/null
cli snapshot export one >/dev/null
ran=$SKYCAP_TMP/ran
operations() { cli op list -o json | pick 'len([o for o in it.get("operations", []) if o["kind"] == "drill-snapshot"])'; }

refuses "a command, without the flag" . 'with --allow-drill-commands' cli snapshot drill one --command "touch $ran"
grep -q 'drill: {every: 7d, command: PROGRAM}' "$SKYCAP_TMP/complaint" || fail "it does not name the file: $(cat "$SKYCAP_TMP/complaint")"
[ ! -e "$ran" ] || fail "the command ran"
expect_equal "drills that began" "$(operations)" 0
cli snapshot drill one >"$SKYCAP_TMP/drill" || fail "a drill without a command: $(cat "$SKYCAP_TMP/drill")"

# The same through the router, which serves connections.
stop_server "$SERVER" || fail "the server ended badly"
mkdir "$SKYCAP_TMP/connections"
echo "{driver: local, options: {data: $SKYCAP_TMP/routed}, default: true}" >"$SKYCAP_TMP/connections/fast.yaml"
start_skycap --repositories "$REPOSITORIES" --connections "$SKYCAP_TMP/connections"
refuses "a command, through a connection" PERMISSION_DENIED 'with --allow-drill-commands' \
    "$SKYCAP" call "unix:$SOCKET" skycap.v1.Repositories/Drill "{\"snapshot\": \"one\", \"command\": [\"/bin/touch\", \"$ran\"]}"
[ ! -e "$ran" ] || fail "the command ran through a connection"
stop_server "$SERVER" || fail "the server with connections ended badly"

# With the flag: the server's own user, and nobody else.
chmod 711 "$SKYCAP_TMP"
cp "$SKYCAP" "$SKYCAP_TMP/client"
exporting+=(--allow-drill-commands --socket-mode 666)
start_again
cli snapshot drill one --command "touch $ran" >"$SKYCAP_TMP/drill" || fail "a command, with the flag: $(cat "$SKYCAP_TMP/drill")"
[ -e "$ran" ] || fail "the command did not run"
refuses "a command of another user" . 'only the user that the server runs as' \
    setpriv --reuid 65534 --regid 65534 --clear-groups "$SKYCAP_TMP/client" snapshot drill one --command "touch $ran-2" --endpoint "unix://$SOCKET"
[ ! -e "$ran-2" ] || fail "the command of another user ran"
stop_server "$SERVER" || fail "the server ended badly"

refuses "the flag without repositories" . 'needs the role .*--repositories' \
    "$SKYCAP" serve --endpoint "unix://$SOCKET" --data "$SOCKET.data" --backend dir --allow-drill-commands
