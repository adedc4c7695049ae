#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# btrfs lets everybody who may write to a volume make subvolumes in it, which have accounts of their own. They count towards the size of the volume,
# whatever their maker says, and that outlasts growing, snapshots, a kill and a rebuild. Deleting the volume leaves nothing of them.
source "$(dirname "$0")/../storage.sh"
need_storage
requires btrfs setpriv
start_skycap --backend btrfs --pool-size 2Gi
pool=$SOCKET.data/pool
uuid=$(btrfs filesystem show "$pool" | sed -n 's/.*uuid: //p')
if [ "$(cat "/sys/fs/btrfs/$uuid/qgroups/mode")" != squota ]; then
    echo "needs simple quotas (Linux 6.7 and later)"
    exit 77
fi
chmod 711 "$SKYCAP_TMP"

cat >"$SKYCAP_TMP/tenant" <<'END_OF_PYTHON'
# tenant make DIRECTORY NAME [GROUP...]     a subvolume that joins just these quota groups; "own" alone: as the kernel likes
# tenant freeze SUBVOLUME                   makes it read-only
# tenant id SUBVOLUME
# tenant fill FILE MEBIBYTES                prints how many went in, and why not all
import ctypes, errno, fcntl, os, struct, sys

MAKE, FREEZE, LOOK_UP = 0x50009418, 0x4008941A, 0xD0009412
INHERIT, READ_ONLY = 4, 2


def make(directory, name, *groups):
    numbers = [int(level) << 48 | int(number) for level, number in (group.split("/") for group in groups if group != "own")]
    inherit = struct.pack("9Q", 0, len(numbers), *[0] * 7) + struct.pack(f"{len(numbers)}Q", *numbers)
    buffer = ctypes.create_string_buffer(inherit, len(inherit))
    is_own = "own" in groups
    words = (0, 0, 0 if is_own else INHERIT, 0 if is_own else len(inherit), 0 if is_own else ctypes.addressof(buffer))
    call(directory, MAKE, struct.pack("5Q16x", *words) + name.encode())


def call(path, request, argument):
    fd = os.open(path, os.O_RDONLY)
    size = request >> 16 & 0x3FFF
    answer = bytearray(argument.ljust(size, b"\0"))
    fcntl.ioctl(fd, request, answer)
    return answer


def fill(path, mebibytes):
    written, why = 0, "all"
    try:
        with open(path, "wb", buffering=0) as file:
            while written < int(mebibytes):
                file.write(os.urandom(1 << 20))
                written += 1
            os.fsync(file.fileno())
    except OSError as error:
        why = errno.errorcode[error.errno]
    print(written, why)


match sys.argv[1:]:
    case "make", directory, name, *groups:
        make(directory, name, *groups)
    case "freeze", path:
        call(path, FREEZE, struct.pack("Q", READ_ONLY))
    case "id", path:
        print(struct.unpack_from("Q", call(path, LOOK_UP, struct.pack("QQ", 0, 256)))[0])
    case "fill", path, mebibytes:
        fill(path, mebibytes)
END_OF_PYTHON
chmod 644 "$SKYCAP_TMP/tenant"

tenant() { # tenant WHAT...: as somebody without any rights
    setpriv --reuid nobody --clear-groups /usr/bin/python3 "$SKYCAP_TMP/tenant" "$@"
}

id_of() { # id_of SUBVOLUME
    /usr/bin/python3 "$SKYCAP_TMP/tenant" id "$1"
}

give() { # give NAME MEBIBYTES: a volume that everybody may write to; prints its id
    local id
    id=$(make_volume "$1" tree "$2")
    use "$id" tree
    chmod 777 "$(target_of "$id")"
    echo "$id"
}


is_in() { # is_in SUBVOLUME GROUP
    btrfs qgroup show -p --raw "$pool" | awk -v account="0/$(id_of "$1")" '$1 == account' | grep -q " $2\( \|\$\)"
}

is_outside() { # is_outside SUBVOLUME: in no group at all
    ! btrfs qgroup show -p --raw "$pool" | awk -v account="0/$(id_of "$1")" '$1 == account' | grep -q ' [1-9][0-9]*/[0-9]'
}

used_by() { # used_by ID: MiB
    rpc Node/NodeGetVolumeStats "{\"volumeId\":\"$1\",\"volumePath\":\"$(target_of "$1")\"}" |
        pick '[int(u["used"]) >> 20 for u in it["usage"] if u.get("unit") == "BYTES"][0]'
}

accounts() { # of all kinds
    btrfs filesystem sync "$pool"
    btrfs subvolume sync "$pool" >/dev/null
    btrfs qgroup show "$pool" | grep -c '^ *[0-9]*/[0-9]'
}

has_accounts() { [ "$(accounts)" = "$1" ]; }
has_no_groups() { ! btrfs qgroup show "$pool" | grep -q '^ *[1-9][0-9]*/'; }

wants() { # wants WHAT GOT LEAST MOST
    [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || fail "$1: $2, and not $3 to $4"
}

before=$(accounts)

# ---- no way past the size ----
volume=$(give volume 64)
target=$(target_of "$volume")
group=1000/$(id_of "$target")
tenant make "$target" first own
wait_for 10 is_in "$target/first" "$group" || fail "a subvolume in a volume is not counted: $(btrfs qgroup show -pcre "$pool")"
is_in "$target" "$group" || fail "the volume itself is not counted"
read -r written why < <(tenant fill "$target/first/file" 200)
expect_equal "why a subvolume is full" "$why" EDQUOT
wants "MiB in the subvolume" "$written" 62 65
read -r written why < <(tenant fill "$target/beside" 8)
expect_equal "why the volume is full too" "$why" EDQUOT
wants "what is told to be used" "$(used_by "$volume")" 62 65

# Those who delete may go on.
rm -f "$target/beside"
setpriv --reuid nobody --clear-groups rm "$target/first/file"
sync -f "$target"
read -r written why < <(tenant fill "$target/first/file" 16)
expect_equal "after deleting" "$written $why" "16 all"

# ---- later ones join, whatever their maker says ----
other=$(give other 64)
tenant make "$(target_of "$other")" plain own
wait_for 10 is_in "$(target_of "$other")/plain" "1000/$(id_of "$(target_of "$other")")" || fail "the other volume has no group"
tenant make "$target" joins own
is_in "$target/joins" "$group" || fail "a second subvolume does not join at once"
tenant make "$target" evades
is_outside "$target/evades" || fail "the test's way to stay outside does not work"
tenant make "$target/evades" below
tenant make "$(target_of "$other")" intruder "$group"
is_in "$(target_of "$other")/intruder" "$group" || fail "the test's way into another's group does not work"
wait_for 10 is_in "$target/evades" "$group" || fail "one that was made outside of the group stays there"
wait_for 10 is_in "$target/evades/below" "$group" || fail "one below it stays outside"
wait_for 10 is_in "$(target_of "$other")/intruder" "1000/$(id_of "$(target_of "$other")")" || fail "an intruder is not in its own group"
! is_in "$(target_of "$other")/intruder" "$group" || fail "an intruder is charged to somebody else"

# ---- snapshots and clones are not charged to it ----
snapshot=$(make_snapshot kept "$volume")
clone=$(make_volume clone tree 64 "$volume")
use "$clone" tree
handle=${snapshot##*/}
is_outside "$pool/snapshot-trees/$handle/tree" || fail "a snapshot is charged to the volume"
is_outside "$(target_of "$clone")" || fail "a clone is charged to the volume"
[ -z "$(ls -A "$(target_of "$clone")/first")" ] || fail "a clone has what was in a subvolume"
chmod 777 "$(target_of "$clone")"
read -r written why < <(tenant fill "$(target_of "$clone")/file" 200)
expect_equal "why the clone is full" "$why" EDQUOT
wants "MiB in the clone" "$written" 62 66
wants "what the volume uses beside its clone" "$(used_by "$volume")" 15 18

# ---- growing ----
rpc Controller/ControllerExpandVolume "{\"volumeId\":\"$volume\",\"capacityRange\":{\"requiredBytes\":$((128 << 20))}}" >/dev/null
read -r written why < <(tenant fill "$target/joins/file" 300)
expect_equal "why it is full when it has grown" "$why" EDQUOT
wants "MiB beside 16 in 128" "$written" 108 113

# ---- a kill, and a store that is lost ----
kill -KILL "$SERVER"
wait "$SERVER" || true
find "$SOCKET.data" -maxdepth 1 -name 'state.db*' -delete
"$SKYCAP" doctor --data "$SOCKET.data" --rebuild >"$SKYCAP_TMP/rebuilt"
start_skycap --backend btrfs --pool-size 2Gi
rm "$target/joins/file"
sync -f "$target"
read -r written why < <(tenant fill "$target/evades/file" 300)
expect_equal "why it is full after a rebuild" "$why" EDQUOT
wants "MiB beside 16 in 128 after a rebuild" "$written" 108 113
for id in "$volume" "$other" "$clone"; do
    use "$id" tree # the rows of the mounts were lost too
done
wants "what is told to be used after a rebuild" "$(used_by "$volume")" 126 129

# ---- deleting: deep ones, read-only ones, without room ----
deep=$target/evades/below
tenant freeze "$target/first"
rm "$target/evades/file"
sync -f "$target"
for i in $(seq 1 20); do
    tenant make "$deep" "$i" own
    deep=$deep/$i
done
tenant fill "$target/evades/file" 300 >/dev/null
tenant freeze "$deep"
tenant freeze "${deep%/*/*}"
tenant freeze "$target/evades/below"
unuse "$volume"
delete_volume "$volume"
[ ! -e "$pool/volume-trees/${volume##*/}" ] || fail "the volume is still there"
! btrfs qgroup show "$pool" | grep -q "^$group " || fail "its group is still there"

# One whose subvolumes are gone already: the group goes a moment later.
rmdir "$(target_of "$other")/plain" "$(target_of "$other")/intruder"
unuse "$other"
delete_volume "$other"
wait_for 10 has_no_groups || fail "groups are left: $(btrfs qgroup show -pc "$pool")"

unuse "$clone"
delete_volume "$clone"
rpc Controller/DeleteSnapshot "{\"snapshotId\":\"$snapshot\"}" >/dev/null
wait_for 20 has_accounts "$before" || fail "accounts are left ($before before): $(btrfs qgroup show -pc "$pool")"
