#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap volume` and `skycap snapshot` take names and ids, print aligned tables or JSON, and fail with one line.
source "$(dirname "$0")/../lib.sh"

start_skycap
export CSI_ENDPOINT=unix:$SOCKET TZ=UTC

# shows WHAT WANTED ARGUMENT...: the output with ids and times replaced, which all have one width.
shows() {
    local what=$1 wanted=$2 got
    shift 2
    got=$("$SKYCAP" "$@" | hide)
    [ "$got" = "$wanted" ] || fail "$what (skycap $*): got
$got
wanted
$wanted"
}

hide() {
    sed -E 's/([vs]):local\/[0-9a-z]{23}/\1:local\/ID/g; s/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}/TIME/g; s/ID +AT$/ID  AT/'
}

# field NAME...: what the JSON on stdin has there.
field() {
    /usr/bin/python3 -c '
import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1:]:
    value = value[int(name) if name.isdigit() else name]
print(value)' "$@"
}

# says WHAT CODE PATTERN ARGUMENT...: one line on stderr that has the pattern, nothing on stdout.
says() {
    local what=$1 wanted=$2 pattern=$3 code=0
    shift 3
    timeout 10 "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    expect_equal "exit code for $what" "$code" "$wanted"
    expect_equal "lines on stderr for $what" "$(wc -l <"$SKYCAP_TMP/err")" 1
    grep -qF -e "$pattern" "$SKYCAP_TMP/err" || fail "$what: '$(cat "$SKYCAP_TMP/err")' does not say $pattern"
    expect_equal "stdout for $what" "$(cat "$SKYCAP_TMP/out")" ""
}

shows "an empty list" "NAME  SIZE  TYPE  FROM  STATE  ID  AT" volume list
expect_equal "an empty list as JSON" "$("$SKYCAP" volume list -o json)" "{}"

shows "a directory" \
    'NAME  SIZE       TYPE       FROM  STATE  ID  AT
data  unlimited  directory  -     ready  v:local/ID  -' volume create data
shows "the same again" \
    'NAME  SIZE       TYPE       FROM  STATE  ID  AT
data  unlimited  directory  -     ready  v:local/ID  -' volume create data
shows "an image with a file system, options first" \
    'NAME  SIZE    TYPE  FROM  STATE  ID  AT
disk  64 MiB  ext4  -     ready  v:local/ID  -' volume create --size 64Mi --fs ext4 disk
shows "a block device, options around the name" \
    'NAME  SIZE     TYPE   FROM  STATE  ID  AT
raw   1.5 GiB  block  -     ready  v:local/ID  -' volume create --block raw --size=1536Mi
disk=$("$SKYCAP" volume show disk -o json | field volume volumeId)
shows "a clone by id, with a size of its own" \
    'NAME  SIZE    TYPE  FROM  STATE  ID  AT
copy  80 MiB  ext4  disk  ready  v:local/ID  -' volume clone "$disk" copy --size 80Mi
shows "all of them, by age" \
    'NAME  SIZE       TYPE       FROM  STATE  ID  AT
data  unlimited  directory  -     ready  v:local/ID  -
disk  64 MiB     ext4       -     ready  v:local/ID  -
raw   1.5 GiB    block      -     ready  v:local/ID  -
copy  80 MiB     ext4       disk  ready  v:local/ID  -' volume list

shows "what is known about a volume" \
    'name        copy
id          v:local/ID
size        80 MiB
type        ext4
created     TIME
from        volume disk (v:local/ID)
state       the volume is healthy' volume show copy
shows "one that was expanded" \
    'NAME  SIZE     TYPE  FROM  STATE  ID  AT
copy  100 MiB  ext4  disk  ready  v:local/ID  -' volume expand copy 100Mi
"$SKYCAP" volume modify copy label=mine compression=none >/dev/null
expect_equal "parameters that were modified" "$("$SKYCAP" volume show copy -o json | field parameters)" \
    "{'compression': 'none', 'label': 'mine'}"

shows "a snapshot" \
    'NAME    SIZE    TYPE  OF    STATE  TAKEN                ID
monday  64 MiB  ext4  disk  ready  TIME  s:local/ID' snapshot create disk monday
"$SKYCAP" snapshot create data other >/dev/null
shows "snapshots of one volume" \
    'NAME    SIZE    TYPE  OF    STATE  TAKEN                ID
monday  64 MiB  ext4  disk  ready  TIME  s:local/ID' snapshot list --of disk
expect_equal "snapshots altogether" "$("$SKYCAP" snapshot list | wc -l)" 3
shows "what is known about a snapshot" \
    'name        monday
id          s:local/ID
of          disk (v:local/ID)
size        64 MiB
type        ext4
taken       TIME
state       ready' snapshot show monday
shows "a volume of a snapshot" \
    'NAME  SIZE    TYPE  FROM    STATE  ID  AT
back  64 MiB  ext4  monday  ready  v:local/ID  -' snapshot restore monday back
shows "and by the other command" \
    'NAME  SIZE    TYPE  FROM    STATE  ID  AT
back  64 MiB  ext4  monday  ready  v:local/ID  -' volume create back --from-snapshot monday

shows "a name of wide and of combined characters" \
    $'NAME      SIZE       TYPE       FROM  STATE  ID  AT
箱の名 e\u0301  unlimited  directory  data  ready  v:local/ID  -' volume create $'箱の名 e\u0301' --from-volume data
shows "a name with a line feed" \
    $'NAME  SIZE       TYPE       FROM  STATE  ID  AT
a?b   unlimited  directory  -     ready  v:local/ID  -' volume create $'a\nb'
"$SKYCAP" volume delete $'箱の名 e\u0301' $'a\nb'

expect_equal "deleted volumes" "$("$SKYCAP" volume delete disk "$("$SKYCAP" volume show raw -o json |
    field volume volumeId)")" ""
expect_equal "a deleted snapshot as JSON" "$("$SKYCAP" snapshot delete monday -o json)" "{}"
[[ $("$SKYCAP" volume show copy) = *"from        volume gone ($disk)"* ]] || fail "the source of a clone is not told as gone"
expect_equal "the names that are left" \
    "$("$SKYCAP" volume list -o json | /usr/bin/python3 -c '
import json, sys
print(*sorted(volume["name"] for volume in json.load(sys.stdin)["volumes"]))')" "back copy data"

# Pages of the service behind it: two and one, by a token.
first=$("$SKYCAP" call "$CSI_ENDPOINT" skycap.v1.Inventory/ListVolumes '{"maxEntries":2}')
token=$(field nextToken <<<"$first")
second=$("$SKYCAP" call "$CSI_ENDPOINT" skycap.v1.Inventory/ListVolumes "{\"maxEntries\":2,\"startingToken\":\"$token\"}")
expect_equal "the names on both pages" "$(field volumes 0 name <<<"$first") $(field volumes 1 name <<<"$first") \
$(field volumes 0 name <<<"$second")" "data copy back"
! grep -q nextToken <<<"$second" || fail "there is a page behind the last"

says "a volume that is not there" 1 'there is no volume "disk"' volume show disk
says "an id that is not there" 1 "$disk" volume delete "$disk"
says "a snapshot that is not there" 1 'there is no snapshot "monday"' snapshot show monday
says "a name in use for something else" 1 'data' volume create data --size 5Mi
says "a parameter that is not known" 1 'colour' volume create x --parameter colour=red
says "a parameter without a value" 2 'KEY=VALUE' volume modify copy label
says "a size that is none" 2 '"big"' volume expand copy big
says "a size that is none, in a flag" 2 '"big"' volume create x --size big
says "a volume without a name" 2 'usage: skycap volume create NAME' volume create
says "too many names" 2 'unexpected argument "b"' volume show a b
says "two sources" 2 'exclude' volume create x --from-volume data --from-snapshot other
says "a command that is not there" 2 'volume fly' volume fly
says "no command" 2 'skycap snapshot --help' snapshot
says "a form of output that is not known" 2 'xml' volume list -o xml
says "a server that is not there" 1 'skycap serve' volume list --endpoint "unix:$SKYCAP_TMP/none.sock"

"$SKYCAP" snapshot delete other # or else its directory, which is immutable, could not be removed
