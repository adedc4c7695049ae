#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 120
# The whole life of volumes of the driver oim, through a registry with mutual TLS: files and raw devices outlive unstaging; the registry's rights hold for the node; new
# certificates are taken without a restart; and a registry that is away or hangs is told, comes back by itself, and holds up nobody else.
source "$(dirname "$0")/../oim-driver.sh"
need_storage

# Is the connection up, as the server says now?
is_ready_now() {
    "$SKYCAP" connection list --endpoint "unix:$SOCKET" -o json |
        pick '[c["state"] for c in it["connections"] if c["name"] == "acc"][0]' 2>/dev/null | grep -q READY
}

is_down_with() { # is_down_with WORDS
    "$SKYCAP" connection list --endpoint "unix:$SOCKET" -o json | grep -q "$1"
}

make_on_acc() { # make_on_acc NAME KIND [MEBIBYTES]
    local request
    request=$(volume_request "$@")
    rpc Controller/CreateVolume "${request%\}},$(on acc)}" | pick 'it["volume"]["volumeId"]'
}

start_registry
start_controller_behind
cp "$PKI/host.host-0.crt" "$PKI/mine.crt"
cp "$PKI/host.host-0.key" "$PKI/mine.key"
connect_through mine
connection own <<<"{driver: local, options: {backend: dir}}"
start_node

# ---- files and devices ---------------------------------------------------------------------------------

for kind in ext4 btrfs; do
    size=32
    [ $kind != btrfs ] || size=128
    id=$(make_on_acc "files-$kind" $kind $size)
    expect_equal "the id" "$id" "v:acc/files-$kind"
    use "$id" $kind
    echo kept >"$(target_of "$id")/file"
    unuse "$id"
    expect_equal "what is mapped between" "$(devices_of_controller)" ""
    use "$id" $kind
    expect_equal "the file on $kind" "$(cat "$(target_of "$id")/file")" kept
    refuses "deleting it in use" FAILED_PRECONDITION "in use" delete_volume "$id"
    unuse "$id"
    delete_volume "$id"
done

id=$(make_on_acc raw block 8)
use "$id" block
echo kept | dd of="$(target_of "$id")" bs=512 seek=100 conv=sync,fsync status=none
unuse "$id"
use "$id" block
expect_equal "the device" "$(dd if="$(target_of "$id")" bs=512 skip=100 count=1 status=none | head -c 4)" kept
unuse "$id"
delete_volume "$id"
expect_equal "volumes that stay" "$(volumes)" ""

# ---- rights and certificates ------------------------------------------------------------------------------

# Another host's certificate: the registry does not pass its calls to this controller.
id=$(make_on_acc kept ext4 16)
cp "$PKI/host.host-1.crt" "$PKI/mine.crt"
cp "$PKI/host.host-1.key" "$PKI/mine.key"
kill_server "$REGISTRY" # so that it is connected to anew
start_registry
wait_for $((15 * SLOWER)) is_down_with 'host.host-1' || fail "another host's certificate is not refused"
refuses "staging with another's certificate" PERMISSION_DENIED host.host-1 stage "$id" ext4
cp "$PKI/host.host-0.crt" "$PKI/mine.crt"
cp "$PKI/host.host-0.key" "$PKI/mine.key"
kill_server "$REGISTRY"
start_registry
wait_for $((15 * SLOWER)) is_ready_now || fail "the new certificate is not used: $("$SKYCAP" connection list --endpoint "unix:$SOCKET")"
use "$id" ext4

# ---- a registry that hangs, and one that is away ------------------------------------------------------------

kill -STOP "$REGISTRY"
wait_for $((20 * SLOWER)) is_down_with '"state": *"DOWN"' || fail "a registry that hangs is not told"
own=$(rpc Controller/CreateVolume "{\"name\":\"own\",\"volumeCapabilities\":[$(capability tree)],$(on own)}" | pick 'it["volume"]["volumeId"]')
refuses "a volume while the registry hangs" "UNAVAILABLE|DEADLINE" "acc|deadline" \
    "$SKYCAP" call --timeout 3 "unix:$SOCKET" csi.v1.Controller/CreateVolume "$(create_request other "$(on acc)")"
start=$(date +%s%N)
delete_volume "$own"
[ $((($(date +%s%N) - start) / 1000000)) -lt $((1000 * SLOWER)) ] || fail "another connection waits for the registry"
kill -CONT "$REGISTRY"
wait_for $((15 * SLOWER)) is_ready_now || fail "the registry goes on, and the connection does not"
kill_server "$REGISTRY"
wait_for $((15 * SLOWER)) is_down_with '"state": *"DOWN"' || fail "a registry that is away is not told"
stage "$id" ext4 # it is: nobody needs to be asked
start_registry
wait_for $((15 * SLOWER)) is_ready_now || fail "the registry is back, and the connection is not"
unuse "$id"
delete_volume "$id"
expect_equal "what is mapped at the end" "$(devices_of_controller)" ""
