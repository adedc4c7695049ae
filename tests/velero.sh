# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests with Velero's own code share, beyond peers.sh: the plugin in a directory, and Velero's client that calls it. A test sources it
# behind peers.sh, and says itself
#
#     need_peers velero

# shellcheck disable=SC2034 # for the tests
PLUGIN_NAME=skycap.dev/velero
export VELERO_PLUGIN_DIR=$SKYCAP_TMP/plugins
mkdir "$VELERO_PLUGIN_DIR"
cp "$SKYCAP_BUILD/skycap-velero" "$VELERO_PLUGIN_DIR/"

# velero COMMAND REQUEST [FLAG...]: the answer, an object of JSON. tests/peers/velero/main.go has the commands; each begins with discovering
# the plugins, as Velero's server does, and ends with ending them. The name of the plugin is added. What Velero logs is in velero.log.
velero() {
    local command=$1 request=$2 code=0
    shift 2
    timeout $((60 * SLOWER)) "$PEERS/velero-client" "$command" "$@" 2>"$SKYCAP_TMP/velero.log" \
        < <(object "$request" Name "\"$PLUGIN_NAME\"") || code=$?
    # With a sanitizer this means more.
    ! grep -Eq 'plugin process exited.* error=|Sanitizer' "$SKYCAP_TMP/velero.log" || fail "a plugin ended badly: $(cat "$SKYCAP_TMP/velero.log")"
    return "$code"
}

# must_velero COMMAND REQUEST [FLAG...]: the same, and it must succeed.
must_velero() {
    velero "$@" || fail "velero $1 failed: $(tail -n 5 "$SKYCAP_TMP/velero.log")"
}

# why: what the last command failed with.
why() {
    sed -n 's/^velero-client: //p' "$SKYCAP_TMP/velero.log"
}

# object JSON [KEY JSON]...: the object with further members.
object() {
    /usr/bin/python3 -c '
import json, sys
it = json.loads(sys.argv[1])
for key, value in zip(sys.argv[2::2], sys.argv[3::2]):
    it[key] = json.loads(value)
print(json.dumps(it))' "$@"
}

# member JSON NAME...: a member of a member; texts without quotes.
member() {
    /usr/bin/python3 -c '
import json, sys
it = json.loads(sys.argv[1])
for name in sys.argv[2:]:
    it = it[int(name) if isinstance(it, list) else name]
print(it if isinstance(it, str) else json.dumps(it))' "$@"
}

# volume_object NAME ID [DRIVER]: a PersistentVolume.
volume_object() {
    printf '{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"%s"},"spec":{"capacity":{"storage":"1Gi"},"csi":{"driver":"%s","volumeHandle":"%s"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.skycap.dev/node","operator":"In","values":["gone"]}]}]}}}}' \
        "$1" "${3-csi.skycap.dev}" "$2"
}

# id_of_volume NAME
id_of_volume() {
    "$SKYCAP" volume show "$1" -o json | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["volume"]["volumeId"])'
}
