#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `connection-selector` chooses by labels, the highest priority first; the next one is tried where one has no room, is down, or is
# elsewhere; a repeated request finds the volume where it is. What the class says of connections does not reach a driver.
source "$(dirname "$0")/../connections.sh"
need_peers go

MIB=$((1 << 20))
sample small --capacity=$((10 * MIB)) "labels: {media: ssd, tier: hot}" "priority: 10" "parameters: {fsType: xfs, replicas: \"2\"}"
sample large --capacity=$((100 * MIB)) "labels: {media: ssd}"
sample tape --topology=example.com/room=cellar "labels: {media: tape, tier: cold}" "priority: 99"
sample usual "default: true"
start_connected
wait_until_up small large tape usual

by() { # by SELECTOR [MEMBER-OF-PARAMETERS]
    echo "\"parameters\":{\"connection-selector\":\"$1\"${2:+,$2}}"
}
size() { # size MIB
    echo "\"capacityRange\":{\"requiredBytes\":$(($1 * MIB))}"
}

# ---- which one ------------------------------------------------------------------------------------------------

check "the highest priority" "$(create a "$(by media=ssd)" "$(size 6)")" v:small/volumes/a
check "the next one, where there is no room" "$(create b "$(by media=ssd)" "$(size 6)")" v:large/volumes/b
check "both were asked, in their order" "$(seen small CreateVolume 'len(all)')$(seen large CreateVolume 'len(all)')" 21
check "all terms must fit" "$(create c "$(by media=ssd,tier=hot)" "$(size 1)")" v:small/volumes/c
check "a label that is not there differs from any value" "$(create d "$(by media=ssd,tier!=hot)" "$(size 1)")" v:large/volumes/d
check "by name" "$(create e "$(on tape)" "$(size 1)")" v:tape/volumes/e
check "the default one" "$(create f "$(size 1)")" v:usual/volumes/f
check "where the content comes from" \
    "$(create g '"volumeContentSource":{"volume":{"volumeId":"v:large/volumes/b"}}' "$(size 6)")" v:large/volumes/g
check "where it comes from, among those that fit" "$(create h "$(by media=ssd)" "$(size 1)" \
    '"volumeContentSource":{"volume":{"volumeId":"v:large/volumes/b"}}')" v:large/volumes/h
refuses "room nowhere" RESOURCE_EXHAUSTED 'small: .*large: ' create_volume i "$(by media=ssd)" "$(size 500)"
passes "room nowhere: the answer has every connection's reason"
check "a place that the first does not have" "$(create j "$(by media!=none)" "$(size 1)" \
    '"accessibilityRequirements":{"requisite":[{"segments":{"example.com/room":"attic"}}]}')" v:small/volumes/j

# ---- what reaches the driver ------------------------------------------------------------------------------------

check "parameters: the file's, and none of ours" "$(seen small CreateVolume 'sorted(all[0]["parameters"].items())')" \
    "[('fsType', 'xfs'), ('replicas', '2')]"
create k "$(by tier=hot '"fsType":"ext4"')" "$(size 1)" >/dev/null
check "over them those of the request" "$(seen small CreateVolume 'sorted(last["parameters"].items())')" \
    "[('fsType', 'ext4'), ('replicas', '2')]"
check "the default one has no parameters" "$(seen usual CreateVolume 'last.get("parameters")')" None

# ---- again: never a second volume ------------------------------------------------------------------------------

delete_volume v:small/volumes/a
check "asked again it is where it was, though there is room at the first now" \
    "$(create b "$(by media=ssd)" "$(size 6)")" v:large/volumes/b
check "no other was asked" "$(seen small CreateVolume '[r["name"] for r in all].count("b")')" 1
stop_server "$SERVER" || fail "the server ended badly"
start_connected
wait_until_up small large tape usual
check "after a restart, too" "$(create b "$(by media=ssd)" "$(size 6)")" v:large/volumes/b
delete_volume v:large/volumes/b
check "deleted it may go elsewhere" "$(create b "$(by media=ssd)" "$(size 6)")" v:small/volumes/b

sample_file small "labels: {media: disk}" | connection small
reload
check "where it is, though the labels do not fit any more" "$(create b "$(by media=ssd)" "$(size 6)")" v:small/volumes/b
sample_file small "labels: {media: ssd}" "priority: 10" | connection small
reload

# ---- one that is down ----------------------------------------------------------------------------------------------

stop_child small
is_down() { grep -q 'connection is down connection=small' "$LOG"; }
check "one that is down: the next" "$(create m "$(by media=ssd)" "$(size 1)")" v:large/volumes/m
wait_for 10 is_down || fail "nobody notices that a driver is down"
check "one that is known to be down: the next" "$(create n "$(by media=ssd)" "$(size 1)")" v:large/volumes/n
refuses "one that is down, by name" UNAVAILABLE small create_volume o "$(on small)" "$(size 1)"
passes "one that is down, by name: UNAVAILABLE"
# It may have been made there before the driver went down: nobody can tell, so no other is asked.
refuses "a volume that is at one that is down" UNAVAILABLE small create_volume b "$(by media=ssd)" "$(size 6)"
check "and nowhere else" "$(seen large CreateVolume '[r["name"] for r in all[-1:]]')" "['n']"

# ---- one that goes down on the way ------------------------------------------------------------------------------------

sample weak --slow=CreateVolume=30s "labels: {media: flash}" "priority: 5"
sample_file large "labels: {media: flash}" | connection large
reload
wait_until_up weak
create_volume p "$(by media=flash)" >"$SKYCAP_TMP/answer-p" 2>&1 &
asking=$!
is_asked() { [ "$(seen weak CreateVolume 'len(all)')" = 1 ]; }
wait_for 5 is_asked || fail "the driver is not asked"
stop_child weak
wait $asking || true
check "it may have made the volume: no other is asked" \
    "$(grep -o UNAVAILABLE "$SKYCAP_TMP/answer-p" | head -n 1) $(seen large CreateVolume '"p" in [r["name"] for r in all]')" "UNAVAILABLE False"
refuses "again" UNAVAILABLE weak create_volume p "$(by media=flash)"
start_sample weak
is_made() { [ "$(create p "$(by media=flash)" 2>/dev/null)" = v:weak/volumes/p ]; }
wait_for 10 is_made || fail "it is not made when the driver is back"
passes "when it is back, the volume is made there"
sample_file large "labels: {media: ssd}" | connection large
reload

# ---- two requests for one name at the same time --------------------------------------------------------------------------

# The first finds a full one and goes on to the next; room comes; the second would be taken where the first was not.
sample tight --capacity=$((10 * MIB)) --slow=CreateVolume=2s "labels: {kind: pair}" "priority: 5"
sample wide "labels: {kind: pair}"
reload
wait_until_up tight wide
create filler "$(on tight)" "$(size 8)" >/dev/null
tight_was_asked() { [ "$(seen tight CreateVolume '[r["name"] for r in all].count("twin")')" = "$1" ]; }
wide_was_asked() { [ "$(seen wide CreateVolume '[r["name"] for r in all].count("twin")')" = 1 ]; }
create_volume twin "$(by kind=pair)" "$(size 8)" >"$SKYCAP_TMP/first-twin" 2>&1 &
first=$!
wait_for 5 tight_was_asked 1 || fail "the driver is not asked"
sleep 1
create_volume twin "$(by kind=pair)" "$(size 8)" >"$SKYCAP_TMP/second-twin" 2>&1 &
second=$!
wait_for 5 wide_was_asked || fail "the next is not asked"
delete_volume v:tight/volumes/filler
wait $first || fail "the first of two requests: $(cat "$SKYCAP_TMP/first-twin")"
wait $second || true
check "of two requests at the same time one makes the volume" \
    "$(volumes | grep -c /volumes/twin) $(grep -oE 'ABORTED|v:[a-z]*/volumes/twin' "$SKYCAP_TMP/second-twin" | head -n 1)" "1 ABORTED"
check "and later ones find it" "$(create twin "$(by kind=pair)" "$(size 8)")" v:wide/volumes/twin

# ---- the room of all that fit ---------------------------------------------------------------------------------------

room() { rpc Controller/GetCapacity "{$1}" | pick 'it.get("availableCapacity", "0")'; }
check "capacity of those that fit" "$(room "$(by media=ssd)")" "$(room "$(on large)")"
ups() { grep -c 'connection is up connection=small' "$LOG"; }
before=$(ups)
is_back() { [ "$(ups)" -gt "$before" ]; }
start_sample small --capacity=$((10 * MIB)) # with nothing in it
wait_for 10 is_back || fail "the driver is not found when it is back"
check "capacity of those that fit, when all are there" "$(room "$(by media=ssd)")" $(($(room "$(on large)") + 10 * MIB))
finish
