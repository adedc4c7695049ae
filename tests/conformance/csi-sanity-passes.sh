#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# Every case of csi-sanity, on each back end, for volumes that are mounted and for block devices.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../file-systems.sh"
requires mkfs.ext4 mkfs.xfs mkfs.btrfs
need_peers csi

CASES=96       # of the pinned version; fewer would mean that csi-sanity gave up
MOST_SKIPPED=0 # in one run
VOLUMES=20     # the most that the node takes; the suite tries one more
MIB=$((1 << 20))

# report FILE: `RESULT<tab>NAME<tab>WHY` for each case of ginkgo's JUnit report.
report() {
    /usr/bin/python3 - "$1" <<'END'
import sys
import xml.etree.ElementTree as tree

for case in tree.parse(sys.argv[1]).iter("testcase"):
    if not case.get("name").startswith("[It]"):
        continue
    why = [child for child in case if child.tag in ("failure", "error", "skipped")]
    text = " ".join(" ".join([child.get("message") or "", *child.itertext()][:2]) for child in why)
    result = case.get("status")
    if result not in ("passed", "skipped", "pending"):
        result = "failed"
    print(result, case.get("name")[len("[It] "):], " ".join(text.split())[:400], sep="\t")
END
}

# read_report ROUTE FILE: counts its cases.
read_report() {
    local route=$1 result name why
    local -A count=([passed]=0 [failed]=0 [skipped]=0 [pending]=0)
    while IFS=$'\t' read -r result name why; do
        count[$result]=$((count[$result] + 1))
        case $result in
        passed) passed=$((passed + 1)) ;;
        failed) fails "$route: $name" "$why" ;;
        *) skips 1 "$route: $name: $why" ;;
        esac
    done < <(report "$2")
    echo "$route: ${count[passed]} passed, ${count[failed]} failed," \
        "${count[skipped]} skipped, ${count[pending]} pending"
    [ $((count[passed] + count[failed] + count[skipped] + count[pending])) -ge $CASES ] ||
        fail "$route: csi-sanity ran fewer cases than $CASES"
    [ "${count[skipped]}" -le $MOST_SKIPPED ] ||
        fails "$route: at most $MOST_SKIPPED are skipped" "${count[skipped]} were"
}

# check_nothing_stays ROUTE WHAT METHOD
check_nothing_stays() {
    check "$1: no $2 stays" \
        "$("$SKYCAP" call --compact "unix:$SOCKET" "csi.v1.Controller/$3" '{}')" '{}'
}

# run_sanity ROUTE DIR ACCESS MUTABLE-PARAMETER FLAG...: DIR is where the data is kept.
run_sanity() {
    local route="$1, $3" dir=$2 access=$3 junit=$SKYCAP_TMP/junit.xml
    echo "$4" >"$SKYCAP_TMP/mutable.yaml"
    shift 4
    rm -f "$junit"
    start_skycap --data "$dir/data" --max-volumes $VOLUMES "$@"
    timeout $((60 * SLOWER)) "$PEERS/csi-sanity" --csi.endpoint "unix://$SOCKET" \
        --csi.mountdir "$SKYCAP_TMP/target" --csi.stagingdir "$SKYCAP_TMP/staging" \
        --csi.testvolumeaccesstype "$access" --csi.testnodevolumeattachlimit \
        --csi.testvolumesize $((32 * MIB)) --csi.testvolumeexpandsize $((48 * MIB)) \
        --csi.testvolumemutableparameters "$SKYCAP_TMP/mutable.yaml" \
        --ginkgo.no-color --ginkgo.junit-report "$junit" >"$SKYCAP_TMP/sanity.log" 2>&1 || true
    if [ ! -s "$junit" ]; then
        tail -n 20 "$SKYCAP_TMP/sanity.log"
        fail "$route: csi-sanity did not finish"
    fi
    read_report "$route" "$junit"
    check_nothing_stays "$route" volume ListVolumes
    check_nothing_stays "$route" snapshot ListSnapshots
    stop_server "$SERVER" || fail "$route: the server ended badly"
    # The memory of the back end of that name outlives the process; it is not a leak.
    ! mounts_below "$dir" | grep -qx "$dir/data/memory" || umount "$dir/data/memory"
    check "$route: no mount and no loop device stays" "$(what_is_left "$dir/data")" ""
    rm -rf --one-file-system "$dir/data"
}

# run_both NAME DIR MUTABLE-PARAMETER FLAG...
run_both() {
    local name=$1 dir=$2 parameter=$3
    shift 3
    run_sanity "$name" "$dir" mount "$parameter" "$@"
    run_sanity "$name" "$dir" block "$parameter" "$@"
}

mkdir "$SKYCAP_TMP/plain"
run_both btrfs "$SKYCAP_TMP/plain" "compression: zstd" --backend btrfs --pool-size 4Gi
run_both memory "$SKYCAP_TMP/plain" "label: other" --backend memory
make_mount xfs xfs -m reflink=1
make_mount ext4 ext4
for type in xfs ext4; do
    run_both "dir on $type" "$SKYCAP_TMP/$type" "label: other" --backend dir
done
check "nothing is mounted where volumes were published" "$(mounts_below "$SKYCAP_TMP/target")$(mounts_below "$SKYCAP_TMP/staging")" ""
finish
