#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# Verify, prune and drills are operations: listed while they run, with progress that never falls, kept in the history with their result or error, and
# cancelled by `op cancel` and when the command ends. A second request for the same names the first. After SIGKILL they have failed.
#
# A named pipe in the place of a snapshot's record holds up whoever reads the record.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount "$0" "$@"
fi
source "$(dirname "$0")/../exports.sh"

make_repositories main
start() { start_skycap --repositories "$REPOSITORIES" --allow-drill-commands; }
start
cli repository init main >/dev/null
cli volume create data --publish "$SKYCAP_TMP/data" >/dev/null
head -c 60000000 /dev/urandom >"$SKYCAP_TMP/data/large"
cli snapshot create data one >/dev/null
cli snapshot export one >/dev/null

# newest KIND FIELD: of the newest operation of the kind; nothing if there is none.
newest() {
    cli op list -o json | pick "([str(o.get('$2', '')) for o in it.get('operations', []) if o['kind'] == '$1'] or [''])[-1]"
}
is() { [ "$(newest "$1" "$2")" = "$3" ]; } # is KIND FIELD VALUE

# The history.
cli snapshot verify --data >/dev/null
cli snapshot prune >/dev/null
cli snapshot drill one >/dev/null
for kind in verify-repository prune-repository drill-snapshot; do
    expect_equal "the state of $kind" "$(newest $kind state)" SUCCEEDED
    expect_equal "the subject of $kind" "$(newest $kind subject)" main
    expect_equal "all of $kind is done" "$(newest $kind "done")" "$(newest $kind total)"
    [ "$(newest $kind total)" -gt 0 ] || fail "$kind has no total"
    cli op show "$(newest $kind id)" | grep -q '^result' || fail "$kind has no result: $(cli op show "$(newest $kind id)")"
done
expect_equal "the units of a drill" "$(newest drill-snapshot units)" bytes
expect_equal "the amount of a drill" "$(newest drill-snapshot total)" 120000000

# A drill: the progress, a second request, and the end of the command that waits for it.
"$SKYCAP" snapshot drill one --command 'sleep 100' --endpoint "unix://$SOCKET" >"$SKYCAP_TMP/drill" 2>&1 &
drill=$!
last=0
while ! grep -q ^compare "$SKYCAP_TMP/drill"; do
    has_ended $drill && fail "the drill has ended: $(cat "$SKYCAP_TMP/drill")"
    is drill-snapshot state RUNNING || continue
    read -r amount total < <(cli op list -o json | pick '" ".join(str([o for o in it["operations"] if o["kind"] == "drill-snapshot"][-1].get(f, 0)) for f in ("done", "total"))')
    [ "$amount" -ge "$last" ] || fail "the progress falls from $last to $amount"
    [ "$amount" -le 120000000 ] && [ "$amount" -le "$total" ] || [ "$total" = 0 ] || fail "$amount of $total"
    last=$amount
done
wait_for 20 is drill-snapshot "done" 120000000 || fail "what is restored and compared: $(newest drill-snapshot "done")"
expect_equal "the state while the command runs" "$(newest drill-snapshot state)" RUNNING
id=$(newest drill-snapshot id)
refuses "the same drill" 'under way' "${id#*/}" cli snapshot drill one
kill -TERM $drill
wait $drill || true
wait_for 20 is drill-snapshot state CANCELLED || fail "a drill without its command: $(newest drill-snapshot state)"
expect_equal "volumes" "$(cli volume list | wc -l)" 2

"$SKYCAP" snapshot drill one --command 'sleep 100' --endpoint "unix://$SOCKET" >"$SKYCAP_TMP/drill" 2>&1 &
drill=$!
wait_for 20 is drill-snapshot state RUNNING || fail "the drill does not run"
cli op cancel "$(newest drill-snapshot id)" >/dev/null
! wait $drill || fail "a cancelled drill succeeds"
expect_equal "a cancelled drill" "$(newest drill-snapshot state)" CANCELLED
! cli snapshot drill one --command 'exit 3' >/dev/null 2>&1 || fail "a check that fails"
expect_equal "a failed drill" "$(newest drill-snapshot state)" FAILED

# Verify, held up in the middle.
record=$(find "$SKYCAP_TMP/main.repository/03" -type f)
hold() { mv "$record" "$SKYCAP_TMP/record" && mkfifo -m 600 "$record"; }
# Whoever opens the pipe gets nothing, until this is killed.
let_go() {
    exec /usr/bin/python3 -c 'import os, sys, time
while True:
    try:
        os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        pass
    time.sleep(0.02)' "$record"
}
put_back() { mv -f "$SKYCAP_TMP/record" "$record"; }
hold
"$SKYCAP" snapshot verify --data --endpoint "unix://$SOCKET" >"$SKYCAP_TMP/verify" 2>&1 &
verify=$!
wait_for 20 is verify-repository state RUNNING || fail "verify does not run"
id=$(newest verify-repository id)
refuses "a second verify" 'under way' "${id#*/}" cli snapshot verify
kill -TERM $verify
wait $verify || true
wait_for 20 is verify-repository cancelAsked True || fail "verify goes on: $(cli op list)"
let_go &
release=$!
wait_for 20 is verify-repository state CANCELLED || fail "verify without its command: $(cli op list)"
kill $release

# SIGKILL in the middle.
"$SKYCAP" snapshot verify --data --endpoint "unix://$SOCKET" >/dev/null 2>&1 &
"$SKYCAP" snapshot prune --endpoint "unix://$SOCKET" >/dev/null 2>&1 &
"$SKYCAP" snapshot drill one --command 'sleep 100' --endpoint "unix://$SOCKET" >/dev/null 2>&1 &
wait_for 20 is verify-repository state RUNNING || fail "verify does not run"
wait_for 20 is prune-repository state RUNNING || fail "prune does not run"
wait_for 20 is drill-snapshot state RUNNING || fail "the drill does not run"
kill -KILL "$SERVER"
wait "$SERVER" || true
put_back
start
for kind in verify-repository prune-repository drill-snapshot; do
    wait_for 20 is $kind state FAILED || fail "$kind after SIGKILL: $(newest $kind state)"
    newest $kind errorMessage | grep -q 'repeat it' || fail "$kind does not say what to do: $(newest $kind errorMessage)"
done
cli snapshot prune >/dev/null || fail "prune afterwards"
cli snapshot verify --data >/dev/null || fail "verify afterwards"
expect_equal "verify afterwards" "$(newest verify-repository state)" SUCCEEDED

# What is damaged is no success.
pack=$(find "$SKYCAP_TMP/main.repository/01" -type f -size +4M | head -n 1)
printf damaged | dd of="$pack" bs=1 seek=2000000 conv=notrunc status=none
! cli snapshot verify --data >"$SKYCAP_TMP/verify" || fail "damage is not noticed"
grep -q DAMAGED "$SKYCAP_TMP/verify" || fail "the answer of verify: $(cat "$SKYCAP_TMP/verify")"
expect_equal "verify of what is damaged" "$(newest verify-repository state) $(newest verify-repository errorCode)" "FAILED 15" # DATA_LOSS
