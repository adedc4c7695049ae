#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The key of a Ceph user is in no log and in no error, also at the level that says most, and also where the target repeats the request in its complaint.
source "$(dirname "$0")/../oim-controller.sh"

SECRET=AQBhunter2hunter2==
map_image() { # map_image VOLUME [SECRET]
    answer MapVolume "{\"volumeId\":\"$1\",\"ceph\":{\"pool\":\"rbd\",\"image\":\"i\",\"secret\":\"${2:-$SECRET}\"}}"
}
fault() { # fault METHOD CODE: the target says all that it was told
    stand_in stand_in_fault "{\"method\":\"$1\",\"kind\":\"error\",\"code\":$2,\"message\":\"cannot: REQUEST\"}" >/dev/null
}
is_silent() { # is_silent CASE
    if grep -F "${SECRET%==}" "$LOG" "$SKYCAP_TMP/complaint"; then fails "$1" "the secret is told"; else passes "$1"; fi
}

start_stand_in
start_spdk_controller
: >"$SKYCAP_TMP/complaint"
check "an image is mapped" "$(map_image one | cut -c 1-11)" '{"device":"'
check "the target has got the key" "$(stand_in bdev_get_bdevs '{"name":"one"}' | pick 'it[0]["driver_specific"]["rbd"]["config"]["key"]')" "$SECRET"
check "with another key it is another" "$(map_image one "other-$SECRET")" ALREADY_EXISTS
is_silent "after a mapping, and a refused one"
for code in -32602 -32603 -5 -1 -32601 4711; do
    fault bdev_rbd_create $code
    fault construct_rbd_bdev $code
    case $(map_image two) in
    FAILED_PRECONDITION | INTERNAL) passes "the target repeats it with $code" ;;
    *) fails "the target repeats it with $code" "$(cat "$SKYCAP_TMP/complaint")" ;;
    esac
    is_silent "after $code"
    stand_in stand_in_asked >/dev/null
    unmap two >/dev/null
done
stand_in stand_in_fault '{"method":"bdev_rbd_create","kind":"no-json"}' >/dev/null
check "an answer that is none" "$(map_image three)" INTERNAL
is_silent "after it"

# map_final_form VOLUME: as a client of OIM's final form sends it, {user_id 1, secret 2, monitors 3, pool 4, image 5}; prints the code.
map_final_form() {
    /usr/bin/python3 - "unix:$SOCKET" "$1" "$SECRET" <<'END'
import sys
import grpc

def field(number, value):
    data = value if isinstance(value, bytes) else value.encode()
    return bytes([number << 3 | 2, len(data)]) + data

address, volume, secret = sys.argv[1:]
ceph = b"".join(field(n + 1, text) for n, text in enumerate(["admin", secret, "10.0.0.1", "rbd", "i"]))
with grpc.insecure_channel(address) as channel:
    try:
        channel.unary_unary("/oim.v0.Controller/MapVolume")(field(1, volume) + field(3, ceph), timeout=20)
        print("OK")
    except grpc.RpcError as error:
        print(error.code().name)
END
}
check "a client of OIM's final form is refused" "$(map_final_form five)" INVALID_ARGUMENT
is_silent "after that"
stop_stand_in
check "no target" "$(map_image four)" UNAVAILABLE
is_silent "without a target"
grep -q MapVolume "$LOG" || fail "the calls left no line in the log"
finish
