#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Thousands of connections whose peers never say who they are: others are served at once meanwhile, on the same port and on the socket, also if the
# process was started with few descriptors, and it closes what is too many.
source "$(dirname "$0")/../peers.sh"

pki=$SKYCAP_TMP/pki
"$SKYCAP_ROOT/tests/make-certificates" "$pki" server:localhost,127.0.0.1 user.admin
tls_flags "$pki" server
hard=$(ulimit -Hn)
[ "$hard" -ge 4096 ] || { echo "needs 4096 descriptors"; exit 77; }
ulimit -Sn 256
start_skycap --listen 127.0.0.1:0 "${TLS[@]}"
ulimit -Sn "$hard"
address=$(sed -n 's/.*listening address=\(127[^ ]*\).*/\1/p' "$LOG")
tls_flags "$pki" user.admin
limit=$(awk '/^Max open files/ { print $4 }' "/proc/$SERVER/limits")
check "the process has taken the descriptors that it may have" "$limit" "$((hard < 1048576 ? hard : 1048576))"

# silent COUNT SECONDS: keeps so many connections open all the time, and says "ready" once they are; then how many it has seen closed.
silent() {
    /usr/bin/python3 - "${address%:*}" "${address##*:}" "$@" <<'END'
import resource, select, socket, sys, time

host, port, count, seconds = sys.argv[1], *map(int, sys.argv[2:])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
poll, peers, closed = select.poll(), {}, 0

def more():
    peer = socket.create_connection((host, port))
    peers[peer.fileno()] = peer
    poll.register(peer, select.POLLIN)

end, is_told = time.monotonic() + seconds, False
while time.monotonic() < end:
    while len(peers) < count and time.monotonic() < end:
        more()
    if not is_told:
        print("ready", flush=True)
        is_told = True
    for fd, _ in poll.poll(10):
        poll.unregister(fd)
        peers.pop(fd).close()
        closed += 1
print(closed, flush=True)
END
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }

descriptors() {
    local found=("/proc/$SERVER/fd/"*)
    echo ${#found[@]}
}

# slowest COMMAND...: in milliseconds, of ten times; 99999 if one fails.
slowest() {
    local started most=0
    for _ in {1..10}; do
        started=$(now_ms)
        "$@" >/dev/null 2>"$SKYCAP_TMP/complaint" || { cat "$SKYCAP_TMP/complaint" >&2; most=99999; }
        [ $(($(now_ms) - started)) -le "$most" ] || most=$(($(now_ms) - started))
    done
    echo "$most"
}

check_quick() { # check_quick CASE MS
    if [ "$2" -le $((2000 * SLOWER)) ]; then passes "$1"; else fails "$1" "it took $2 ms"; fi
}

silent 2000 10 >"$SKYCAP_TMP/silent" &
attacker=$!
is_ready() { grep -q ready "$SKYCAP_TMP/silent"; }
wait_for $((15 * SLOWER)) is_ready || fail "they do not connect"
check_quick "a client on the same port" "$(slowest "$SKYCAP" call --timeout 5 "${TLS[@]}" "$address" csi.v1.Identity/Probe)"
check_quick "a client on the socket" "$(slowest "$SKYCAP" call --timeout 5 "unix:$SOCKET" csi.v1.Identity/Probe)"
open=$(descriptors) # 512, those of a turn of the loop that are about to be closed, and its own
if [ "$open" -le 800 ]; then passes "it holds few of them"; else fails "it holds few of them" "it has $open descriptors"; fi
wait "$attacker"
if [ "$(tail -n 1 "$SKYCAP_TMP/silent")" -ge 1400 ]; then passes "it closes the others"; else fails "it closes the others" "it closed $(tail -n 1 "$SKYCAP_TMP/silent")"; fi
at_rest() { [ "$(descriptors)" -le 60 ]; }
wait_for $((15 * SLOWER)) at_rest || fail "it keeps $(descriptors) descriptors"
passes "nothing of them stays"
check "the log has a line about them, and not thousands" "$(grep -c 'connections that say nothing' "$LOG" | awk '{ print ($1 > 0 && $1 < 40) }')" 1
finish
