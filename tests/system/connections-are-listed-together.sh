#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ListVolumes and ListSnapshots have the entries of all connections, page by page, whatever pages the drivers make; a token is good after a
# restart; a driver that is down is left out and told of, and does not fail the rest.
source "$(dirname "$0")/../connections.sh"
need_peers go

sample alpha --page=3
sample beta
sample gamma --page=1
sample silent --without=LIST_VOLUMES,LIST_SNAPSHOTS
start_connected --csi-version 1.13
wait_until_up alpha beta gamma silent

declare -A counts=([alpha]=7 [beta]=5 [gamma]=2 [silent]=1)
for name in "${!counts[@]}"; do
    for ((i = 0; i < counts[$name]; i++)); do
        id=$(create "data$i" "$(on "$name")")
        [ "$name" = silent ] || make_snapshot "cut$i" "$id" >/dev/null
    done
done

# page METHOD MAX [TOKEN]: an answer.
page() {
    rpc "Controller/$1" "{\"maxEntries\":$2,\"startingToken\":\"${3-}\"}"
}
ids_of() { pick '" ".join(e[k][k + "Id"] for e in it.get("entries", []) for k in ("volume", "snapshot") if k in e)'; }
token_of() { pick 'it.get("nextToken", "")'; }

# walk METHOD MAX [COMMAND]: all ids, a line for each page; COMMAND runs between pages.
walk() {
    local token='' answer between=${3-:}
    while true; do
        answer=$(page "$1" "$2" "$token")
        ids_of <<<"$answer"
        token=$(token_of <<<"$answer")
        [ -n "$token" ] || return 0
        $between
    done
}

all_of() { # all_of KIND TEXT: in the order of the names of connections
    local name i
    for name in alpha beta gamma; do
        for ((i = 0; i < counts[$name]; i++)); do
            echo "$1:$name/$2$i"
        done
    done | xargs
}

for method in "ListVolumes v volumes/data" "ListSnapshots s snapshots/cut"; do
    read -r method kind text <<<"$method"
    wanted=$(all_of "$kind" "$text")
    check "$method at once" "$(page "$method" 0 | ids_of)" "$wanted"
    for most in 1 2 3 4 5 6 7 13 14 15 1000; do
        walk "$method" $most >"$SKYCAP_TMP/pages"
        check "$method by $most" "$(xargs <"$SKYCAP_TMP/pages")" "$wanted"
        check "$method by $most: all pages but the last are full" "$(head -n -1 "$SKYCAP_TMP/pages" | awk -v most=$most 'NF != most' | wc -l)" 0
    done
done
check "a list of one connection has no other's" \
    "$(rpc Controller/ListSnapshots '{"sourceVolumeId":"v:beta/volumes/data1"}' | ids_of)" s:beta/snapshots/cut1

# ---- tokens ---------------------------------------------------------------------------------------------------

restart() {
    stop_server "$SERVER" || fail "the server ended badly"
    start_connected --csi-version 1.13
    wait_until_up alpha beta gamma silent
}
walk ListVolumes 4 restart >"$SKYCAP_TMP/pages"
check "with a restart after each page" "$(xargs <"$SKYCAP_TMP/pages")" "$(all_of v volumes/data)"
refuses "a token that is none" ABORTED token page ListVolumes 2 nonsense
refuses "a token of nobody's" ABORTED . page ListVolumes 2 'alpha:0:nonsense'
refuses "a negative number of entries" INVALID_ARGUMENT max_entries page ListVolumes -1
passes "tokens that are none are ABORTED"
token=$(page ListVolumes 9 | token_of)
rm "$CONNECTIONS/beta.yaml"
reload
check "the connection that a token goes on with is gone: the list goes on with the next" \
    "$(page ListVolumes 9 "$token" | ids_of)" "v:gamma/volumes/data0 v:gamma/volumes/data1"
sample_file beta | connection beta
reload
wait_until_up beta

# ---- a driver that is down -------------------------------------------------------------------------------------

stop_child beta
rest=$(all_of v volumes/data | xargs -n 1 | grep -v :beta/ | xargs)
check "a driver that has just died is left out" "$(page ListVolumes 0 | ids_of)" "$rest"
is_down() { grep -q 'connection is down connection=beta' "$LOG"; }
wait_for 10 is_down || fail "nobody notices that a driver is down"
check "a driver that is known to be down, too" "$(walk ListVolumes 2 | xargs)" "$rest"
check "the log says so" "$(grep -q 'left out of a list connection=beta' "$LOG" && echo told)" told
check "so does NodeGetStorageHealth" "$(rpc Node/NodeGetStorageHealth '{}' |
    pick '[(h["status"], "\"beta\"" in h["message"]) for h in it["backendHealth"]]')" "[('STORAGE_UNREACHABLE', True)]"
start_sample beta # without volumes
is_back() { ! rpc Node/NodeGetStorageHealth '{}' | grep -q beta; }
wait_for 10 is_back || fail "the driver is not found when it is back"
check "back, it is asked again" "$(page ListVolumes 0 | ids_of) $(seen beta ListVolumes 'len(all) > 0')" "$rest True"

# Without any that answers there is no list.
for name in alpha beta gamma silent; do
    stop_child $name
done
refuses "all are down" UNAVAILABLE . page ListVolumes 0
passes "all are down: UNAVAILABLE, not an empty list"
finish
