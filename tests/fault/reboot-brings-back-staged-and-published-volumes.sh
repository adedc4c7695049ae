#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# After a reboot no mount and no loop device is left, but the rows and the directories of the orchestrator are. Staging and publishing again
# brings every volume back with its bytes; what is not wanted any more can be unpublished, unstaged and deleted.
source "$(dirname "$0")/../storage.sh"
need_storage

kinds=(tree ext4 block)

fill() { # fill ID KIND TEXT
    if [ "$2" = block ]; then
        printf '%s' "$3" | dd of="$(target_of "$1")" conv=notrunc,fsync status=none
    else
        printf '%s' "$3" >"$(target_of "$1")/file"
        sync "$(target_of "$1")/file"
    fi
}

contents() { # contents ID KIND LENGTH
    if [ "$2" = block ]; then
        head -c "$3" "$(target_of "$1")"
    else
        cat "$(target_of "$1")/file"
    fi
}

# As the power button would: no farewell, and everything of the kernel is gone.
reboot() {
    sync -f "$SOCKET.data"
    kill -KILL "$SERVER"
    wait "$SERVER" 2>"$SKYCAP_TMP/notice" || true
    undo_storage "$SKYCAP_TMP" || fail "something stays mounted or attached"
}

# try_reboot BACKEND FLAG...
try_reboot() {
    local backend=$1 kind id
    local -A used=() unused=()
    shift
    start_skycap_at "$SKYCAP_TMP/$backend.sock" --backend "$backend" "$@"
    for kind in "${kinds[@]}"; do
        used[$kind]=$(make_volume "used-$kind" "$kind")
        unused[$kind]=$(make_volume "unused-$kind" "$kind")
        for id in "${used[$kind]}" "${unused[$kind]}"; do
            use "$id" "$kind"
            fill "$id" "$kind" "$backend $kind"
        done
    done
    reboot
    start_skycap_at "$SKYCAP_TMP/$backend.sock" --backend "$backend" "$@"
    is_ready || fail "$backend is not ready after a reboot"
    for kind in "${kinds[@]}"; do
        id=${used[$kind]}
        rpc Node/NodeGetVolumeHealth "{\"volumeId\":\"$id\"}" | grep -q NotMounted ||
            fail "$backend: nobody tells that a $kind is not mounted"
        refuses "$backend: to publish a $kind that is not staged any more" FAILED_PRECONDITION "NodeStageVolume" \
            publish "$id" "$kind"
        use "$id" "$kind"
        expect_equal "what is in a $kind of $backend" "$(contents "$id" "$kind" $((${#backend} + 1 + ${#kind})))" \
            "$backend $kind"
        use "$id" "$kind" # again
        unuse "$id"
        delete_volume "$id"
        # One without a way back through stage; and one that is deleted as it is.
        id=${unused[$kind]}
        [ "$kind" = tree ] || unuse "$id"
        delete_volume "$id"
    done
    expect_equal "volumes of $backend at the end" "$(volumes)" ""
    expect_equal "loop devices of $backend at the end" \
        "$(loops_below "$SOCKET.data" | wc -l)" "$([ "$backend" = btrfs ] && echo 1 || echo 0)"
    stop_server "$SERVER"
}

try_reboot btrfs --pool-size 1Gi
try_reboot dir
