# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# csi-sanity, the conformance tests of the CSI project, for scripts that source peers.sh first.

CASES=96 # of the pinned version; fewer would mean that csi-sanity gave up
MIB=$((1 << 20))

# run_csi_sanity ROUTE SOCKET ACCESS MUTABLE-PARAMETER [FLAG...]: what each case did goes to $SANITY, a line
# `RESULT<tab>NAME<tab>WHY` for each; RESULT is passed, failed, skipped or pending.
SANITY=$SKYCAP_TMP/sanity.tsv
run_csi_sanity() {
    local route=$1 socket=$2 access=$3
    echo "$4" >"$SKYCAP_TMP/mutable.yaml"
    shift 4
    run_csi_sanity_with "$route" "$socket" \
        --csi.testvolumeaccesstype "$access" --csi.testnodevolumeattachlimit \
        --csi.testvolumesize $((32 * MIB)) --csi.testvolumeexpandsize $((48 * MIB)) \
        --csi.testvolumemutableparameters "$SKYCAP_TMP/mutable.yaml" "$@"
}

# run_csi_sanity_with ROUTE SOCKET FLAG...: with no flags but these, as it comes.
run_csi_sanity_with() {
    local route=$1 socket=$2 junit=$SKYCAP_TMP/junit.xml
    shift 2
    rm -f "$junit"
    timeout $((60 * SLOWER)) "$PEERS/csi-sanity" --csi.endpoint "unix://$socket" \
        --csi.mountdir "$SKYCAP_TMP/target" --csi.stagingdir "$SKYCAP_TMP/staging" "$@" \
        --ginkgo.no-color --ginkgo.junit-report "$junit" >"$SKYCAP_TMP/sanity.log" 2>&1 || true
    if [ ! -s "$junit" ]; then
        tail -n 20 "$SKYCAP_TMP/sanity.log"
        fail "$route: csi-sanity did not finish"
    fi
    read_junit "$junit" >"$SANITY"
    [ "$(wc -l <"$SANITY")" -ge $CASES ] || fail "$route: csi-sanity ran fewer cases than $CASES"
}

# sanity_counts: of $SANITY, for people.
sanity_counts() {
    awk -F '\t' '{ count[$1]++ }
        END { printf "%d passed, %d failed, %d skipped, %d pending\n", count["passed"], count["failed"],
            count["skipped"], count["pending"] }' "$SANITY"
}

# count_cases ROUTE MOST-SKIPPED: those of $SANITY are added to the test's own; those that were not run by their reasons.
count_cases() {
    local route=$1 most_skipped=$2 result name why skipped_here=0
    local -A reasons=()
    while IFS=$'\t' read -r result name why; do
        case $result in
        passed) passed=$((passed + 1)) ;;
        failed) fails "$route: $name" "$why" ;;
        *) reasons[${why:-$result}]=$((${reasons[${why:-$result}]-0} + 1)) ;;
        esac
        [ "$result" != skipped ] || skipped_here=$((skipped_here + 1))
    done <"$SANITY"
    for why in "${!reasons[@]}"; do
        skips "${reasons[$why]}" "$route: ${reasons[$why]} cases: $why"
    done
    echo "$route: $(sanity_counts)"
    [ "$skipped_here" -le "$most_skipped" ] ||
        fails "$route: at most $most_skipped are skipped" "$skipped_here were"
}

# read_junit FILE: the lines of $SANITY out of ginkgo's JUnit report.
read_junit() {
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

# check_nothing_stays ROUTE WHAT METHOD: on the server that start_skycap started last.
check_nothing_stays() {
    check "$1: no $2 stays" \
        "$("$SKYCAP" call --compact "unix:$SOCKET" "csi.v1.Controller/$3" '{}')" '{}'
}
