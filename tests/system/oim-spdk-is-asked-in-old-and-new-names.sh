#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The spdk accelerator against a stand-in that is strict about parameters: the same life of volumes with today's method names, with those of 2019, and with both; with
# targets that take "the first that is free" and answer it differently, or do not take it; in replies that come in pieces. Which names are known is found out once.
source "$(dirname "$0")/../oim-controller.sh"

ceph() { # ceph VOLUME [MEMBERS]: maps an image of Ceph; MEMBERS may replace some of these
    local params="{\"pool\":\"rbd\",\"image\":\"disk\",\"userId\":\"admin\",\"monitors\":\"10.0.0.1,10.0.0.2\",\"secret\":\"hunter2\"${2:+,$2}}"
    answer MapVolume "$(/usr/bin/python3 -c 'import json, sys; print(json.dumps({"volumeId": sys.argv[1], "ceph": dict(json.loads(sys.argv[2], object_pairs_hook=list))}))' "$1" "$params")"
}

on() { echo "{\"device\":\"/0000:00:15.0/\",\"scsi\":\"$1\"}"; }
bdevs() { stand_in "$get_bdevs" | pick '" ".join(sorted(b["name"] for b in it))'; }
targets() { stand_in "$get_controllers" | pick '" ".join("%d=%s" % (t["scsi_dev_num"], t["luns"][0]["bdev_name"]) for t in it[0]["backend_specific"]["scsi"])'; }

whole_life() { # whole_life WHAT: of two volumes
    local what=$1 i
    check "$what: nothing is there" "$(present m) $(map m) $(unmap m) $(provision m 0)" "NOT_FOUND NOT_FOUND {} {}"
    check "$what: a bdev in memory" "$(provision m 1048576) $(provision m 1048576) $(present m)" "{} {} {}"
    check "$what: of one size" "$(provision m 512)" ALREADY_EXISTS
    check "$what: is mapped" "$(map m) $(map m)" "$(on 0:0) $(on 0:0)"
    check "$what: is not deleted now" "$(provision m 0)" FAILED_PRECONDITION
    check "$what: is no image" "$(ceph m)" ALREADY_EXISTS
    check "$what: an image is mapped" "$(ceph c) $(ceph c)" "$(on 1:0) $(on 1:0)"
    check "$what: with these parameters" "$(stand_in "$get_bdevs" '{"name":"c"}' | pick 'it[0]["block_size"], sorted(it[0]["driver_specific"]["rbd"].items())')" \
        "(512, [('config', {'client_mount_timeout': '10', 'key': 'hunter2', 'mon_host': '10.0.0.1,10.0.0.2'}), ('pool_name', 'rbd'), ('rbd_name', 'disk'), ('user_id', 'admin')])"
    for i in '"pool":"other"' '"image":"other"' '"userId":"other"' '"monitors":"other"' '"secret":"other"'; do
        check "$what: with another $i it is another" "$(ceph c "$i")" ALREADY_EXISTS
    done
    check "$what: an image is none in memory" "$(map c) $(provision c 512) $(provision c 0) $(present c)" \
        "ALREADY_EXISTS ALREADY_EXISTS FAILED_PRECONDITION NOT_FOUND"
    check "$what: the targets" "$(targets)" "0=m 1=c"
    check "$what: unmapped, the image goes and memory stays" "$(unmap m) $(unmap m) $(unmap c) $(unmap c) $(bdevs) $(targets)" "{} {} {} {} m "
    check "$what: and goes in the end" "$(provision m 0) $(bdevs)" "{} "
}

full_house() { # full_house WHAT: eight targets and no more; what was made for a ninth goes again
    local what=$1 i
    for i in {0..8}; do
        provision "f$i" 512 >/dev/null
    done
    for i in {0..7}; do
        check "$what: target $i" "$(map "f$i")" "$(on "$i:0")"
    done
    check "$what: no ninth" "$(map f8)" RESOURCE_EXHAUSTED
    says "$what: what to do" "all 8 targets .* are taken: unmap a volume"
    check "$what: no ninth image" "$(ceph c) $(bdevs)" "RESOURCE_EXHAUSTED f0 f1 f2 f3 f4 f5 f6 f7 f8"
    check "$what: the gap is filled" "$(unmap f3) $(map f8)" "{} $(on 3:0)"
    for i in {0..8}; do
        check "$what: and all go" "$(unmap "f$i") $(provision "f$i" 0)" "{} {}"
    done
}

while read -r names first_free pieces; do
    get_bdevs=bdev_get_bdevs get_controllers=vhost_get_controllers
    if [ "$names" = old ]; then get_bdevs=get_bdevs get_controllers=get_vhost_controllers; fi
    start_stand_in --names "$names" --first-free "$first_free" --piece-bytes "$pieces"
    start_spdk_controller
    whole_life "$names, $first_free"
    full_house "$names, $first_free"
    stop_server "$SERVER"
    stop_stand_in
done <<'END'
current number 0
current true 0
old refused 5
old number 0
both refused 0
END

# What is known of a target is not asked again; another one behind the same socket is understood all the same.
start_stand_in --names old
start_spdk_controller
provision m 512 >/dev/null
asked >/dev/null
check "old names are remembered" "$(present m) $(asked)" "{} get_bdevs"
stop_stand_in
start_stand_in --names current
check "a new target is understood" "$(present m) $(asked)" "NOT_FOUND get_bdevs bdev_get_bdevs"
check "and remembered" "$(present m) $(asked)" "NOT_FOUND bdev_get_bdevs"

# Every row of the table, as it is asked, once the names are known.
provision w 512 >/dev/null; map w >/dev/null; unmap w >/dev/null; provision w 0 >/dev/null
asked >/dev/null
provision m 512 >/dev/null
check "provision" "$(asked)" "bdev_get_bdevs bdev_malloc_create"
map m >/dev/null
check "map" "$(asked)" "bdev_get_bdevs vhost_get_controllers vhost_scsi_controller_add_target"
unmap m >/dev/null
check "unmap" "$(asked)" "vhost_get_controllers vhost_scsi_controller_remove_target bdev_get_bdevs"
provision m 0 >/dev/null
check "delete" "$(asked)" "bdev_get_bdevs vhost_get_controllers bdev_malloc_delete"
ceph c >/dev/null
check "map an image" "$(asked)" "bdev_get_bdevs bdev_rbd_create vhost_get_controllers vhost_scsi_controller_add_target"
unmap c >/dev/null
check "unmap an image" "$(asked)" "vhost_get_controllers vhost_scsi_controller_remove_target bdev_get_bdevs bdev_rbd_delete"
finish
