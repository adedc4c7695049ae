#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Servers with the arguments of the Nomad jobs, a registry and two clients, form a cluster. Nomad may send each call of the controller to another client: a volume made
# through one can be attached, seen and deleted through the other.
source "$(dirname "$0")/../peers.sh"
jobs=$SKYCAP_ROOT/deploy/nomad
registry=127.0.0.1:$(free_port)

# arguments JOB NAME GRPC: of its task, a line each. Nomad's variables and the paths in the container are those of this test.
arguments() {
    /usr/bin/python3 - "$jobs/$1.nomad.hcl" "$2" "$3" "$registry" "$SKYCAP_TMP" <<'P'
import os, re, sys
path, name, grpc, registry, directory = sys.argv[1:]
text = open(path).read()
places = {"/csi/": f"{directory}/{name}/csi/", "/local/": f"{directory}/{name}/local/", "/etc/skycap/pki/": f"{directory}/pki/",
          "/etc/skycap-registry/pki/": f"{directory}/pki/"}
values = {"node.unique.name": name, "NOMAD_ADDR_grpc": grpc, "NOMAD_ADDR_http": "127.0.0.1:0", "var.registry": registry}
for target in re.findall(r'target *= "(/var/[^"]*)"', text):
    places[target] = f"{directory}/{name}/data"
for word in re.findall(r'"([^"]*)"', re.search(r"\bargs = \[(.*?)\n *\]", text, re.DOTALL)[1]):
    word = re.sub(r"\$\{([^}]*)\}", lambda found: values[found[1]], word)
    scheme, word = ("unix://", word[7:]) if word.startswith("unix://") else ("", word)
    if word.startswith("/"):
        mounted = [place for place in places if word.startswith(place)]
        if not mounted:
            sys.exit(f"{path}: {word} is not mounted")
        word = places[mounted[0]] + word.removeprefix(mounted[0])
        os.makedirs(os.path.dirname(word), exist_ok=True)
    print(scheme + word)
P
}

# start JOB NAME GRPC SOCKET [FLAG...]
start() {
    local text words
    text=$(arguments "$1" "$2" "$3") || fail "$text"
    mapfile -t words <<<"$text"
    LOG=$SKYCAP_TMP/$2.log
    "$SKYCAP" "${words[@]}" "${@:5}" >"$LOG" 2>&1 &
    SERVER=$!
    servers+=("$SERVER")
    logs+=("$LOG")
    # shellcheck disable=SC2034 # lib.sh asks there
    SOCKET=$SKYCAP_TMP/$2/$4
    wait_for $((20 * SLOWER)) answers_or_ended || fail "$2 does not answer"
    ! has_ended "$SERVER" || fail "$2 ended at once"
}

at() { # at CLIENT WORD...
    "$SKYCAP" "${@:2}" --endpoint "unix:$SKYCAP_TMP/$1/csi/csi.sock"
}

"$SKYCAP" pki init "$SKYCAP_TMP/pki" >"$SKYCAP_TMP/pki.log" 2>&1
for name in component.registry node.alpha node.beta; do
    "$SKYCAP" pki issue "$name" --pki "$SKYCAP_TMP/pki" >>"$SKYCAP_TMP/pki.log" 2>&1 || fail "$(cat "$SKYCAP_TMP/pki.log")"
done
start skycap-registry registry "$registry" local/registry.sock
for client in alpha beta; do
    start skycap "$client" "127.0.0.1:$(free_port)" csi/csi.sock --backend dir
done

are_ready() {
    [ "$(at "$1" node list -o json 2>/dev/null | grep -o '"READY"' | wc -l)" = 2 ]
}
for client in alpha beta; do
    wait_for $((30 * SLOWER)) are_ready "$client" || fail "$client: $(at "$client" node list 2>&1)"
    passes "$client sees both clients"
done

at alpha volume create data --size 16Mi --node alpha >"$SKYCAP_TMP/created" 2>&1 || fail "$(cat "$SKYCAP_TMP/created")"
id=$(at alpha volume list -o json | sed -n 's/.*"volumeId": *"\([^"]*\)".*/\1/p' | head -n 1)
node=$("$SKYCAP" call "unix:$SKYCAP_TMP/alpha/csi/csi.sock" csi.v1.Node/NodeGetInfo '{}' | sed -n 's/.*"nodeId": *"\([^"]*\)".*/\1/p')
publish="{\"volume_id\":\"$id\",\"node_id\":\"$node\",\"volume_capability\":{\"mount\":{},\"access_mode\":{\"mode\":\"SINGLE_NODE_WRITER\"}}}"
[ -n "$(find "$SKYCAP_TMP/alpha/data" -name "*${id##*/}*")" ] || fail "alpha does not have $id"
through_beta() { "$SKYCAP" call --compact "unix:$SKYCAP_TMP/beta/csi/csi.sock" "csi.v1.Controller/$1" "$2" 2>&1; }
check "the other client attaches the volume" "$(through_beta ControllerPublishVolume "$publish")" "{}"
check "and detaches it" "$(through_beta ControllerUnpublishVolume "{\"volume_id\":\"$id\",\"node_id\":\"$node\"}")" "{}"
check "and deletes it" "$(through_beta DeleteVolume "{\"volume_id\":\"$id\"}")" "{}"
check "what alpha keeps of it" "$(find "$SKYCAP_TMP/alpha/data" -name "*${id##*/}*")" ""
check "volumes that alpha has" "$(at alpha volume list -o json | grep -c volumeId || true)" 0
finish
