#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `skycap connection list`, `show` and `reload` tell how each connection is, what is wrong with it and its file, what its driver can do and how
# much it is used, but nothing that may be secret.
source "$(dirname "$0")/../connections.sh"

# row NAME: of the list, with single spaces.
row() {
    "$SKYCAP" connection list | grep "^$1 " | sed -E 's/ +/ /g'
}

# field NAME EXPRESSION: of what show tells as JSON.
field() {
    "$SKYCAP" connection show "$1" -o json | pick "$2"
}

# fails WHAT PATTERN ARGUMENT...
fails() {
    local what=$1 pattern=$2 code=0
    shift 2
    "$SKYCAP" "$@" >"$SKYCAP_TMP/out" 2>"$SKYCAP_TMP/err" || code=$?
    expect_equal "exit code for $what" "$code" 1
    expect_equal "lines on stderr for $what" "$(wc -l <"$SKYCAP_TMP/err")" 1
    grep -qE -e "$pattern" "$SKYCAP_TMP/err" || fail "$what: '$(cat "$SKYCAP_TMP/err")' does not say $pattern"
}

is_state() {
    [ "$(field "$1" 'it["state"]')" = "$2" ]
}

# A third-party driver, that the last server stands in front of.
start_skycap_at "$SKYCAP_TMP/child.sock" --driver-name child.example.com --node-id child-node
child=$SERVER

fails "a server without connections" 'started without --connections$' connection list --endpoint "unix:$SOCKET"

connection fast <<'END'
driver: local
options: {backend: dir}
default: true
labels: {media: ssd, tier: hot}
END
connection foreign <<END
driver: csi
aliases: [stranger]
priority: 7
options:
  endpoint: unix://$SKYCAP_TMP/child.sock
  environment: {TOKEN: top-secret}
  command: [/bin/sleep, "600", top-secret]
  probe-interval: 300ms
parameters: {password: top-secret}
capabilities: {without: [CLONE_VOLUME]}
END
connection gone <<<"{driver: csi, options: {endpoint: unix://$SKYCAP_TMP/nobody.sock, probe-interval: 300ms}}"
connection wrong <<<"{driver: locally}"
start_connected --node-id n1
export CSI_ENDPOINT=unix:$SOCKET

# ---- list ----

wait_for 5 is_state foreign READY || fail "the third-party driver is not ready: $(row foreign)"
expect_equal "the headings" "$("$SKYCAP" connection list | head -n 1 | sed -E 's/ +/ /g')" \
    "NAME STATE DRIVER DEFAULT LABELS CALLS FAILED MEAN TROUBLE"
expect_equal "a connection that is ready" "$(row fast)" "fast ready local yes media=ssd,tier=hot 0 0 - -"
grep -Eqx 'gone not-reached csi - - 0 0 - .*nobody.sock: No such file or directory' <(row gone) || fail "one that nobody serves: $(row gone)"
expect_equal "one without a good file" "$(row wrong)" \
    'wrong bad-file - - - 0 0 - its file is wrong: line 1: driver: "locally" is none of: local, csi, oim'
expect_equal "the names in JSON" "$("$SKYCAP" connection list -o json | pick '" ".join(c["name"] for c in it["connections"])')" \
    "fast foreign gone wrong"

# ---- what they are used for ----

make_volume one tree >/dev/null
rpc Controller/ControllerGetVolume '{"volumeId":"v:fast/none"}' >/dev/null 2>&1 && fail "a volume that is not there is found"
grep -Eqx 'fast ready local yes media=ssd,tier=hot 2 1 [0-9.]+ (us|ms) -' <(row fast) || fail "after two calls: $(row fast)"
grep -Eqx 'calls       2, 1 failed, [0-9.]+ (us|ms) on average' <("$SKYCAP" connection show fast) || fail "show does not tell of the calls"

# ---- show ----

"$SKYCAP" connection show stranger >"$SKYCAP_TMP/shown"
for line in 'name        foreign' 'state       ready' 'priority    7' 'aliases     stranger' 'driver      csi' \
    "endpoint    unix://$SKYCAP_TMP/child.sock" 'program     /bin/sleep' 'plugin      child.example.com .+' 'node        child-node'; do
    grep -Eqx "$line" "$SKYCAP_TMP/shown" || fail "show says nothing of '$line': $(cat "$SKYCAP_TMP/shown")"
done
expect_equal "what the driver can do" \
    "$(field foreign '[c in it["controllerCapabilities"] for c in ("CREATE_DELETE_VOLUME", "CLONE_VOLUME")]')" "[True, False]"
expect_equal "what the node can do" "$(field foreign '"STAGE_UNSTAGE_VOLUME" in it["nodeCapabilities"]')" True
expect_equal "the services" "$(field foreign '"CONTROLLER_SERVICE" in it["services"]')" True
expect_equal "the groups" "$(field foreign 'it["groupCapabilities"]')" "['CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT']"
for name in fast foreign; do
    expect_equal "since when $name is in force" "$(field "$name" 'it["loaded"][:2]')" 20
done
! { "$SKYCAP" connection list -o json && "$SKYCAP" connection list && cat "$SKYCAP_TMP/shown"; } | grep top-secret || fail "a secret is told"
fails "an unknown name" '^skycap: there is no connection "none"; there are: fast, foreign, gone, wrong$' connection show none

# ---- when it goes down ----

stop_server "$child" || fail "the third-party driver ended with exit code $?"
wait_for 10 is_state foreign DOWN || fail "a driver that has ended is still $(row foreign)"
grep -Eq '^foreign down csi .*child.sock' <(row foreign) || fail "why it is down: $(row foreign)"
expect_equal "what it could do is still told" "$(field foreign 'it["pluginName"]')" child.example.com
expect_equal "since when it is down" "$(field foreign 'it["since"] > it["loaded"]')" True

# ---- reload ----

loaded=$(field fast 'it["loaded"]')
connection late <<<"{driver: local, options: {backend: dir}}"
rm "$CONNECTIONS/gone.yaml" "$CONNECTIONS/wrong.yaml"
expect_equal "the list after a reload" "$("$SKYCAP" connection reload | awk 'NR > 1 { print $1, $2 }')" $'fast ready\nforeign down\nlate ready'
expect_equal "when an unchanged file was loaded" "$(field fast 'it["loaded"]')" "$loaded"

connection late <<<"{driver: local, options: {backend: dir}, prority: 1}"
fails "a reload with a wrong file" '^skycap: 1 of 3 files cannot be used$' connection reload
grep -q '^late .* its file is wrong: line 1: "prority" is not known here' "$SKYCAP_TMP/out" || fail "what is wrong: $(cat "$SKYCAP_TMP/out")"
expect_equal "the last good one" "$(field late 'it["state"] + " " + it["driver"]')" "READY local"
connection late <<<"{driver: local, options: {backend: dir}, priority: 1}"
expect_equal "a file that is right again" "$("$SKYCAP" connection reload -o json | pick 'it["connections"][2]["priority"]')" 1

cp "$CONNECTIONS/late.yaml" "$CONNECTIONS/late.yml"
fails "two files of one name" '1 of 3 files' connection reload
grep -q '^late .* late.yaml and late.yml are both there: remove one' "$SKYCAP_TMP/out" || fail "what is wrong: $(cat "$SKYCAP_TMP/out")"
rm "$CONNECTIONS/late.yml"

mv "$CONNECTIONS" "$CONNECTIONS.away"
fails "a directory that is gone" "the connections' directory cannot be read: .*No such file" connection reload
expect_equal "what is in force then" "$("$SKYCAP" connection list | awk 'NR > 1 { print $1 }' | xargs)" "fast foreign late"
mv "$CONNECTIONS.away" "$CONNECTIONS"
"$SKYCAP" connection reload >/dev/null
