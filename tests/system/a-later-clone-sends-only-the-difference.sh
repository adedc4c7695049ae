#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# A volume is cloned to another node, changes, and is cloned again: the second time only the difference is sent, and the clone has the contents. Both nodes
# keep a hidden snapshot for it, which no list shows and which goes with the volume. Trees on btrfs, images on btrfs and xfs; images that grow; snapshots that
# are older than the base; a snapshot that was restored before is restored without a transfer.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    unshare --mount --net true 2>/dev/null || { echo "needs the right to make namespaces"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --net "$0" "$@"
fi
source "$(dirname "$0")/../cluster.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
requires mkfs.xfs
make_cluster 2 --backend btrfs --backend xfs --pool-size 2Gi

# Trees by their entries, block devices by their bytes.
sum_of() { # sum_of NUMBER VOLUME
    local path=$SKYCAP_TMP/look-$1-$2
    at_node "$1" volume publish "$2" "$path" >/dev/null
    (cd "$path" && find . -printf '%P %m %U %G %T@ %n %l\n' -type f -exec sha256sum {} + | LC_ALL=C sort | sha256sum)
    at_node "$1" volume unpublish "$2" "$path" >/dev/null
}

with_volume() { # with_volume NUMBER VOLUME COMMAND...: in the volume
    local path=$SKYCAP_TMP/with-$1-$2
    at_node "$1" volume publish "$2" "$path" >/dev/null
    (cd "$path" && "${@:3}")
    sync -f "$path"
    at_node "$1" volume unpublish "$2" "$path" >/dev/null
}

fill() {
    mkdir -p deep/er gone
    head -c 40000000 /dev/urandom >deep/large
    for number in $(seq 200); do echo "$number" >"deep/er/$number"; echo "$number" >"gone/$number"; done
    ln deep/large hard
    ln -s deep/er soft
}

change() { # some of everything that a difference can have
    rm -r gone
    mv deep/er moved
    mv moved/1 moved/tmp; mv moved/2 moved/1; mv moved/tmp moved/2 # names exchanged
    printf 'changed' | dd of=deep/large bs=1 seek=5000000 conv=notrunc status=none
    truncate -s 30000000 deep/large
    cp --reflink=auto deep/large part && truncate -s 3000000 part
    rm soft && mkdir soft && echo new >soft/new
    ln moved/3 moved/three && rm moved/3
    chmod 4711 moved/4
    setfattr -n user.note -v "$1" moved/5 2>/dev/null || true
    head -c 1000000 /dev/urandom >fresh
    touch -d 2001-02-03 moved
}

received() { # bytes that the machine of the node has received
    ip -n "node-$1" -s -j link show eth0 | field 0.stats64.rx.bytes
}

snapshots_at() { # snapshots_at NUMBER: directories in the back ends, hidden ones included
    find "$SKYCAP_TMP/node-$1.data" -mindepth 2 -path '*/snapshot-*/*' -prune -name '01*' -print | wc -l
}

# clone NUMBER WHAT... : makes a volume there, and says in $bytes how much that took.
clone() {
    local before
    before=$(received "$1")
    at_node "$1" volume create "${@:2}" --node "node-$1" >/dev/null || fail "no clone: $*"
    bytes=$(($(received "$1") - before))
}

expect_less() { # expect_less WHAT LIMIT
    echo "$1: $bytes bytes"
    [ "$bytes" -lt "$2" ] || fail "$1: $bytes bytes were sent, $2 are too many"
}

for kind in directory ext4-on-btrfs ext4-on-xfs; do
    flags=()
    case $kind in ext4-on-*) flags=(--fs ext4 --size 200Mi --parameter "backend=${kind#ext4-on-}") ;; esac
    at_node 1 volume create "$kind" --node node-1 "${flags[@]}" >/dev/null
    with_volume 1 "$kind" fill
    at_node 1 snapshot create "$kind" "$kind-old" >/dev/null
    clone 2 "$kind-1" --from-volume "$kind" "${flags[@]}"
    [ "$bytes" -gt 40000000 ] || fail "$kind: only $bytes bytes were sent the first time"
    check "$kind: the first clone has the contents" "$(sum_of 2 "$kind-1")" "$(sum_of 1 "$kind")"
    with_volume 1 "$kind" change first
    clone 2 "$kind-2" --from-volume "$kind" "${flags[@]}"
    expect_less "$kind: the second clone" 12000000
    wanted=$(sum_of 1 "$kind")
    check "$kind: the second clone has the contents" "$(sum_of 2 "$kind-2")" "$wanted"
    # The first clone and its base have parted from the second.
    with_volume 2 "$kind-2" rm fresh
    case $kind in
    ext4-on-*)
        at_node 1 volume expand "$kind" 300Mi >/dev/null
        flags=(--fs ext4 --size 300Mi "${flags[@]:4}")
        ;;
    esac
    with_volume 1 "$kind" touch larger
    clone 2 "$kind-3" --from-volume "$kind" "${flags[@]}"
    expect_less "$kind: the third clone" 12000000
    check "$kind: the third clone has the contents" "$(sum_of 2 "$kind-3")" "$(sum_of 1 "$kind")"
    # A snapshot from before all that: the base is newer, and larger.
    case $kind in ext4-on-*) flags=(--fs ext4 --size 200Mi "${flags[@]:4}") ;; esac
    clone 2 "$kind-back" --from-snapshot "$kind-old" "${flags[@]}"
    check "$kind: an older snapshot has its contents" "$(sum_of 2 "$kind-back")" "$(sum_of 2 "$kind-1")"
    # A snapshot that has been restored before needs no transfer.
    case $kind in ext4-on-*) flags=(--fs ext4 --size 300Mi "${flags[@]:4}") ;; esac
    at_node 1 snapshot create "$kind" "$kind-new" >/dev/null
    clone 2 "$kind-new" --from-snapshot "$kind-new" "${flags[@]}"
    expect_less "$kind: a snapshot" 1000000
    clone 2 "$kind-again" --from-snapshot "$kind-new" "${flags[@]}"
    expect_less "$kind: the same snapshot again" 100000
    check "$kind: it has its contents again" "$(sum_of 2 "$kind-again")" "$(sum_of 1 "$kind")"
done

check "no list of node 1 shows more than what users have" "$(at_node 1 snapshot list -o json | grep -c '"name"')" 6
check "no list of CSI does" "$(local_call node-2 csi.v1.Controller/ListSnapshots '{}' | grep -o '"snapshotId"' | wc -l)" 6
check "node 1 keeps one base of each volume beside those" "$(snapshots_at 1)" 9
check "node 2 keeps one base of each volume" "$(snapshots_at 2)" 3

# A crash keeps them, and so does a store that is made again from the volumes.
kill_node 2
"$SKYCAP" doctor --data "$SKYCAP_TMP/node-2.data" >"$SKYCAP_TMP/doctor" 2>&1 || fail "the doctor: $(cat "$SKYCAP_TMP/doctor")"
"$SKYCAP" doctor --rebuild --data "$SKYCAP_TMP/node-2.data" >"$SKYCAP_TMP/doctor" 2>&1 || fail "the doctor: $(cat "$SKYCAP_TMP/doctor")"
start_node 2 --backend btrfs --backend xfs --pool-size 2Gi
wait_until_settled 2
clone 2 directory-4 --from-volume directory
expect_less "after a crash and a rebuild" 100000
check "they are still hidden" "$(local_call node-2 csi.v1.Controller/ListSnapshots '{}' | grep -o '"snapshotId"' | wc -l)" 6

# They go with their volume, and hinder nobody.
for kind in directory ext4-on-btrfs ext4-on-xfs; do
    at_node 1 volume delete "$kind" >/dev/null
    at_node 1 snapshot delete "$kind-old" >/dev/null
    at_node 1 snapshot delete "$kind-new" >/dev/null
done
check "nothing is left at the source" "$(snapshots_at 1)" 0
finish
