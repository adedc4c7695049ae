#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plugins that print garbage, hang, die, flood, close their socket, or list what nobody knows: each is listed with what is wrong with it, the
# others are used, and nothing is left behind.
# time-limit: 180
source "$(dirname "$0")/../lib.sh"
source "$(dirname "$0")/../velero-host.sh"
mkdir "$PLUGINS/below"
echo 'not a program' >"$PLUGINS/README"
for name in slow many unknown closes flood grandchild stubborn tcp; do add_odd "$name"; done
add_odd below/slow2
add_script garbage <<<'echo "Hello, I am a plugin"; sleep 1000'
add_script hangs <<<'sleep 1000'
add_script ends <<<'echo "cannot find my library" >&2; exit 5'
add_script dies <<<'kill -SEGV $$'
add_script huge <<<'head -c 10000000 /dev/zero | tr "\0" x; sleep 1000'
add_script old <<<'echo "1|1|unix|/tmp/x|grpc|"; sleep 1000'
add_script netrpc <<<'echo "1|2|unix|/tmp/x"; sleep 1000'
add_script nobody <<<'echo "1|2|unix|/nonexistent/socket|grpc|"; sleep 1000'
add_script elsewhere <<<'echo "1|2|tcp|192.0.2.1:80|grpc|"; sleep 1000'
add_script not-a-program <<<'exit 0'
sed -i '1s/.*/#!\/nonexistent/' "$PLUGINS/not-a-program"

code=0
host --start-timeout 3 list >"$SKYCAP_TMP/list" 2>"$SKYCAP_TMP/log" || code=$?
expect_equal "the exit code with plugins that cannot be used" "$code" 1

# row BINARY PATTERN: the row of a binary, the last one in which it stands.
row() {
    grep -E " $1 +(yes|no)" "$SKYCAP_TMP/list" | grep -qE -- "$2" || fail "$1 is listed as: $(grep -E " $1 " "$SKYCAP_TMP/list")"
}
row slow '^test.skycap.dev/slow +VolumeSnapshotterV2'
row many 'lists 5001 plugins; a host takes at most 1000'
row unknown '^test.skycap.dev/slow +KindOfTheFuture +unknown +no: this kind is not supported'
row unknown '^no-domain +VolumeSnapshotter +unknown +no: the name is not valid'
row unknown '^Bad_Domain/name +VolumeSnapshotter +unknown +no: the name is not valid'
row unknown '^test.skycap.dev/action +BackupItemActionV2 +unknown +no, for backup servers'
row unknown '^test.skycap.dev/twice +VolumeSnapshotter +unknown +yes, as version 2'
row unknown '^test.skycap.dev/twice +VolumeSnapshotter +unknown +no: another binary, or this one, has it already'
row closes 'no: plugin closes does not answer'
row garbage 'not a plugin.s handshake: "Hello, I am a plugin"'
row hangs 'has not printed its handshake after 3000 ms'
row ends 'ended with exit code 5; it said last: cannot find my library, before its handshake'
row dies 'was killed by signal 11, before its handshake'
row huge 'its first line of output has 65537 bytes'
row old 'version "1" of Velero.s plugin protocol'
row netrpc 'it speaks "netrpc"'
row nobody 'plugin nobody does not answer'
row elsewhere 'not an address of the loopback'
row not-a-program 'before its handshake'
! grep -q README "$SKYCAP_TMP/list" || fail "a file that is no program is listed"
! grep -q $'\033' "$SKYCAP_TMP/list" || fail "a plugin's escape sequences reach the terminal"
# flood, grandchild, stubborn, tcp and slow2 have the same plugin as slow: all of them answered.
expect_equal "those that have the same plugin" "$(grep -c 'VolumeSnapshotterV2 .*no: another binary' "$SKYCAP_TMP/list")" 5
lines=$(grep -c 'too much' "$SKYCAP_TMP/log" || true)
if [ "$lines" -lt 1 ] || [ "$lines" -gt 1500 ]; then fail "$lines lines of a plugin that floods were passed on"; fi
grep -q 'plugin says more than is passed on plugin=flood' "$SKYCAP_TMP/log" || fail "nothing tells of dropped lines"
grep -q 'did not end when asked to and is killed plugin=stubborn' "$SKYCAP_TMP/log" || fail "the stubborn plugin was not killed"
expect_clean

# With all of them in the directory, a snapshot works: the plugin is found by its name.
rm "$PLUGINS"/{flood,grandchild,stubborn,below/slow2}
for name in slow tcp; do
    host --start-timeout 3 --plugin test.skycap.dev/slow --config ms=1 snapshot "$PV" --backup "b-$name" >"$SKYCAP_TMP/out" 2>&1 ||
        fail "snapshot: $(cat "$SKYCAP_TMP/out")"
    [ -e "$STATE/b-$name" ] || fail "there is no snapshot"
    expect_clean
    rm "$PLUGINS/$name" # the next one has the plugin then
done

# ---- the directory ----

if "$SKYCAP" velero host --plugin-dir /nonexistent list 2>"$SKYCAP_TMP/log"; then fail "a missing directory is listed"; fi
grep -q '/nonexistent' "$SKYCAP_TMP/log" || fail "it says: $(cat "$SKYCAP_TMP/log")"
mkdir "$SKYCAP_TMP/many"
for i in {1..101}; do cp "$PLUGINS/ends" "$SKYCAP_TMP/many/$i"; done
if "$SKYCAP" velero host --plugin-dir "$SKYCAP_TMP/many" list 2>"$SKYCAP_TMP/log"; then fail "101 programs are started"; fi
grep -q 'more than 100 programs: is it a directory of plugins?' "$SKYCAP_TMP/log" || fail "it says: $(cat "$SKYCAP_TMP/log")"
expect_clean
