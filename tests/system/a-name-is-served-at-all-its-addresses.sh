#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --listen and --http serve every address of a name, on one port. An address that the machine does not have is left out and logged; one that is in
# use is told with its number.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../lib.sh"
requires ip curl

ip link set lo up
[ -e /proc/sys/net/ipv6 ] || { echo "needs IPv6"; exit 77; }
{
    printf '%s\n' "127.0.0.1 both" "::1 both" "127.0.0.1 partly" "203.0.113.7 partly" "203.0.113.7 nowhere" "127.0.0.2 twice" "127.0.0.2 twice"
    printf '127.0.1.%d many\n' {1..17}
} >"$SKYCAP_TMP/hosts"
echo "hosts: files" >"$SKYCAP_TMP/nsswitch.conf"
mount --bind "$SKYCAP_TMP/hosts" /etc/hosts
mount --bind "$SKYCAP_TMP/nsswitch.conf" /etc/nsswitch.conf

addresses() { sed -n 's/.*listening address=\([^u][^ ]*\).*/\1/p' "$LOG" | sort | tr '\n' ' '; }
restart() { # restart FLAG...
    [ -z "$SERVER" ] || stop_server "$SERVER"
    [ -z "$LOG" ] || : >"$LOG"
    start_skycap --insecure "$@"
}
hold_ports() { # hold_ports ADDRESS PORT...: somebody listens there until it is killed; returns when it does
    /usr/bin/python3 -c '
import socket, sys, time
held = [socket.create_server((sys.argv[1], int(port)), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET) for port in sys.argv[2:]]
print("held", flush=True)
time.sleep(100)' "$@" >"$SKYCAP_TMP/held" &
    HOLDER=$!
    wait_for 5 grep -q held "$SKYCAP_TMP/held" || fail "the ports $* could not be held"
}
let_go() {
    kill "$HOLDER"
    wait "$HOLDER" || true
}
refused() { # refused FLAG...: what the server says that does not start
    ! timeout 10 "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/new.sock" --data "$SKYCAP_TMP/new" --backend dir --insecure "$@" >"$SKYCAP_TMP/said" 2>&1 ||
        fail "it starts with $*"
    cat "$SKYCAP_TMP/said"
}

restart --listen both:7001 --http both:7002
expect_equal "addresses" "$(addresses)" "127.0.0.1:7001 [::1]:7001 "
for host in 127.0.0.1 "[::1]"; do
    is_serving "$host:7001" || fail "$host is not served"
    expect_equal "healthz at $host" "$(curl --silent --noproxy '*' "http://$host:7002/healthz")" ok
done

restart --listen :7001
expect_equal "addresses without a host" "$(addresses)" "0.0.0.0:7001 [::]:7001 "
for host in 127.0.0.1 "[::1]"; do
    is_serving "$host:7001" || fail "$host is not served without a host"
done

restart --listen twice:7001
expect_equal "an address that stands twice" "$(addresses)" "127.0.0.2:7001 "

restart --listen partly:7001
expect_equal "addresses that the machine has" "$(addresses)" "127.0.0.1:7001 "
grep -q 'not listening.* address=203.0.113.7:7001 of=partly:7001' "$LOG" || fail "the address that it does not have is not logged"

case $(refused --listen nowhere:7003) in
*"listen on 203.0.113.7:7003 (nowhere:7003): Cannot assign requested address"*) ;;
*) fail "no address: $(cat "$SKYCAP_TMP/said")" ;;
esac
case $(refused --listen many:7003) in
*"listen on many: the name has more than 16 addresses"*) ;;
*) fail "too many addresses: $(cat "$SKYCAP_TMP/said")" ;;
esac
hold_ports ::1 7003
for flag in --listen --http; do
    case $(refused "$flag" both:7003) in
    *"listen on [::1]:7003 (both:7003): Address already in use"*) ;;
    *) fail "$flag, one address in use: $(cat "$SKYCAP_TMP/said")" ;;
    esac
done
let_go

# Port 0: what is free at one address may be in use at another. No client has had a port of these yet.
echo "20000 20007" >/proc/sys/net/ipv4/ip_local_port_range
hold_ports ::1 20001 20002 20004 20007
for _ in 1 2 3 4 5; do
    restart --listen both:0
    port=$(addresses | sed -n 's/^127.0.0.1:\([0-9]*\) .*/\1/p')
    expect_equal "addresses with any port" "$(addresses)" "127.0.0.1:$port [::1]:$port "
done
let_go
