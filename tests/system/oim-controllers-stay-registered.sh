#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A controller registers as soon as it answers, renews its entry, and registers again with a registry that was away; the log tells of changes only. skycap oim reaches it
# through the registry.
source "$(dirname "$0")/../oim-controller.sh"
need_storage

REGISTRY=unix://$SKYCAP_TMP/registry.sock
CONTROLLER=unix://$SKYCAP_TMP/oim.sock

start_registry() {
    start_skycap_at "$SKYCAP_TMP/registry.sock" --roles registry
    REGISTRY_SERVER=$SERVER
}
entry() { # what the registry knows of host-0
    "$SKYCAP" call --compact "$REGISTRY" oim.v0.Registry/GetControllers '{}' 2>/dev/null |
        pick '[e["address"] for e in it.get("entries", []) if e["controllerId"] == "host-0"]'
}
is_registered() { [ "$(entry)" = "['$CONTROLLER']" ]; }
expires() { # when the entry does, since 1970
    "$SKYCAP" call --compact "$REGISTRY" skycap.v1.Registry/ListEntries '{}' | pick 'it["entries"][0]["expires"]'
}
lines() { # lines TEXT: how often the controller's log has it
    grep -c "$1" "$SKYCAP_TMP/oim.sock.log" || true
}
has_lines() { [ "$(lines "$1")" -ge "$2" ]; }
through() { # through VERB ARGUMENT...: skycap oim, by way of the registry
    "$SKYCAP" oim "$@" --registry "$REGISTRY" --controller host-0 2>&1
}

start_controller --registry "$REGISTRY" --controller-address "$CONTROLLER" --registry-delay 1
CONTROLLER_SERVER=$SERVER
wait_for 5 has_lines "cannot register" 1 || fail "nothing tells that there is no registry"
start_registry
wait_for 8 is_registered || fail "it does not register when the registry has come"
passes "it registers when the registry has come"
first=$(expires)
renewed() { [ "$(expires)" \> "$first" ]; }
wait_for 5 renewed && passes "it renews its entry" || fails "it renews its entry" "$first, $(expires)"
wait_for 5 has_lines "registered with the registry" 1 || true
sleep 2.5

check "a volume is made through the registry" "$(through provision v1 64Ki)" "v1 exists"
check "it exists" "$(through check v1)" "v1 exists"
check "is mapped" "$(through map v1 | sed 's/[0-9]//g')" "device      /block/loop"
check "in JSON too" "$(through map v1 -o json | pick 'sorted(it)')" "['device']"
check "is unmapped" "$(through unmap v1)" "v1 is unmapped"
check "is deleted" "$(through provision v1 0)" "v1 is deleted"
check "is not there then" "$(through check v1 || echo "ended with $?")" 'skycap: there is no block device "v1": create it with ProvisionMallocBDev
ended with 1'
for flags in "--registry $REGISTRY" "--controller host-0" "--registry $REGISTRY --controller host-0 --endpoint $CONTROLLER"; do
    # shellcheck disable=SC2086 # several flags
    "$SKYCAP" oim check v1 $flags 2>"$SKYCAP_TMP/complaint" && code=0 || code=$?
    check "flags that do not go together: $flags" "$code $(wc -l <"$SKYCAP_TMP/complaint")" "2 1"
done
"$SKYCAP" oim provision v1 many --endpoint "$CONTROLLER" 2>"$SKYCAP_TMP/complaint" && code=0 || code=$?
check "a size that is none" "$code $(grep -c 'SIZE: ' "$SKYCAP_TMP/complaint")" "2 1"

kill -KILL "$REGISTRY_SERVER"
wait "$REGISTRY_SERVER" 2>/dev/null || true
rm -r "$SKYCAP_TMP/registry.sock.data"
wait_for 8 has_lines "cannot renew" 1 || fail "nothing tells that the registry is away"
sleep 2.5
start_registry
wait_for 8 is_registered || fail "it does not register again"
passes "it registers again, with a registry that has lost everything"
wait_for 5 has_lines "registered again" 1 || true
sleep 2.5
check "the log tells each change once" "$(lines "cannot register") $(lines "registered with") $(lines "cannot renew") $(lines "registered again")" "1 1 1 1"

stop_server "$CONTROLLER_SERVER"
check "the entry stays when the controller ends" "$(entry)" "['$CONTROLLER']"
is_expired() { "$SKYCAP" call --compact "$REGISTRY" skycap.v1.Registry/ListEntries '{}' | grep -q '"isExpired":true'; }
wait_for 6 is_expired && passes "and expires" || fails "and expires" "$(expires)"
finish
