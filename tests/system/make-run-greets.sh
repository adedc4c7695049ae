#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make run` says on stdout: where the socket, the data, the page and its token are, and a next command, which works. A service manager's log has none of it.
source "$(dirname "$0")/../lib.sh"

grep -q 'serve --endpoint unix://$(CURDIR)/run/csi.sock --data run/data --http $(HTTP) --http-token-file run/token --greet $(FLAGS)$' "$SKYCAP_ROOT/Makefile" ||
    fail "make run serves otherwise than this test"
mkdir -p "$SKYCAP_TMP/run"
cd "$SKYCAP_TMP" || exit
bash -c "$(sed -n 's/^\t@\(.*>run\/token)\)$/\1/p' "$SKYCAP_ROOT/Makefile")"
expect_equal "the mode of the token" "$(stat -c %a run/token)" 600

# serve NAME COMMAND...: starts it, and waits until it answers; NAME.out has its stdout.
serve() {
    local name=$1
    shift
    LOG=$name.log
    "$@" serve --endpoint "unix://$SKYCAP_TMP/$name.sock" --data "$name.data" --backend dir --http "${HTTP:-127.0.0.1:0}" >"$name.out" 2>"$LOG" &
    SERVER=$!
    SOCKET=$SKYCAP_TMP/$name.sock
    servers+=("$SERVER")
    wait_for 5 answers_or_ended || fail "not ready"
}
greeted() { exec "$SKYCAP" "$@" --greet; }

with_token() { greeted "$@" --http-token-file run/token; }
serve run/csi with_token
wait_for 5 grep -q 'Try next' run/csi.out || fail "no greeting: $(cat run/csi.out)"
next=$(tail -n 1 run/csi.out | grep 'volume create' || sed -n '/Try next/{n;p}' run/csi.out)
head -n 1 run/csi.out | grep -qE '^Skycap [0-9.]+ is ready\. Ctrl-C stops it; volumes stay\.$' || fail "first line: $(head -n 1 run/csi.out)"
grep -qE "^  socket +unix:(//)?$SOCKET$" run/csi.out || fail "no socket: $(cat run/csi.out)"
grep -qE "^  data +$SKYCAP_TMP/run/csi.data \(dir, [0-9.]+ [A-Z]iB free\)$" run/csi.out || fail "no data: $(cat run/csi.out)"
page=$(sed -nE 's/^  page +(http.*)/\1/p' run/csi.out)
curl -sf -o page.out "$page" || fail "the page $page does not answer"
grep -qE '^  token +run/token ' run/csi.out || fail "no token: $(cat run/csi.out)"
delete=(-X POST -H "Content-Type: application/json" -d '{"id":"v:local/none"}' -s -o deleted.out -w '%{http_code}' "${page}api/v1/volumes/delete")
expect_equal "a change without the token" "$(curl "${delete[@]}")" 401
[ "$(curl -H "Authorization: Bearer $(cat run/token)" "${delete[@]}")" != 401 ] || fail "the token is wrong: $(cat deleted.out)"
! grep -q '^  clones' run/csi.out || fail "it explains a back end that was asked for: $(cat run/csi.out)"
[ "$(wc -l <run/csi.out)" -le 8 ] || fail "the greeting is long: $(cat run/csi.out)"
! grep -q -- --endpoint <<<"$next" || fail "commands find the socket of make run by themselves: $next"
if [ "$(id -u)" = 0 ]; then
    expect_equal "the next command" "${next#  }" "$SKYCAP volume create hello --size 1Gi --publish /mnt/hello"
fi
(unset CSI_ENDPOINT && bash -c "${next/--publish \/mnt\/hello/}") >created || fail "the next command fails: $next"
grep -q '^hello .* ready ' created || fail "it made: $(cat created)"

serve other greeted
wait_for 5 grep -q 'Try next' other.out || fail "no greeting"
grep -qE -- "volume create .* --endpoint unix:(//)?$SOCKET$" other.out || fail "the next command would not find the socket: $(cat other.out)"

HTTP=0.0.0.0:0 serve everywhere greeted
wait_for 5 grep -q 'Try next' everywhere.out || fail "no greeting"
! grep -qE '^  (page|token)' everywhere.out || fail "it names a page that it does not serve: $(cat everywhere.out)"
curl -sf -o metrics.out "$(sed -nE 's/^  metrics +(http.*)/\1/p' everywhere.out)" || fail "the metrics do not answer: $(cat everywhere.out)"
stop_server "$SERVER"

serve quiet "$SKYCAP"
stop_server "$SERVER"
expect_equal "without the flag and a terminal" "$(cat quiet.out)" ""

"$SKYCAP_ROOT/tests/notify.py" "$SKYCAP_TMP/notify" >told 2>&1 &
manager=$!
wait_for 5 grep -qs bound told || fail "no manager"
NOTIFY_SOCKET=$SKYCAP_TMP/notify serve managed greeted
stop_server "$SERVER"
expect_equal "as a service" "$(cat managed.out)" ""
kill "$manager"

terminal() { exec script -qec "$SKYCAP $*" /dev/null; }
serve shown terminal
wait_for 5 grep -q 'Try next' shown.out || fail "no greeting on a terminal: $(cat shown.out)"
stop_server "$SERVER" || true
servers=("${servers[@]:0:2}")
