#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 600
# The connection between two nodes is cut 20 times while a volume is cloned. The transfer goes on each time, and sends at most 5 % more than once. So
# do the transfer of a difference, and that of a move while nobody can use the volume.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage

CUTS=20
MEGABYTES=400

# A relay on the machine of node 1. While $SKYCAP_TMP/cuts says a number above 0 it cuts each connection after as many bytes as $SKYCAP_TMP/limit says and
# counts down; what it has passed on from node 1 is in $SKYCAP_TMP/passed.
cat >"$SKYCAP_TMP/relay.py" <<'END'
import asyncio, os, sys

port, to, directory, host = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
passed = 0


def read(name):
    with open(directory + "/" + name) as file:
        return int(file.read() or 0)


def write(name, value):
    with open(f"{directory}/.{name}", "w") as file:
        file.write(str(value))
    os.rename(f"{directory}/.{name}", f"{directory}/{name}")


async def pump(reader, writer, counts):
    global passed
    own = 0
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
        if counts:
            own += len(data)
            passed += len(data)
            write("passed", passed)
            if own > read("limit") and read("cuts") > 0:
                write("cuts", read("cuts") - 1)
                break
    writer.transport.abort()


async def serve(reader, writer):
    there, to_there = await asyncio.open_connection(host, to)
    done, _ = await asyncio.wait([asyncio.ensure_future(pump(reader, to_there, False)), asyncio.ensure_future(pump(there, writer, True))],
                                 return_when=asyncio.FIRST_COMPLETED)
    writer.transport.abort()
    to_there.transport.abort()


async def main():
    server = await asyncio.start_server(serve, host, port)
    async with server:
        await server.serve_forever()

asyncio.run(main())
END
echo 0 >"$SKYCAP_TMP/cuts"
echo 0 >"$SKYCAP_TMP/limit"
echo 0 >"$SKYCAP_TMP/passed"

# cut_into MEGABYTES [CUTS]: the next transfer, which has so many, is cut so often.
cut_into() {
    echo $(($1 * 1000000 / (CUTS + 2))) >"$SKYCAP_TMP/limit"
    echo "${2-$CUTS}" >"$SKYCAP_TMP/cuts"
}

NODES=(node-1 node-2)
make_machines registry "${NODES[@]}"
start_registry
# shellcheck disable=SC2154 # oim.sh has the machines
here=${machines[node-1]}
on node-1 /usr/bin/python3 "$SKYCAP_TMP/relay.py" 9000 "$PORT" "$SKYCAP_TMP" "$here" >"$SKYCAP_TMP/relay.log" 2>&1 &
RELAY=$!
after_servers() { kill "$RELAY" 2>/dev/null || true; }
start_node 1 --backend btrfs --backend dir --pool-size 3Gi --advertise "$here:9000"
start_node 2 --backend btrfs --backend dir --pool-size 3Gi
wait_until_settled 2

try_clone() { # a call that is cut before the transfer begins is repeated, as an orchestrator does
    at_node 2 volume create "$kind-$cuts" --node node-2 --from-volume "$kind-of-$cuts" "${flags[@]}" >"$SKYCAP_TMP/clone.log" 2>&1
}

try_clone_again() {
    at_node 2 volume create "$kind-again" --node node-2 --from-volume "$kind-of-0" "${flags[@]}" >"$SKYCAP_TMP/clone.log" 2>&1
}

for kind in directory ext4; do
    flags=()
    [ "$kind" = directory ] || flags=(--fs "$kind" --size 1Gi)
    at_node 1 volume create "$kind-of-0" --node node-1 "${flags[@]}" >/dev/null
    at_node 1 volume publish "$kind-of-0" "$SKYCAP_TMP/at" >/dev/null
    for number in $(seq 8); do head -c $((MEGABYTES * 125000)) /dev/urandom >"$SKYCAP_TMP/at/$number"; done
    wanted=$(cd "$SKYCAP_TMP/at" && sha256sum [0-9])
    at_node 1 volume unpublish "$kind-of-0" "$SKYCAP_TMP/at" >/dev/null
    # Node 2 has nothing of this one when it is cut.
    at_node 1 volume clone "$kind-of-0" "$kind-of-$CUTS" >/dev/null
    for cuts in 0 $CUTS; do
        before=$(cat "$SKYCAP_TMP/passed")
        cut_into $MEGABYTES "$cuts"
        wait_for 60 try_clone || fail "$kind: it cannot be cloned: $(cat "$SKYCAP_TMP/clone.log")"
        bytes=$(($(cat "$SKYCAP_TMP/passed") - before))
        check "$kind: it was cut as often as it should" "$(cat "$SKYCAP_TMP/cuts")" 0
        echo "$kind: $bytes bytes were sent with $cuts cuts"
        [ "$cuts" != 0 ] || once=$bytes
    done
    [ $((bytes * 100)) -le $((once * 105)) ] || fail "$kind: $bytes bytes were sent, $once without cuts"
    at_node 2 volume publish "$kind-$CUTS" "$SKYCAP_TMP/at" >/dev/null
    check "$kind: the content" "$(cd "$SKYCAP_TMP/at" && sha256sum [0-9])" "$wanted"
    at_node 2 volume unpublish "$kind-$CUTS" "$SKYCAP_TMP/at" >/dev/null
    # The difference from what node 2 has now: half of the files are new.
    at_node 1 volume publish "$kind-of-0" "$SKYCAP_TMP/at" >/dev/null
    for number in $(seq 4); do head -c $((MEGABYTES * 125000)) /dev/urandom >"$SKYCAP_TMP/at/$number"; done
    wanted=$(cd "$SKYCAP_TMP/at" && sha256sum [0-9])
    at_node 1 volume unpublish "$kind-of-0" "$SKYCAP_TMP/at" >/dev/null
    before=$(cat "$SKYCAP_TMP/passed")
    cut_into $((MEGABYTES / 2))
    cuts=0
    wait_for 60 try_clone_again || fail "$kind: it cannot be cloned again: $(cat "$SKYCAP_TMP/clone.log")"
    bytes=$(($(cat "$SKYCAP_TMP/passed") - before))
    check "$kind: the difference was cut as often as it should" "$(cat "$SKYCAP_TMP/cuts")" 0
    echo "$kind: $bytes bytes were sent for a difference of $((once / 2)) with $CUTS cuts"
    [ $((bytes * 100)) -le $((once / 2 * 105)) ] || fail "$kind: $bytes bytes were sent for a difference of $((once / 2))"
    at_node 2 volume publish "$kind-again" "$SKYCAP_TMP/at" >/dev/null
    check "$kind: the content of the difference" "$(cd "$SKYCAP_TMP/at" && sha256sum [0-9])" "$wanted"
    at_node 2 volume unpublish "$kind-again" "$SKYCAP_TMP/at" >/dev/null
done

# The back end dir cannot tell differences, so everything is sent after the volume was given up.
at_node 1 volume create last --node node-1 --parameter backend=dir >/dev/null
at_node 1 volume publish last "$SKYCAP_TMP/at" >/dev/null
for number in $(seq 8); do head -c $((MEGABYTES * 62500)) /dev/urandom >"$SKYCAP_TMP/at/$number"; done
wanted=$(cd "$SKYCAP_TMP/at" && sha256sum [0-9])
at_node 1 volume unpublish last "$SKYCAP_TMP/at" >/dev/null
before=$(cat "$SKYCAP_TMP/passed")
cut_into $((MEGABYTES / 2))
try_move() { # a call of the command may be cut, too; the move goes on, and the command again waits for it
    at_node 2 volume move last node-2 >"$SKYCAP_TMP/move.log" 2>&1
}
wait_for 60 try_move || fail "it does not move: $(cat "$SKYCAP_TMP/move.log")"
bytes=$(($(cat "$SKYCAP_TMP/passed") - before))
check "move: it was cut as often as it should" "$(cat "$SKYCAP_TMP/cuts")" 0
echo "move: $bytes bytes were sent of $((MEGABYTES * 500000)) with $CUTS cuts"
[ $((bytes * 100)) -le $((MEGABYTES * 500000 * 105)) ] || fail "move: $bytes bytes were sent of $((MEGABYTES * 500000))"
at_node 2 volume publish last "$SKYCAP_TMP/at" >/dev/null
check "move: the content" "$(cd "$SKYCAP_TMP/at" && sha256sum [0-9])" "$wanted"
at_node 2 volume unpublish last "$SKYCAP_TMP/at" >/dev/null
finish
