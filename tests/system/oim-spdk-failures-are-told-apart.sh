#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The spdk accelerator against a stand-in that fails: what is absent is NOT_FOUND or success, what is broken is an error with a code that fits; a connection that is lost, an
# answer that is none and one that comes too late are told as such, and the next call works.
source "$(dirname "$0")/../oim-controller.sh"

fault() { # fault METHOD KIND [MEMBERS]
    stand_in stand_in_fault "{\"method\":\"$1\",\"kind\":\"$2\"${3:+,$3}}" >/dev/null || fail "the stand-in knows no such fault"
}
error() { # error METHOD CODE [MESSAGE]: the next request for it fails so
    fault "$1" error "\"code\":$2,\"message\":\"${3:-no}\""
}

start_spdk_controller
check "nobody is there" "$(provision m 512) $(present m) $(map m) $(unmap m)" "UNAVAILABLE UNAVAILABLE UNAVAILABLE UNAVAILABLE"
says "and it says what to do" "start SPDK's target"
start_stand_in --memory 1048576
check "as soon as it is, all is well" "$(provision m 512)" "{}"

# Whatever goes wrong with one request: the call fails, the next one does not.
while read -r kind code; do
    for method in bdev_get_bdevs vhost_get_controllers vhost_scsi_controller_add_target; do
        fault $method "$kind"
        check "$kind, $method" "$(map m)" "$code"
        check "$kind, $method: again" "$(map m | cut -c 1-11)" '{"device":"'
        unmap m >/dev/null
    done
done <<'END'
drop UNAVAILABLE
drop-in-reply UNAVAILABLE
garbage INTERNAL
no-json INTERNAL
wrong-id INTERNAL
neither INTERNAL
endless INTERNAL
END
for method in bdev_get_bdevs vhost_get_controllers; do
    fault $method wrong-type
    check "wrong-type, $method" "$(map m)" INTERNAL
done
unmap m >/dev/null

# A target that takes its time: the client's deadline holds, and holds for the connection too.
fault bdev_get_bdevs slow '"seconds":3'
started=$(date +%s%N)
check "too slow" "$(answer CheckMallocBDev '{"bdevName":"m"}' --timeout 1)" DEADLINE_EXCEEDED
took_ms=$((($(date +%s%N) - started) / 1000000))
[ "$took_ms" -lt $((2500 * SLOWER)) ] || fails "the deadline holds" "it took $took_ms ms"
check "meanwhile others are answered" "$(present other)" NOT_FOUND

# One volume, two calls: the second waits a while, then it is told.
fault bdev_get_bdevs slow '"seconds":4'
present m >"$SKYCAP_TMP/first" &
first=$!
sleep 0.5
check "the second call for a volume" "$(present m)" ABORTED
check "is not in the way of another's" "$(present other)" NOT_FOUND
wait "$first"
check "the first is answered" "$(cat "$SKYCAP_TMP/first")" "{}"

# What the target says against a request.
while read -r method number code; do
    error "$method" "$number"
    check "$method: $number" "$(map m)" "$code"
    unmap m >/dev/null
done <<'END'
bdev_get_bdevs -19 NOT_FOUND
bdev_get_bdevs -12 RESOURCE_EXHAUSTED
bdev_get_bdevs -5 INTERNAL
bdev_get_bdevs -32603 INTERNAL
bdev_get_bdevs -1 FAILED_PRECONDITION
bdev_get_bdevs 7 INTERNAL
vhost_get_controllers -32603 INTERNAL
vhost_scsi_controller_add_target -28 RESOURCE_EXHAUSTED
vhost_scsi_controller_add_target -5 INTERNAL
END
fault bdev_get_bdevs error '"code":-32602,"message":"Invalid parameters","times":2'
check "not all that is -32602 is absent" "$(present m)" INTERNAL
fault bdev_get_bdevs error '"code":-32602,"message":"Invalid parameters"'
check "what is there is found in the list then" "$(present m)" "{}"
error vhost_scsi_controller_add_target -32602 "No space left on device"
check "full, by its text" "$(map m)" RESOURCE_EXHAUSTED
error vhost_scsi_controller_add_target -32602 "Invalid argument"
check "the first that is free is not taken: the targets in turn" "$(map m)" '{"device":"/0000:00:15.0/","scsi":"0:0"}'
error vhost_scsi_controller_remove_target -32602 "No such device"
check "a target that has gone meanwhile" "$(unmap m)" "{}"
check "it is mapped still" "$(map m)" '{"device":"/0000:00:15.0/","scsi":"0:0"}'
fault vhost_scsi_controller_remove_target twice
check "SPDK says busy of a target that is empty" "$(unmap m)" "{}"
map m >/dev/null
error vhost_scsi_controller_remove_target -32602 "Device or resource busy"
check "and of one that is not" "$(unmap m)" FAILED_PRECONDITION
check "which goes the next time" "$(unmap m)" "{}"
error bdev_malloc_delete -19
check "a bdev that has gone meanwhile" "$(provision m 0)" "{}"
fault bdev_malloc_delete false
check "a bdev that cannot go" "$(provision m 0)" INTERNAL
error bdev_malloc_create -17
check "a bdev that has come meanwhile" "$(provision late 512)" ALREADY_EXISTS
check "no memory" "$(provision large 2097152)" RESOURCE_EXHAUSTED
fault '*' error '"code":-32601,"message":"Method not found","times":2'
check "a target without the module" "$(present m)" FAILED_PRECONDITION
check "Ceph says no" "$(answer MapVolume '{"volumeId":"c","ceph":{"pool":"absent","image":"i"}}')" NOT_FOUND
error bdev_rbd_create -1
check "Ceph cannot be reached" "$(answer MapVolume '{"volumeId":"c","ceph":{"pool":"p","image":"i","monitors":"10.9.8.7","userId":"eve","secret":"HIDDEN"}}')" FAILED_PRECONDITION
says "and it says what was to be opened" "Ceph image p/i as user eve at the monitors 10.9.8.7"
says "and where SPDK says more" "SPDK's own log"
! grep -q HIDDEN "$SKYCAP_TMP/complaint" || fails "the secret is not told" "$(cat "$SKYCAP_TMP/complaint")"

# What is made for a mapping that fails goes again.
error vhost_scsi_controller_add_target -5
check "an image that cannot be added" "$(answer MapVolume '{"volumeId":"c","ceph":{"pool":"p","image":"i"}}')" INTERNAL
check "is not left behind" "$(stand_in bdev_get_bdevs '{"name":"c"}' || true)" '{"code": -19, "message": "No such device"}'

# What others have built upon a bdev.
provision disk 512 >/dev/null
stand_in stand_in_use '{"name":"disk","disk_of":"disk.7"}' >/dev/null
check "the disk of a vhost-blk controller is not deleted" "$(provision disk 0)" FAILED_PRECONDITION
says "and it says whose it is" "disk.7"
check "nor mapped" "$(map disk)" FAILED_PRECONDITION
provision claimed 512 >/dev/null
stand_in stand_in_use '{"name":"claimed"}' >/dev/null
check "a bdev that is claimed is not deleted" "$(provision claimed 0)" FAILED_PRECONDITION
says "and it says so" "claimed by another SPDK device"
check "nor mapped" "$(map claimed)" FAILED_PRECONDITION

# Somebody else's.
stand_in vhost_create_scsi_controller '{"ctrlr":"vhost.1"}' >/dev/null
stand_in vhost_scsi_controller_add_target '{"ctrlr":"vhost.1","scsi_target_num":4,"bdev_name":"m"}' >/dev/null
check "mapped at another controller" "$(map m)" FAILED_PRECONDITION
says "and it says where" "vhost.1"
check "unmapped there too" "$(unmap m) $(map m)" '{} {"device":"/0000:00:15.0/","scsi":"0:0"}'
stop_stand_in
check "the target went" "$(map m)" UNAVAILABLE
start_stand_in
check "it came back with nothing" "$(map m)" NOT_FOUND
check "and works" "$(provision m 512) $(map m)" '{} {"device":"/0000:00:15.0/","scsi":"0:0"}'
stop_server "$SERVER"
start_spdk_controller --vhost-controller vhost.7
check "no such vhost controller" "$(map m)" FAILED_PRECONDITION
check "it is looked for among all, though" "$(unmap m) $(map m)" "{} FAILED_PRECONDITION"
says "and it says what to do" "vhost_create_scsi_controller vhost.7"
finish
