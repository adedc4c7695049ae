#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever `connection` says, no path is made of it, nothing is kept of it, and the answer says what there is to choose from.
source "$(dirname "$0")/../connections.sh"
need_peers go
requires curl

sample nas "labels: {media: disk}"
sample ssd
# What a path in a name would lead to: a file that is a good connection, outside of the directory.
mkdir "$SKYCAP_TMP/outside"
sample_file nas >"$SKYCAP_TMP/outside/x.yaml"
mkdir "$CONNECTIONS/below"
sample_file nas >"$CONNECTIONS/below/x.yaml"
port=$(free_port)
start_connected --http "127.0.0.1:$port"
wait_until_up nas ssd

# refused NAME PATTERN: as parameter of CreateVolume and GetCapacity, and of an inline volume.
refused() {
    refuses "connection '$1'" INVALID_ARGUMENT "$2" create_volume data "$(on "$1")"
    refuses "capacity of '$1'" INVALID_ARGUMENT "$2" rpc Controller/GetCapacity "{$(on "$1")}"
    refuses "an inline volume on '$1'" INVALID_ARGUMENT "$2" rpc Node/NodePublishVolume \
        "{\"volumeId\":\"csi-1\",\"targetPath\":\"$SKYCAP_TMP/inline\",\"volumeCapability\":$(capability tree),
        \"volumeContext\":{\"csi.storage.k8s.io/ephemeral\":\"true\",\"connection\":\"$1\"}}"
}

refused gone 'there are: nas, ssd'
passes "a connection that there is not: the answer names those that there are"
for name in ../outside/x ../../etc/x below/x ./nas nas/ /nas nas.yaml .nas NAS "nas " " nas" "na\ts" "" - -nas nas_ \
    "n\u00e4s" "$(printf '%021d' 0)" "$(printf '%0300d' 0)" '%2e%2e' 'nas\\' '\"nas\"' "nas,ssd" "*"; do
    refused "$name" 'not a connection name|there are: nas, ssd'
    passes "connection '${name:0:40}' is refused"
done
refuses "none, and no default" INVALID_ARGUMENT 'no connection is the default one; there are: nas, ssd' create_volume data
refuses "both ways at once" INVALID_ARGUMENT 'exclude each other' create_volume data \
    '"parameters":{"connection":"nas","connection-selector":"media=disk"}'
for selector in media =disk '!=disk' 'media=disk,' ',' '' 'media=disk,,tier=1' media=tape; do
    refuses "selector '$selector'" INVALID_ARGUMENT . create_volume data "\"parameters\":{\"connection-selector\":\"$selector\"}"
done
passes "no choice, two choices and selectors that are none are refused"

check "no driver was asked for a volume" "$(seen nas CreateVolume 'len(all)')$(seen ssd CreateVolume 'len(all)')" 00
check "nothing is remembered of inline volumes that were refused" \
    "$(rpc Node/NodeUnpublishVolume "{\"volumeId\":\"csi-1\",\"targetPath\":\"$SKYCAP_TMP/inline\"}")" '{}'
check "the driver was not asked to publish" "$(seen nas NodePublishVolume 'len(all)')" 0

# ---- nothing stays: defect 8 ------------------------------------------------------------------------

descriptors() { find "/proc/$SERVER/fd" | wc -l; }
garbage() { # garbage FROM TO: names that are well formed, and those that are not
    /usr/bin/python3 - "$SKYCAP" "$SOCKET" "$1" "$2" <<'END'
import json, subprocess, sys
skycap, socket, first, end = sys.argv[1:]
for i in range(int(first), int(end)):
    for name in (f"name-{i}", f"../{i}/{i}"):
        request = {"name": "x", "parameters": {"connection": name}}
        result = subprocess.run([skycap, "call", f"unix:{socket}", "csi.v1.Controller/CreateVolume", json.dumps(request)],
                                capture_output=True, text=True, check=False)
        if "INVALID_ARGUMENT" not in result.stderr:
            sys.exit(f"{name}: {result}")
END
}
garbage 0 100
memory=$(memory_kib)
descriptors=$(descriptors)
garbage 100 500
check "descriptors after 800 more unknown names" "$(descriptors)" "$descriptors"
if measures_memory; then
    [ "$(memory_kib)" -le $((memory + 128)) ] ||
        fails "memory after 800 more unknown names" "$(memory_kib) KiB, $memory before"
fi
check "connections that were ever loaded" "$(grep -c 'connection loaded' "$LOG")" 2

# ---- files whose names are none ----------------------------------------------------------------------

for name in 'a"b' $'new\nline' UP x_y "$(printf '%021d' 0)" $'\xff\xfe' $'\xfe\xff' '{}' 'a\'; do
    sample_file nas >"$CONNECTIONS/$name.yaml"
done
reload 2>/dev/null || true # it complains of them
# Two of them look the same where only text can be shown.
check "the log tells of each" "$(grep -c "the connection's file is wrong" "$LOG")" 8
check "no connection comes of them" "$("$SKYCAP" connection list --endpoint "unix:$SOCKET" -o json |
    pick 'sorted(c["name"] for c in it["connections"] if c["state"] == "READY")')" "['nas', 'ssd']"
curl --silent --max-time 5 --noproxy '*' "http://127.0.0.1:$port/metrics" >"$SKYCAP_TMP/metrics"
check "the metrics have those that are connections, once each" \
    "$(grep -a '^skycap_connection_file_bad' "$SKYCAP_TMP/metrics" | sort)" \
    $'skycap_connection_file_bad{connection="nas"} 0\nskycap_connection_file_bad{connection="ssd"} 0'
check "and count the files that are wrong" "$(sed -n 's/^skycap_connection_bad_files_total //p' "$SKYCAP_TMP/metrics")" 8
finish
