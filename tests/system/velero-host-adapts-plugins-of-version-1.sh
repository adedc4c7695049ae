#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A genuine plugin, built from Velero's own framework, of version 1: the host uses it as one of version 2. Snapshot, restore and delete work on
# real data, Progress says complete, Cancel is accepted and does nothing. The same with mutual TLS. A plugin that dies is started again.
# time-limit: 300
source "$(dirname "$0")/../peers.sh"
need_peers velero
source "$(dirname "$0")/../velero-host.sh"
cp "$PEERS/velero-v1-snapshotter" "$PLUGINS/files"
head -c 100000 /dev/urandom >"$STATE/vol1"

listed=$(host list)
grep -qE '^test.skycap.dev/files +VolumeSnapshotter +files +yes, as version 2$' <<<"$listed" || fail "list says: $listed"

# whole_life [FLAG...]
whole_life() {
    host "$@" snapshot "$PV" --backup b1 -o json >"$SKYCAP_TMP/snap.json" 2>"$SKYCAP_TMP/log" ||
        fail "snapshot: $(cat "$SKYCAP_TMP/log")"
    grep -q 'WARN  taking a snapshot plugin=files' "$SKYCAP_TMP/log" || fail "the plugin's log is not passed on: $(cat "$SKYCAP_TMP/log")"
    cmp "$STATE/vol1" "$STATE/snap-vol1-b1" || fail "the snapshot has other data"
    host "$@" progress @"$SKYCAP_TMP/snap.json" -o json >"$SKYCAP_TMP/progress.json" || fail "progress fails"
    grep -q '"complete": true' "$SKYCAP_TMP/progress.json" || fail "Progress says: $(cat "$SKYCAP_TMP/progress.json")"
    ! grep -q '"error"' "$SKYCAP_TMP/progress.json" || fail "Progress has an error: $(cat "$SKYCAP_TMP/progress.json")"
    host "$@" cancel @"$SKYCAP_TMP/snap.json" >"$SKYCAP_TMP/cancelled" || fail "Cancel is not accepted"
    grep -q '^state  *complete$' "$SKYCAP_TMP/cancelled" || fail "after Cancel: $(cat "$SKYCAP_TMP/cancelled")"
    [ -e "$STATE/snap-vol1-b1" ] || fail "Cancel removed a snapshot that was complete"
    # The plugin checks that type and iops are those of GetVolumeInfo.
    restored=$(host "$@" restore @"$SKYCAP_TMP/snap.json" 2>/dev/null) || fail "restore fails"
    expect_equal "the PersistentVolume" "$restored" \
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pv-1\"},\"spec\":{\"hostPath\":{\"path\":\"$STATE/restored-snap-vol1-b1\"}}}"
    cmp "$STATE/vol1" "$STATE/restored-snap-vol1-b1" || fail "the restored volume has other data"
    host "$@" delete @"$SKYCAP_TMP/snap.json" || fail "delete fails"
    [ ! -e "$STATE/snap-vol1-b1" ] || fail "the snapshot is still there"
    host "$@" delete snap-vol1-b1 || fail "a second delete fails"
    rm "$STATE/restored-snap-vol1-b1"
    expect_clean
}
whole_life
whole_life --mtls

# ---- what goes wrong ----

# refused WANTED ARGUMENT...: the command must fail with this text.
refused() {
    local wanted=$1
    shift
    if host "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/log"; then fail "$* succeeds"; fi
    grep -q -- "$wanted" "$SKYCAP_TMP/log" || fail "$* says: $(cat "$SKYCAP_TMP/log")"
}
refused 'plugin panicked: crashed as the test asked for' snapshot "$PV" --tag test=crash
refused 'plugin files ended with exit code 3' snapshot "$PV" --tag test=exit
refused 'plugin files does not answer' --call-timeout 1 snapshot "$PV" --tag test=hang
refused 'the setting directory is missing' --config directory= snapshot "$PV"
refused 'no volume snapshotter "other.dev/x"; there are: test.skycap.dev/files' --plugin other.dev/x snapshot "$PV"
refused 'its kind is not PersistentVolume' snapshot <(echo '{"kind":"Pod"}')
expect_clean

# More than the pipe of its standard output holds: go-plugin sends it over the connection, and the host reads it.
host snapshot "$PV" --tag test=print --backup b2 >/dev/null 2>&1 || fail "a plugin that prints much blocks"
expect_clean
