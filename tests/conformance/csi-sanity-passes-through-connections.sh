#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 300
# alone
# (host-path gives up when others mount something while it reads the list of mounts)
# csi-sanity through connections: to a back end of our own, to csi-driver-host-path behind its socket, and to both at once.
# What passes against host-path directly passes through us, case by case.
source "$(dirname "$0")/../connections.sh"
source "$(dirname "$0")/../sanity.sh"
need_hostpath
need_peers csi

VOLUMES=20          # the most that the node takes; the suite tries one more
MOST_KIB=$((8 << 10)) # of memory that skycap holds after a run

# ---- the connections --------------------------------------------------------------------------------

local_file() { # local_file DEFAULT BACKEND...
    cat <<END
driver: local
default: $1
options: {backend: [$2], pool-size: 4Gi, max-volumes: $VOLUMES, data: $SKYCAP_TMP/$2/data}
END
}

hostpath_file() { # hostpath_file DEFAULT
    cat <<END
driver: csi
default: $1
options: {endpoint: "unix://$SKYCAP_TMP/hostpath.sock"}
END
}

# A file system that is not the machine's own: what the back end `dir` can do depends on it.
make_places() {
    mkdir "$SKYCAP_TMP/btrfs" "$SKYCAP_TMP/dir"
    truncate --size 4G "$SKYCAP_TMP/dir.file"
    mkfs.ext4 -q "$SKYCAP_TMP/dir.file"
    mount -o loop "$SKYCAP_TMP/dir.file" "$SKYCAP_TMP/dir"
}

# ---- one run --------------------------------------------------------------------------------------------

# compare_cases ROUTE BEFORE: no case fails that did not in the file BEFORE, and none that passed there is left out now.
compare_cases() {
    local route=$1 result name why before
    local -A results=()
    while IFS=$'\t' read -r result name why; do
        results[$name]=$result
    done <"$2"
    while IFS=$'\t' read -r result name why; do
        before=${results[$name]-missing}
        case $before:$result in
        *:passed) passed=$((passed + 1)) ;;
        passed:* | *:failed) fails "$route: $name" "$result, and $before before: $why" ;;
        *) skips 1 "$route: $name: $why" ;;
        esac
    done <"$SANITY"
    echo "$route: $(sanity_counts)"
}

check_memory() { # check_memory ROUTE
    local kib
    measures_memory || return 0
    kib=$(memory_kib)
    echo "$1: skycap holds $kib KiB"
    [ "$kib" -lt $MOST_KIB ] || fails "$1: less memory than $MOST_KIB KiB" "$kib"
}

# check_goes_to ROUTE CONNECTION [PARAMETER]: a volume with such parameters.
check_goes_to() {
    local id
    id=$(rpc Controller/CreateVolume "{\"name\":\"where\",\"volumeCapabilities\":[$(capability tree)],
        \"parameters\":{${3:+\"connection\":\"$3\"}}}" | pick 'it["volume"]["volumeId"]')
    check "$1: volumes go to $2" "${id%/*}" "v:$2"
    delete_volume "$id"
}

# run_through ROUTE CONNECTION ACCESS BEFORE [PARAMETER]: PARAMETER is named as the connection of each volume.
run_through() {
    local route="$1, $3" parameters=$SKYCAP_TMP/parameters.yaml
    start_connected
    wait_for 5 is_ready || fail "$route: not ready"
    check_goes_to "$route" "$2" "${5-}"
    echo "${5:+connection: $5}" >"$parameters"
    run_csi_sanity "$route" "$SOCKET" "$3" "label: other" ${5:+--csi.testvolumeparameters "$parameters"}
    compare_cases "$route" "$4"
    check_memory "$route"
    check_nothing_stays "$route" volume ListVolumes
    check_nothing_stays "$route" snapshot ListSnapshots
    stop_server "$SERVER" || fail "$route: the server ended badly"
    check "$route: nothing stays mounted" \
        "$(mounts_below "$SKYCAP_TMP/target")$(mounts_below "$SKYCAP_TMP/staging")" ""
}

only() { # only NAME: no other connection
    rm -f "$CONNECTIONS"/*.yaml
    "$1_file" false "${2-}" | connection "$1"
}

both() { # both DEFAULT: the other one is not
    local_file "$([ "$1" = local ] && echo true || echo false)" btrfs | connection local
    hostpath_file "$([ "$1" = hostpath ] && echo true || echo false)" | connection hostpath
}

# ---- all runs ---------------------------------------------------------------------------------------------

all_pass=$SKYCAP_TMP/all-pass.tsv # what our own back ends do, as csi-sanity-passes.sh shows
run_all() { # run_all ACCESS
    local access=$1 direct=$SKYCAP_TMP/direct.tsv backend
    run_csi_sanity "host-path, $access" "$SKYCAP_TMP/hostpath.sock" "$access" "label: other"
    echo "host-path directly, $access: $(sanity_counts)"
    cp "$SANITY" "$direct"
    sed -E 's/^(failed|skipped)/passed/' "$direct" >"$all_pass"

    only hostpath
    run_through "host-path alone" hostpath "$access" "$direct"
    for backend in btrfs dir; do
        only local $backend
        run_through "local $backend alone" local "$access" "$all_pass"
    done
    both local
    run_through "both, local by default" local "$access" "$all_pass"
    run_through "both, host-path by name" hostpath "$access" "$direct" hostpath
    both hostpath
    run_through "both, host-path by default" hostpath "$access" "$direct"
    run_through "both, local by name" local "$access" "$all_pass" local
}

make_places
start_hostpath hostpath --enable-attach --attach-limit $VOLUMES --maxvolumespernode $VOLUMES \
    --enable-controller-modify-volume --accepted-mutable-parameter-names label --enable-snapshot-metadata
run_all mount
run_all block
finish
