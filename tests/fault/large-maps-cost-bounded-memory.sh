#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# alone
# time-limit: 200
# A request with tens of thousands of parameters, attributes or topologies is answered soon and costs little memory, with and without connections.
source "$(dirname "$0")/../peers.sh"

most_mib=64               # more than the server had before
most_ms=$((3000 * SLOWER)) # also for our own client, which reads megabytes of JSON

# With a sanitizer memory is not what it is otherwise.
measures_memory=yes
if grep -qE '__(asan|tsan)_init' "$SKYCAP"; then
    measures_memory=no
fi

# request KIND COUNT: JSON
request() {
    /usr/bin/python3 - "$@" <<'END'
import json, sys

kind, count = sys.argv[1], int(sys.argv[2])
mount = {"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}
pairs = {f"{i * 7919 % count:05}": "x" for i in range(count)}
create = {"name": "large", "volume_capabilities": [mount]}
publish = {"volume_id": "v:own/large", "target_path": "/nowhere", "volume_capability": mount}
places = [{"segments": {f"rack-{i}": "1"}} for i in range(count)]
print(json.dumps({
    "parameters": create | {"parameters": pairs},
    "secrets": create | {"secrets": pairs},
    "secrets-of-one": create | {"secrets": {f"own.{k}" if i % 2 else k: v for i, (k, v) in enumerate(pairs.items())}},
    "segments": create | {"accessibility_requirements": {"requisite": [{"segments": pairs}]}},
    "topologies": create | {"accessibility_requirements": {"requisite": places, "preferred": places[::-1]}},
    "attributes": publish | {"volume_context": pairs | {"csi.storage.k8s.io/ephemeral": "true"}},
    "publish-secrets": publish | {"secrets": pairs},
    "capacity": {"parameters": pairs},
}[kind]))
END
}

memory_kib() { # memory_kib VmRSS|VmHWM
    awk -v "name=$1:" '$1 == name { print $2 }' "/proc/$SERVER/status"
}

# costs_little CASE METHOD KIND COUNT: whatever is answered, it is answered soon and takes little.
costs_little() {
    local before started took more said
    request "$3" "$4" >"$SKYCAP_TMP/request"
    echo 5 >"/proc/$SERVER/clear_refs"
    before=$(memory_kib VmRSS)
    started=$(date +%s%N)
    said=$("$SKYCAP" call --timeout 20 "unix:$SOCKET" "csi.v1.$2" - <"$SKYCAP_TMP/request" 2>&1) || true
    took=$((($(date +%s%N) - started) / 1000000))
    if ! more=$((($(memory_kib VmHWM) - before) / 1024)) || has_ended "$SERVER"; then
        fail "$1: the server ended: $said"
    fi
    echo "$1: $took ms, $more MiB: ${said:0:100}"
    case $said in
    *UNAVAILABLE* | *DEADLINE_EXCEEDED* | *CANCELLED*) fails "$1" "it answered ${said:0:200}" ;;
    *)
        if [ "$took" -le "$most_ms" ] && { [ "$measures_memory" = no ] || [ "$more" -le "$most_mib" ]; }; then
            passes "$1"
        else
            fails "$1" "$took ms and $more MiB, wanted $most_ms and $most_mib at most"
        fi
        ;;
    esac
}

all_cost_little() { # all_cost_little WHERE
    costs_little "8000 parameters, $1" Controller/CreateVolume parameters 8000
    costs_little "40000 parameters, $1" Controller/CreateVolume parameters 40000
    costs_little "40000 secrets, $1" Controller/CreateVolume secrets 40000
    costs_little "40000 secrets, half of them for one connection, $1" Controller/CreateVolume secrets-of-one 40000
    costs_little "a place of 40000 segments, $1" Controller/CreateVolume segments 40000
    costs_little "20000 places, $1" Controller/CreateVolume topologies 20000
    costs_little "40000 attributes of a pod's volume, $1" Node/NodePublishVolume attributes 40000
    costs_little "40000 secrets to publish, $1" Node/NodePublishVolume publish-secrets 40000
    costs_little "40000 parameters of a question for room, $1" Controller/GetCapacity capacity 40000
}

start_skycap_at "$SKYCAP_TMP/own.sock"
all_cost_little "one driver"
mkdir "$SKYCAP_TMP/connections"
echo '{driver: local, options: {backend: dir}}' >"$SKYCAP_TMP/connections/own.yaml"
start_skycap_at "$SKYCAP_TMP/connected.sock" --connections "$SKYCAP_TMP/connections"
all_cost_little "connections"
finish
