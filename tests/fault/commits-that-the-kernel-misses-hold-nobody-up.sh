#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# While the kernel's thread is at the end of a commit of btrfs it misses that another one is asked for (BTRFS_IOC_START_SYNC), for half a minute. Somebody asks for commits
# here again and again: snapshots of groups, and deletes on a nearly full pool, do not wait for that thread. What is deleted there is given back soon.
source "$(dirname "$0")/../storage.sh"
need_storage

LONGEST=10000 # ms
start_skycap --backend btrfs --pool-size 512Mi
for i in {1..12}; do
    ids+=("$(make_volume "small-$i" tree)")
done
big=$(make_volume big tree 2048)
use "$big" tree
now() { date +%s%3N; }

# asks_for_commits DIRECTORY: until its process is ended; it may be in a call that the kernel has missed.
asks_for_commits() {
    exec setpriv --pdeathsig KILL -- /usr/bin/python3 - "$1" <<'END_OF_PYTHON' >/dev/null 2>&1
import fcntl, os, sys

START_SYNC = 0x80089418
directory = os.open(sys.argv[1], os.O_RDONLY)
while True:
    os.mkdir("noise", dir_fd=directory)
    os.rmdir("noise", dir_fd=directory)
    fcntl.ioctl(directory, START_SYNC, bytearray(8))
END_OF_PYTHON
}
mkdir "$SOCKET.data/pool/elsewhere"
asks_for_commits "$SOCKET.data/pool/elsewhere" &
noise=$!
after_servers() {
    kill -KILL "$noise" 2>/dev/null || true
    wait "$noise" 2>/dev/null || true
    undo_storage "$SKYCAP_TMP" || true
}

# in_time WHAT COMMAND...
in_time() {
    local what=$1 start took
    start=$(now)
    shift
    "$@" >"$SKYCAP_TMP/answer"
    took=$(($(now) - start))
    [ $took -le "$worst" ] || worst=$took
    [ $took -lt $LONGEST ] || fail "$what took $took ms"
}

members=$(printf ',"%s"' "${ids[@]:0:4}")
worst=0
for i in {1..40}; do
    in_time "the group $i" rpc GroupController/CreateVolumeGroupSnapshot "{\"name\":\"group-$i\",\"sourceVolumeIds\":[${members:1}]}"
done
echo "the slowest of 40 groups of 4 took $worst ms"

# ---- nearly full ----

available() { rpc Controller/GetCapacity '{}' | pick 'int(it.get("availableCapacity", 0))'; }
is_nearly_full() {
    local free
    free=$(stat --file-system --format '%a %b' "$SOCKET.data/pool")
    [ $((${free% *} * 20)) -lt "${free#* }" ]
}
for i in {1..100}; do
    ! is_nearly_full || break
    head -c $((8 << 20)) /dev/urandom >"$(target_of "$big")/file-$i"
    sync -f "$(target_of "$big")"
done
is_nearly_full || fail "the pool does not become nearly full: $(available)"
worst=0
for id in "${ids[@]:4}"; do
    in_time "a delete" delete_volume "$id"
done
echo "the slowest of 8 deletes on a nearly full pool took $worst ms"

kill -KILL "$noise"
wait "$noise" 2>/dev/null || true
unuse "$big"
start=$(now)
delete_volume "$big"
has_room() { [ "$(available)" -gt $((200 << 20)) ]; }
wait_for 15 has_room || fail "the room does not come back soon: $(available)"
echo "the room was back after $(($(now) - start)) ms"
