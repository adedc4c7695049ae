#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A clone across connections whose place labels have chosen is found there by the same request, also if another place would be chosen now, or the place
# has another name.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample from
sample first "labels: {media: disk}" "priority: 10"
sample second "labels: {media: disk}"
start_connected --node-id node
wait_until_up from first second

source_id=$(create source "$(on from)")
clone() {
    create clone '"parameters":{"connection-selector":"media=disk"}' "\"volumeContentSource\":{\"volume\":{\"volumeId\":\"$source_id\"}}"
}
check "by the priority" "$(clone)" v:first/volumes/clone
sample_file second "labels: {media: disk}" "priority: 20" | connection second
reload
wait_until_up second
check "the same, whatever comes first now" "$(clone)" v:first/volumes/clone
sample_file first "priority: 10" | connection first
reload
wait_until_up first
check "also without the label" "$(clone)" v:first/volumes/clone
check "the other was not asked" "$(seen second CreateVolume 'len(all)')" 0
delete_volume v:first/volumes/clone
check "deleted, it is made where it fits" "$(clone)" v:second/volumes/clone

rm "$CONNECTIONS/second.yaml"
sample_file second "labels: {media: disk}" "aliases: [second]" | connection renamed
reload
wait_until_up renamed
check "by the name that it had" "$(clone)" v:second/volumes/clone
delete_volume v:second/volumes/clone
check "and made with the new one" "$(clone)" v:renamed/volumes/clone
finish
