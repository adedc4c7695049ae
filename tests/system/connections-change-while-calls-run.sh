#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Connection files are added, changed, broken, mended, swapped as Kubernetes does it, and removed, while calls go on: what is under way
# finishes, a wrong file changes nothing and is told, and nothing stays of old ones.
source "$(dirname "$0")/../connections.sh"
need_peers go
requires curl

port=$(free_port)
start_sample nas --slow ControllerExpandVolume=1500ms
start_sample other
sample_file nas "default: true" | connection nas
start_connected --http "127.0.0.1:$port"
wait_until_up nas

metric() { # metric NAME CONNECTION
    curl --silent --max-time 5 --noproxy '*' "http://127.0.0.1:$port/metrics" |
        sed -n "s/^skycap_connection_$1{connection=\"$2\"} //p"
}

# slow_call ID: takes 1.5 s; the answer goes to $SKYCAP_TMP/slow.
slow_call() {
    local before
    before=$(seen nas ControllerExpandVolume 'len(all)')
    rpc Controller/ControllerExpandVolume "{\"volumeId\":\"$1\",\"capacityRange\":{\"requiredBytes\":5242880}}" \
        >"$SKYCAP_TMP/slow" 2>&1 &
    CALLER=$!
    wait_for 5 has_reached $((before + 1)) || fail "the slow call does not arrive"
}
has_reached() { [ "$(seen nas ControllerExpandVolume 'len(all)')" -ge "$1" ]; }
finishes() { # finishes CASE
    local code=0
    wait "$CALLER" || code=$?
    check "$1: the call finishes" "$code $(cat "$SKYCAP_TMP/slow")" '0 {"capacityBytes":"5242880"}'
}

volume=$(create data)

# ---- a broken file: defect 6 ------------------------------------------------------------------------------

bad_is() { [ "$(metric file_bad nas)" = "$1" ]; }
try_broken() { # try_broken CASE PATTERN: with the file on stdin
    connection nas
    wait_for 5 bad_is 1 || fail "$1: the file is not found to be wrong"
    for _ in 1 2 3; do # the first call after it, and those after that one
        check "$1: the last good one is in force" "$(create data)" "$volume"
    done
    grep -qE "file is wrong connection=nas .*$2.*in_force=\"the last good one\"" "$LOG" || fails "$1" "nothing in the log"
    check "$1: the driver is up still" "$(metric up nas)" 1
    sample_file nas "default: true" | connection nas
    wait_for 5 bad_is 0 || fail "$1: it is not mended"
}
try_broken "no YAML" 'line 3: this is not YAML' <<<$'driver: csi\noptions: {endpoint: "unix:///x'
try_broken "an unknown key" 'line 3.*speed' <<<"$(sample_file nas "speed: high")"
try_broken "an unknown driver" 'local, csi' <<<"driver: zfs"
try_broken "no endpoint" endpoint <<<$'driver: csi\noptions: {}'
try_broken "an empty file" . <<<""
try_broken "nothing but noise" . < <(head -c 3000 /dev/urandom)
try_broken "too large" 'larger' < <(yes '# x' | head -c 300000)

# ---- a change while a call runs: defect 7 -------------------------------------------------------------------

slow_call "$volume"
sample_file nas "default: true" "timeout: 4m" "max-calls: 32" | connection nas
loads() { grep -c 'connection loaded connection=nas' "$LOG"; }
loaded() { [ "$(loads)" -ge "$1" ]; }
await_load() { # await_load NUMBER WHAT: found by watching; when reload returns it is in force
    wait_for $((5 * SLOWER)) loaded "$1" || fail "$2"
    reload
}
await_load 2 "the changed file is not loaded"
check "changed: the call is still under way" "$(has_ended "$CALLER" || echo runs)" runs
check "changed: new calls go through meanwhile" "$(create data)" "$volume"
finishes changed

# To another server: what was under way ends at the old one, what is new goes to the new one.
slow_call "$volume"
sample_file other "default: true" | connection nas
await_load 3 "the changed file is not loaded"
goes_to_other() { create second >/dev/null && [ "$(seen other CreateVolume 'len(all)')" -gt 0 ]; }
wait_for 5 goes_to_other || fail "new calls do not go to the new server"
finishes "to another server"
sample_file nas "default: true" | connection nas
await_load 4 "the changed file is not loaded"

# ---- removed, and back ---------------------------------------------------------------------------------------

removed() { grep -q 'connection removed connection=nas' "$LOG"; }
slow_call "$volume"
rm "$CONNECTIONS/nas.yaml"
wait_for 5 removed || fail "the removed file is not noticed"
check "removed: the call is still under way" "$(has_ended "$CALLER" || echo runs)" runs
refuses "a volume of a removed connection" NOT_FOUND 'no connection .nas.' rpc Controller/ControllerGetVolume "{\"volumeId\":\"$volume\"}"
refuses "to delete it" UNAVAILABLE 'no connection .nas.' rpc Controller/DeleteVolume "{\"volumeId\":\"$volume\"}"
finishes removed
check "without any connection it is ready" "$(is_ready && echo ready)" ready
sample_file nas "default: true" | connection nas
await_load 5 "the file is not found when it is back"
check "back: its volumes are there" "$(create data)" "$volume"

# ---- as Kubernetes mounts a Secret -----------------------------------------------------------------------------

secret=$SKYCAP_TMP/secret
stop_server "$SERVER" || fail "the server ended badly"
swap_secret() { # swap_secret VERSION: the files on stdin, as a shell script, then the link is swapped
    mkdir -p "$secret/..$1"
    (cd "$secret/..$1" && bash -)
    ln -s "..$1" "$secret/..data_tmp"
    mv -T "$secret/..data_tmp" "$secret/..data"
}
declare -fx sample_file
export SKYCAP_TMP
swap_secret 1 <<<'sample_file nas "default: true" >nas.yaml'
ln -s ..data/nas.yaml "$secret/nas.yaml"
CONNECTIONS=$secret start_connected --http "127.0.0.1:$port"
wait_until_up nas
check "files that are links" "$(create data)" "$volume"
slow_call "$volume"
swap_secret 2 <<<'sample_file nas "default: true" "timeout: 3m" >nas.yaml; sample_file other >other.yaml'
ln -s ..data/other.yaml "$secret/other.yaml"
rm -r "$secret/..1"
wait_until_up other
check "the swapped one is in force" "$(create third "$(on other)")" v:other/volumes/third
finishes "a swapped directory"
check "no file is wrong" "$(metric file_bad nas)$(metric file_bad other)" 00

# ---- nothing stays: defects 1 and 2 -------------------------------------------------------------------------

threads() { find "/proc/$SERVER/task" -maxdepth 1 | wc -l; }
descriptors() { find "/proc/$SERVER/fd" | wc -l; }
# A worker more may have been started meanwhile; 20 changes must not have left a thing each.
at_rest() { [ "$(threads)" -le $((threads + 4)) ] && [ "$(descriptors)" -le $((descriptors + 4)) ]; }
change() { # change I
    swap_secret "x$1" <<<"sample_file nas 'default: true' 'timeout: ${1}m' >nas.yaml; sample_file other >other.yaml"
    await_load $((count + $1)) "change $1 is not seen"
    [ "$(create data)" = "$volume" ] || fail "after change $1 the volume is not there"
}
count=$(loads)
for i in 1 2 3; do
    change $i
done
sleep 1
threads=$(threads)
descriptors=$(descriptors)
memory=$(memory_kib)
for i in $(seq 4 23); do
    change "$i"
done
passes "20 changes, and a call after each"
wait_for 10 at_rest || fails "threads and descriptors after 20 changes" "$(threads) and $(descriptors), $threads and $descriptors before"
echo "# memory: $memory KiB before 20 changes, $(memory_kib) after"
if measures_memory; then
    [ "$(memory_kib)" -le $((memory + 1024)) ] || fails "memory after 20 changes" "$(memory_kib) KiB, $memory before"
fi
finish
