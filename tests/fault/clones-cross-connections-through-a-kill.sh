#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 600
# A volume made from what another connection keeps has the same content, also if skycap is killed in the middle of the copy; then it was made once
# and nothing is left behind. The other connection is csi-driver-host-path where its program is there, else another skycap behind its socket.
source "$(dirname "$0")/../connections.sh"
need_storage

MIB=$((1 << 20))
FILES=10000
LARGE=1024 # mebibytes in one file

start_other() {
    HOSTPATH=$PEERS/hostpathplugin
    [ -x "$HOSTPATH" ] || HOSTPATH=$(command -v hostpathplugin) || HOSTPATH=
    if [ -n "$HOSTPATH" ]; then
        start_hostpath other --enable-attach
    else
        start_child other "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/other.sock" \
            --data "$SKYCAP_TMP/other.data" --backend dir --node-id other-node
    fi
    connection other <<<"{driver: csi, options: {endpoint: 'unix://$CHILD_SOCKET'}}"
}

# create NAME CONNECTION KIND [SOURCE]: prints the volume's id. A server that goes away meanwhile is asked again, as an orchestrator does.
create() {
    local request answer deadline=$((SECONDS + 120 * SLOWER))
    request=$(volume_request "$1" "$3" $((LARGE * 2)) "${4-}")
    request="${request%\}},\"parameters\":{\"connection\":\"$2\"}}"
    until answer=$("$SKYCAP" call --compact --timeout 30 "unix:$SOCKET" csi.v1.Controller/CreateVolume "$request" 2>"$SKYCAP_TMP/create.err"); do
        grep -qE 'ABORTED|UNAVAILABLE|DEADLINE' "$SKYCAP_TMP/create.err" || fail "create $1: $(cat "$SKYCAP_TMP/create.err")"
        [ "$SECONDS" -lt "$deadline" ] || fail "create $1 is never done: $(cat "$SKYCAP_TMP/create.err")"
        sleep 0.2
    done
    pick 'it["volume"]["volumeId"]' <<<"$answer"
}

publish_it() { # publish_it ID KIND
    rpc Controller/ControllerPublishVolume "{\"volumeId\":\"$1\",\"nodeId\":\"node\",\"volumeCapability\":$(capability "$2")}" >/dev/null
    stage "$1" "$2"
    publish "$1" "$2"
}

unpublish_it() {
    unpublish "$1"
    unstage "$1"
    rpc Controller/ControllerUnpublishVolume "{\"volumeId\":\"$1\",\"nodeId\":\"node\"}" >/dev/null
}

fill_tree() { # fill_tree DIRECTORY
    /usr/bin/python3 - "$1" $FILES <<'END'
import os, sys
top, count = sys.argv[1], int(sys.argv[2])
for i in range(count):
    directory = f"{top}/d{i // 500}"
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/f{i}", "wb") as file:
        file.write(os.urandom(i % 2000))
    if i % 100 == 0:
        os.chmod(f"{directory}/f{i}", 0o4711)
        os.chown(f"{directory}/f{i}", i + 1, i + 2)
        os.setxattr(f"{directory}/f{i}", "user.number", str(i).encode())
        os.utime(f"{directory}/f{i}", ns=(i * 10**9 + 5, i * 10**9 + 7))
        os.link(f"{directory}/f{i}", f"{directory}/link{i}")
        os.symlink(f"f{i}", f"{directory}/soft{i}")
os.mkfifo(f"{top}/fifo")
os.mknod(f"{top}/null", 0o20600, os.makedev(1, 3))
END
    dd if=/dev/urandom of="$1/large" bs=1M count=$LARGE status=none
    truncate --size $((LARGE * 2 * MIB)) "$1/sparse"
    sync -f "$1"
}

# describe DIRECTORY: everything that a copy must have, as one sum.
describe() {
    /usr/bin/python3 - "$1" <<'END'
import hashlib, os, stat, sys
top, names = sys.argv[1], []
for directory, below, files in os.walk(top):
    below[:] = sorted(name for name in below if name != "lost+found")
    names += [os.path.join(directory, name) for name in ["."] + files]
whole, links = hashlib.sha256(), {}
for name in sorted(names):
    is_ = os.lstat(name)
    kind = stat.S_IFMT(is_.st_mode)
    line = [os.path.relpath(name, top), is_.st_mode, is_.st_uid, is_.st_gid, is_.st_mtime_ns, is_.st_rdev]
    if kind == stat.S_IFREG:
        first = links.setdefault(is_.st_ino, line[0])
        line += [is_.st_size, is_.st_nlink, first]
        if first == line[0]:
            with open(name, "rb") as file:
                line.append(hashlib.file_digest(file, "sha256").hexdigest())
        line += [(key, os.getxattr(name, key)) for key in sorted(os.listxattr(name)) if key.startswith("user.")]
    if kind == stat.S_IFLNK:
        line.append(os.readlink(name))
    whole.update(repr(line).encode())
print(len(names), whole.hexdigest())
END
}

copies_dir() { echo "$SOCKET.data/connections/.copies"; }

has_begun() { [ -n "$(find "$(copies_dir)" -maxdepth 5 -path '*/to/target/*' -print -quit 2>/dev/null)" ]; }

# killed_copy NAME CONNECTION KIND SOURCE: as create, with a kill -9 of the server when the copy has begun. Sets MADE.
killed_copy() {
    create "$@" >"$SKYCAP_TMP/id" &
    local waiting=$!
    wait_while_running "$waiting" has_begun || fail "$1: the copy never began: $(cat "$SKYCAP_TMP/create.err")"
    kill -KILL "$SERVER"
    wait_for 10 has_ended "$SERVER" || fail "$1: the server outlives its end"
    start_connected --node-id node
    wait "$waiting" || fail "$1: $(cat "$SKYCAP_TMP/id")"
    MADE=$(cat "$SKYCAP_TMP/id")
}

volumes_of() { # volumes_of SOCKET: how many it has
    "$SKYCAP" call --compact "unix:$1" csi.v1.Controller/ListVolumes '{}' | pick 'len(it.get("entries", []))'
}

check_clean() { # check_clean WHAT VOLUMES OTHERS
    check "$1: as many volumes as were made" "$(volumes_of "$SOCKET")" "$2"
    check "$1: and the other driver has no more" "$(volumes_of "$SKYCAP_TMP/other.sock")" "$3"
    check "$1: nothing stays published for copies" "$(mounts_below "$(copies_dir)")$(ls "$(copies_dir)")" ""
}

start_other
connection fast <<<"{driver: local, options: {backend: btrfs, pool-size: 16Gi, data: $SKYCAP_TMP/fast}}"
start_connected --node-id node
wait_for 5 is_serving "unix:$SOCKET"

# ---- trees: there and back, killed in the middle both times ----
source_id=$(create first other tree)
publish_it "$source_id" tree
fill_tree "$(target_of "$source_id")"
wanted=$(describe "$(target_of "$source_id")")
unpublish_it "$source_id"
killed_copy second fast tree "$source_id"
there=$MADE
check "the clone is of the connection that was asked for" "${there%%/*}" v:fast
publish_it "$there" tree
check "$FILES files and $LARGE MiB are the same in the other connection" "$(describe "$(target_of "$there")")" "$wanted"
unpublish_it "$there"
check_clean "there" 2 1
snapshot=$(make_snapshot still "$there")
killed_copy third other tree "$snapshot"
back=$MADE
check "the volume of the snapshot is of the connection that was asked for" "${back%%/*}" v:other
publish_it "$back" tree
check "and the same when they are back" "$(describe "$(target_of "$back")")" "$wanted"
unpublish_it "$back"
check_clean "back" 3 2
check "asking again gives the same volume" "$(create third other tree "$snapshot")" "$back"
for id in "$source_id" "$there" "$back"; do
    delete_volume "$id"
done
rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$snapshot\"}" >/dev/null
check_clean "deleted" 0 0

# ---- raw devices ----
LARGE=64
device=$(create raw other block)
publish_it "$device" block
dd if=/dev/urandom of="$(target_of "$device")" bs=1M count=16 seek=8 conv=fsync status=none
wanted=$(sha256sum <"$(target_of "$device")")
unpublish_it "$device"
copy=$(create raw-copy fast block "$device")
publish_it "$copy" block
check "a device is the same in the other connection" "$(sha256sum <"$(target_of "$copy")")" "$wanted"
unpublish_it "$copy"
message=$("$SKYCAP" call --timeout 20 "unix:$SOCKET" csi.v1.Controller/CreateVolume \
    "$(volume_request tree-of-raw tree 128 "$device" | sed 's/}$/,"parameters":{"connection":"fast"}}/')" 2>&1) && fail "a tree was made from a device"
check "a tree is not made from a device" "$(grep -oE 'INVALID_ARGUMENT|INTERNAL|FAILED_PRECONDITION' <<<"$message" | head -1)" INVALID_ARGUMENT
delete_volume "$device"
delete_volume "$copy"
check_clean "devices" 0 0

# ---- a volume of that name that is somebody's already ----
for kind in tree block; do
    there=$(create mine other $kind)
    publish_it "$there" $kind
    if [ $kind = tree ]; then
        echo precious >"$(target_of "$there")/file"
    else
        echo precious | dd of="$(target_of "$there")" bs=1M seek=9 conv=notrunc,fsync status=none
    fi
    unpublish_it "$there"
    from=$(create elsewhere fast $kind)
    message=$("$SKYCAP" call --timeout 60 "unix:$SOCKET" csi.v1.Controller/CreateVolume \
        "$(volume_request mine $kind $((LARGE * 2)) "$from" | sed 's/}$/,"parameters":{"connection":"other"}}/')" 2>&1) && fail "$kind: it was overwritten: $message"
    check "$kind: a volume of that name with content is not taken for the target" "$(grep -o ALREADY_EXISTS <<<"$message" | head -1)" ALREADY_EXISTS
    publish_it "$there" $kind
    if [ $kind = tree ]; then
        check "$kind: it is as it was" "$(cat "$(target_of "$there")/file")" precious
    else
        check "$kind: it is as it was" "$(dd if="$(target_of "$there")" bs=1M skip=9 count=1 status=none | head -n 1)" precious
    fi
    unpublish_it "$there"
    delete_volume "$there"
    delete_volume "$from"
    check_clean "$kind: somebody's volume" 0 0
done

# ---- a source that is not there makes nothing ----
for gone in v:fast/00000000000000000000000 s:fast/00000000000000000000000; do
    message=$("$SKYCAP" call --timeout 60 "unix:$SOCKET" csi.v1.Controller/CreateVolume \
        "$(volume_request of-nothing tree 64 "$gone" | sed 's/}$/,"parameters":{"connection":"other"}}/')" 2>&1) && fail "a volume was made of nothing"
    check "no volume is made of ${gone%%:*}: that is not there" "$(grep -o NOT_FOUND <<<"$message" | head -1)" NOT_FOUND
done
check_clean "of nothing" 0 0
finish
