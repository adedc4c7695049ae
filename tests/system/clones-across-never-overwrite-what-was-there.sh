#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# A clone across connections goes onto a new volume whatever bytes that holds, as with drivers that do not zero their raw volumes. It never goes onto a volume that was there before
# under the same name, which is left as it is. Where the driver cannot tell which of the two it is, only a volume of zeros is taken.
source "$(dirname "$0")/../connections.sh"
need_peers go
need_storage

MIB=$((1 << 20))

for name in thick late blind; do
    mkdir "$SKYCAP_TMP/$name.images"
done
sample thick --old-bytes="$SKYCAP_TMP/thick.images"
sample late --late=CreateVolume=3s --old-bytes="$SKYCAP_TMP/late.images"
sample blind --without=LIST_VOLUMES,LIST_VOLUMES_PUBLISHED_NODES --old-bytes="$SKYCAP_TMP/blind.images"
connection home <<<"{driver: local, options: {backend: dir, data: $SKYCAP_TMP/home}}"
start_connected --node-id node
wait_until_up thick late blind home

request() { # request NAME CONNECTION KIND MEBIBYTES [SOURCE]
    volume_request "$1" "$3" "$4" "${5-}" | sed "s/}\$/,$(on "$2")}/"
}

make() { # make NAME CONNECTION KIND MEBIBYTES [SOURCE]: prints its id
    rpc Controller/CreateVolume "$(request "$@")" | pick 'it["volume"]["volumeId"]'
}

refused() { # refused CODE NAME CONNECTION KIND MEBIBYTES SOURCE: sets MESSAGE
    local code=$1
    shift
    MESSAGE=$("$SKYCAP" call --timeout 60 "unix:$SOCKET" csi.v1.Controller/CreateVolume "$(request "$@")" 2>&1) && fail "$1 was made: $MESSAGE"
    check "$1 on $2 is $code" "$(grep -oE '\b[A-Z]+_[A-Z_]+\b' <<<"$MESSAGE" | head -n 1)" "$code"
}

image() { echo "$SKYCAP_TMP/$1.images/volumes-$2"; } # image CONNECTION NAME

has_volumes() { # has_volumes CONNECTION NAME...
    local connection=$1
    shift
    check "volumes of $connection" "$(find "$SKYCAP_TMP/$connection.images" -type f -printf '%f\n' | sed 's/^volumes-//' | sort | xargs)" "$*"
}

# holds_copy CONNECTION NAME MEBIBYTES: the source, and zeros up to the size.
holds_copy() {
    local image
    image=$(image "$1" "$2")
    check "$2 on $1: its size" "$(stat --format %s "$image")" $(($3 * MIB))
    check "$2 on $1: the bytes of its source" "$(head --bytes $((8 * MIB)) "$image" | sha256sum)" "$wanted"
    check "$2 on $1: zeros behind them" "$(tail --bytes +$((8 * MIB + 1)) "$image" | tr -d '\0' | wc -c)" 0
}

raw=$(make raw home block 8)
use "$raw" block
dd if=/dev/urandom of="$(target_of "$raw")" bs=1M count=5 seek=1 conv=fsync status=none
wanted=$(sha256sum <"$(target_of "$raw")")
unuse "$raw"
snapshot=$(make_snapshot still "$raw")
tree=$(make tree home tree 8)

# ---- new volumes ----
same=$(make same thick block 8 "$raw")
check "a clone on a driver that does not zero" "$same" v:thick/volumes/same
holds_copy thick same 8
check "asked for again it is the same" "$(make same thick block 8 "$raw")" "$same"
make larger thick block 12 "$snapshot" >/dev/null
holds_copy thick larger 12
has_volumes thick larger same
delete_volume "$same"
delete_volume v:thick/volumes/larger

# ---- copies that fail leave nothing ----
refused OUT_OF_RANGE smaller thick block 4 "$raw"
refused INVALID_ARGUMENT mixed thick block 8 "$tree"
refused FAILED_PRECONDITION files thick tree 8 "$tree"
grep -q 'v:thick/volumes/files' <<<"$MESSAGE" || fail "the message does not name the volume: $MESSAGE"
has_volumes thick

# ---- volumes that were there before ----
make mine thick block 8 >/dev/null
"$SKYCAP" call "unix:$SKYCAP_TMP/thick.sock" csi.v1.Controller/CreateVolume "$(volume_request theirs block 8)" >/dev/null
make zeros thick block 8 >/dev/null
truncate --size 0 "$(image thick zeros)"
truncate --size $((8 * MIB)) "$(image thick zeros)"
for name in mine theirs zeros; do
    before=$(sha256sum <"$(image thick $name)")
    for round in 1 2; do
        refused ALREADY_EXISTS $name thick block 8 "$raw"
        grep -q "v:thick/volumes/$name" <<<"$MESSAGE" || fail "the message does not name the volume: $MESSAGE"
        check "$name is as it was, $round" "$(sha256sum <"$(image thick $name)")" "$before"
    done
    check "$name was not published" "$(seen thick NodePublishVolume "[one for one in all if one['volumeId'] == 'volumes/$name']")" '[]'
done
has_volumes thick mine theirs zeros

# ---- an answer that comes too late ----
! "$SKYCAP" call --timeout 1 "unix:$SOCKET" csi.v1.Controller/CreateVolume "$(request slow late block 8 "$raw")" >/dev/null 2>&1 || fail "it was in time"
[ -e "$(image late slow)" ] || fail "the driver has not made it"
check "the same request takes what was made for it" "$(make slow late block 8 "$raw")" v:late/volumes/slow
holds_copy late slow 8

! "$SKYCAP" call --timeout 1 "unix:$SOCKET" csi.v1.Controller/CreateVolume "$(request given-up late block 8 "$raw")" >/dev/null 2>&1 || fail "it was in time"
make given-up late block 8 >/dev/null
echo precious | dd of="$(image late given-up)" conv=notrunc status=none
refused ALREADY_EXISTS given-up late block 8 "$raw"
check "a request that was given up takes nothing" "$(head -n 1 "$(image late given-up)")" precious
has_volumes late given-up slow

# ---- a driver without a list ----
refused ALREADY_EXISTS unknown blind block 8 "$raw"
grep -q 'v:blind/volumes/unknown.*LIST_VOLUMES' <<<"$MESSAGE" || fail "the message does not say what to do: $MESSAGE"
check "what may be somebody's is as it was" "$(head -n 1 "$(image blind unknown)")" "what another volume has left here"
make blank blind block 8 >/dev/null
truncate --size 0 "$(image blind blank)"
truncate --size $((8 * MIB)) "$(image blind blank)"
make blank blind block 8 "$raw" >/dev/null
holds_copy blind blank 8
refused ALREADY_EXISTS files blind tree 8 "$tree"
has_volumes blind blank files unknown

check "nothing stays published for copies" "$(mounts_below "$SOCKET.data/connections/.copies")$(ls "$SOCKET.data/connections/.copies")" ""
finish
