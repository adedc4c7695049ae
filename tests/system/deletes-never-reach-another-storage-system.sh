#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An id leads to one storage system: a file whose name is another connection's alias, an alias that two have, and a name that is given to another driver are
# refused, also after a restart, and `skycap connection check DIR` says so of the files.
source "$(dirname "$0")/../connections.sh"
need_peers go

deletes() { seen "$1" DeleteVolume 'len(all)'; }
file_trouble() { # file_trouble NAME: what is said of its newest file
    "$SKYCAP" connection list --endpoint "unix:$SOCKET" -o json | pick "[c.get('fileTrouble', '') for c in it['connections'] if c['name'] == '$1'][0]"
}
check_says() { # check_says PATTERN: `connection check` of the directory
    ! "$SKYCAP" connection check "$CONNECTIONS" >"$SKYCAP_TMP/said" 2>&1 || fail "the set of files is taken for good: $(cat "$SKYCAP_TMP/said")"
    grep -qE "$1" "$SKYCAP_TMP/said" || fail "nothing of '$1' in: $(cat "$SKYCAP_TMP/said")"
}
restart() {
    stop_server "$SERVER" || fail "the server ended badly"
    start_connected
}

# ---- an alias beside a file of that name ------------------------------------------------------------------

sample first "aliases: [old]"
start_connected
wait_until_up first
id=v:old/volumes/data
check "before" "$(create data)" v:first/volumes/data
start_sample second
sample_file second | connection old
! reload || fail "a file of another's alias is taken"
check "its trouble names the other" "$(file_trouble old | grep -o 'alias of connection "first"')" 'alias of connection "first"'
check "the other says so too" "$(file_trouble first | grep -c 'connection "old" has a file')" 1
delete_volume "$id"
check "the delete goes where it went before" "$(deletes first) $(deletes second)" "1 0"
check_says 'first.yaml: aliases: connection "old" has a file of its own'
check_says 'old.yaml: "old" is an alias of connection "first"'
passes "connection check of the directory says so"
restart
refuses "after a restart nobody knows whose the id is" UNAVAILABLE . delete_volume "$id"
check "after a restart no driver is asked" "$(deletes first) $(deletes second)" "1 0"
rm "$CONNECTIONS/old.yaml"
reload
wait_until_up first
delete_volume "$id"
check "the set is good again" "$(deletes first) $(deletes second) $(file_trouble first)" "2 0 "

# ---- two with one alias -------------------------------------------------------------------------------------

sample_file second "aliases: [older, old]" | connection second
! reload || fail "an alias that two have is taken"
check_says 'first.yaml: aliases: "old" is an alias of connection "second" as well'
check_says 'second.yaml: aliases: "old" is an alias of connection "first" as well'
delete_volume "$id"
check "an alias that two have leads where it led before" "$(deletes first) $(deletes second)" "3 0"
rm "$CONNECTIONS/second.yaml"
reload

# ---- another driver ------------------------------------------------------------------------------------------

connection first <<<"{driver: local, options: {backend: dir}}"
! reload || fail "another driver is taken for a name that has volumes"
check "the trouble says what to do" "$(file_trouble first | grep -o 'skycap connection forget first')" "skycap connection forget first"
delete_volume v:first/volumes/data
check "the driver before stays in force" "$(deletes first)" 4
restart
refuses "after a restart the new one is not asked" UNAVAILABLE . delete_volume v:first/volumes/data
connection next <<<"{driver: local, aliases: [first], options: {backend: dir}}"
rm "$CONNECTIONS/first.yaml"
! reload || fail "a name is given to another driver by way of an alias"
refuses "nor by way of an alias" UNAVAILABLE . delete_volume v:first/volumes/data
passes "a name is of one driver"
"$SKYCAP" connection forget first --endpoint "unix:$SOCKET" >/dev/null
wait_until_up next
check "once it is forgotten the name is free" "$(file_trouble next)" ""
refuses "what is in force is not forgotten" 'in force' 'remove or replace its file' "$SKYCAP" connection forget next --endpoint "unix:$SOCKET"
refuses "nor what never was" 'nothing is remembered' never "$SKYCAP" connection forget never --endpoint "unix:$SOCKET"
passes "there is nothing else to forget"
check "a good directory" "$("$SKYCAP" connection check "$CONNECTIONS")" "$CONNECTIONS/next.yaml: ok (driver local)"
finish
