#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The units of deploy/systemd under a real systemd: what they forbid is nothing that skycap needs, mounts reach the host, a loop that hangs is noticed and skycap started again, while
# volumes stay mounted. The registry has no rights at all. The OIM controller registers there, and what is in its memory outlives a restart of it.
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../storage.sh"
need_storage
requires systemd-analyze ip curl mkfs.xfs
if [ "$SLOWER" != 1 ]; then
    echo "sanitizers make system calls that the units forbid"
    exit 77
fi

machine=$SKYCAP_TMP/machine
mkdir -p "$machine/etc/systemd/system" "$machine/etc/skycap"
cp "$SKYCAP_ROOT"/deploy/systemd/*.service "$SKYCAP_ROOT"/deploy/systemd/*.socket "$machine/etc/systemd/system/"
cp "$SKYCAP" "$SKYCAP_ROOT/tests/freeze-loop.py" "$SKYCAP_ROOT/deploy/debian/postinst" "$machine/"
for unit in skycap skycap-registry skycap-oim-controller; do
    mkdir "$machine/etc/systemd/system/$unit.service.d"
    printf '%s\n' '[Unit]' DefaultDependencies=no '[Service]' WatchdogSec=2 RestartSec=1 "StandardOutput=append:/mnt/$unit.log" StandardError=inherit \
        >"$machine/etc/systemd/system/$unit.service.d/test.conf"
done
mkdir "$machine/etc/systemd/system/skycap.socket.d"
printf '%s\n' '[Unit]' DefaultDependencies=no >"$machine/etc/systemd/system/skycap.socket.d/test.conf"
printf '%s\n' 'SKYCAP_OPTIONS=--backend btrfs \' '    --backend dir --pool-size 1Gi' >"$machine/etc/skycap/skycap.env"
echo 'SKYCAP_OPTIONS=--listen 127.0.0.1:8999 --http 127.0.0.1:9808' >"$machine/etc/skycap/registry.env"
printf '%s\n' 'SKYCAP_OPTIONS=--controller-id worker-1 --listen 127.0.0.1:8998 --registry 127.0.0.1:8999 \' \
    '    --controller-address 127.0.0.1:8998 --tls-ca /etc/skycap/pki/ca.crt \' \
    '    --tls-cert /etc/skycap/pki/controller.worker-1.crt --tls-key /etc/skycap/pki/controller.worker-1.key' >"$machine/etc/skycap/oim-controller.env"

cat >"$SKYCAP_TMP/script" <<'END'
set -u
install /mnt/skycap /usr/bin/skycap
ip link set lo up
mkdir /volumes

fact() { # fact NAME COMMAND...
    local output
    if output=$("${@:2}" 2>&1); then echo "ok $1"; else echo "FAILED $1: $(tail -n 2 <<<"$output" | tr '\n' ' ')"; fi
}
is() { [ "$1" = "$2" ] || { echo "got '$1', wanted '$2'"; return 1; }; }
of() { systemctl show --value --property "$2" "$1"; } # of UNIT PROPERTY
becomes() { # becomes UNIT PROPERTY VALUE
    local tries
    for tries in $(seq 1 100); do
        [ "$(of "$1" "$2")" != "$3" ] || return 0
        sleep 0.1
    done
    is "$(of "$1" "$2")" "$3"
}
registry() { skycap registry "$@" --endpoint unix:///run/skycap-registry/registry.sock; }

fact "the node starts" systemctl start skycap
fact "it says what it serves" is "$(of skycap StatusText)" "serving node,controller at unix:/run/skycap/csi.sock"
main=$(of skycap MainPID)
fact "it is in the host's mount namespace" is "$(readlink "/proc/$main/ns/mnt")" "$(readlink /proc/1/ns/mnt)"
fact "it gains no rights" grep -qE '^NoNewPrivs:\s1' "/proc/$main/status"

fact "a directory" skycap volume create tree --size 100Mi --publish /volumes/tree
fact "an ext4" skycap volume create ext4 --size 300Mi --fs ext4 --publish /volumes/ext4
fact "an xfs" skycap volume create xfs --size 400Mi --fs xfs --publish /volumes/xfs
for name in tree ext4 xfs; do
    fact "the host sees $name" grep -q " /volumes/$name " /proc/1/mountinfo
done
fact "a device" skycap volume create disk --size 100Mi --block --publish /volumes/disk
fact "the host sees the device" test -b /volumes/disk
fact "the device goes" skycap volume unpublish disk /volumes/disk

install -m 4755 -o 1234 -g 5678 /bin/true /volumes/tree/program
mknod /volumes/tree/node c 1 3
fact "a copy, file by file" skycap volume clone tree copy --parameter backend=dir --publish /volumes/copy
fact "with owners, modes and devices" is "$(stat -c '%a %u %g' /volumes/copy/program) $(stat -c '%F %t %T' /volumes/copy/node)" \
    "4755 1234 5678 character special file 1 3"
fact "a snapshot" skycap snapshot create ext4 monday
fact "restored" skycap snapshot restore monday restored --publish /volumes/restored

/usr/bin/python3 /mnt/freeze-loop.py "$main" >/mnt/frozen 2>&1 &
freezer=$!
fact "a loop that hangs is noticed" becomes skycap Result watchdog
kill "$freezer" # the kernel keeps a process whose thread is traced
fact "the node starts again" becomes skycap NRestarts 1
fact "and serves" becomes skycap ActiveState active
fact "volumes are still there" test -u /volumes/tree/program
fact "and are known" skycap volume show tree
fact "certificates can be read again" systemctl reload skycap
fact "it is still active" is "$(of skycap ActiveState)" active
for name in ext4 xfs copy restored; do
    fact "$name goes" skycap volume unpublish "$name" "/volumes/$name"
done
fact "the node stops" systemctl stop skycap
fact "in order" is "$(of skycap Result) $(of skycap ExecMainStatus)" "success 0"
fact "and leaves what is mounted" test -u /volumes/tree/program
fact "nothing is amiss" skycap doctor --data /var/lib/skycap

fact "the socket alone" systemctl start skycap.socket
fact "starts no service" is "$(of skycap ActiveState)" inactive
fact "only root may open it" is "$(stat -c '%a %U' /run/skycap/csi.sock)" "600 root"
fact "the first client starts it, and is answered" skycap volume show tree
fact "the service runs" is "$(of skycap ActiveState)" active
inode=$(stat -c %i /run/skycap/csi.sock)
fact "it restarts" systemctl restart skycap
fact "on the same socket" is "$(stat -c %i /run/skycap/csi.sock)" "$inode"
fact "and answers there" skycap volume show tree
main=$(of skycap MainPID)
rm -f /usr/sbin/policy-rc.d # of images for containers: it forbids packages to restart anything
fact "an upgrade of the package" sh /mnt/postinst configure 0.0.1
fact "restarts the node" test "$(of skycap MainPID)" != "$main"
fact "and leaves the socket open" is "$(of skycap.socket ActiveState) $(stat -c %i /run/skycap/csi.sock)" "active $inode"
fact "where the new one answers" skycap volume show tree
fact "the socket and the node stop" systemctl stop skycap.socket skycap

skycap pki init /etc/skycap/pki && skycap pki issue component.registry --pki /etc/skycap/pki && skycap pki issue user.admin --pki /etc/skycap/pki
/usr/bin/python3 -c 'import socket, time; s = socket.create_server(("127.0.0.1", 8999)); print("bound", flush=True); time.sleep(60)' >/mnt/bound &
other=$!
until grep -q bound /mnt/bound; do sleep 0.05; done
systemctl start --no-block skycap-registry
fact "a registry that cannot listen ends" becomes skycap-registry ExecMainStatus 2
kill "$other"
fact "and starts when it can" becomes skycap-registry ActiveState active
restarts=$(of skycap-registry NRestarts)
main=$(of skycap-registry MainPID)
fact "without any capability" grep -qE '^CapPrm:\s0+$' "/proc/$main/status"
fact "as a user of its own" test "$(stat -c %u "/proc/$main")" -ge 61184 # where systemd's dynamic users begin
fact "it keeps entries" registry set host-0/address 10.0.0.7:8999
fact "it answers with its certificate" skycap registry get host-0/address --endpoint 127.0.0.1:8999 --tls-name component.registry \
    --tls-ca /etc/skycap/pki/ca.crt --tls-cert /etc/skycap/pki/user.admin.crt --tls-key /etc/skycap/pki/user.admin.key
fact "it is healthy" curl -sf http://127.0.0.1:9808/healthz
[ "$main" = 0 ] || kill -STOP "$main" # 0: it does not run
fact "a registry that hangs is started again" becomes skycap-registry NRestarts $((restarts + 1))
fact "and serves" becomes skycap-registry ActiveState active
fact "with its entries" registry get host-0/address
skycap pki issue controller.worker-1 --pki /etc/skycap/pki && skycap pki issue host.worker-1 --pki /etc/skycap/pki
oim() {
    skycap oim "$@" --registry 127.0.0.1:8999 --controller worker-1 --tls-ca /etc/skycap/pki/ca.crt \
        --tls-cert /etc/skycap/pki/host.worker-1.crt --tls-key /etc/skycap/pki/host.worker-1.key
}
loops() { losetup --noheadings --list --output BACK-FILE | grep -c oim-memory; }
registered() {
    local tries
    for tries in $(seq 1 100); do
        [ "$(registry get worker-1/address 2>/dev/null)" != 127.0.0.1:8998 ] || return 0
        sleep 0.1
    done
    registry get worker-1/address
}
fact "the OIM controller starts" systemctl start skycap-oim-controller
fact "it says what it serves" is "$(of skycap-oim-controller StatusText | cut -d ' ' -f 1,2)" "serving oim-controller"
main=$(of skycap-oim-controller MainPID)
fact "it is in the host's mount namespace" is "$(readlink "/proc/$main/ns/mnt")" "$(readlink /proc/1/ns/mnt)"
fact "with one capability" grep -qE '^CapPrm:\s0000000000200000$' "/proc/$main/status"
fact "it registers" registered
fact "it makes a device" oim provision disk 8Mi
fact "and maps it" oim map disk
fact "which is there" is "$(loops)" 1
fact "it restarts" systemctl restart skycap-oim-controller
fact "it answers again" oim map disk
fact "with the same device" is "$(loops)" 1
fact "it reads certificates again" systemctl reload skycap-oim-controller
main=$(of skycap-oim-controller MainPID)
[ "$main" = 0 ] || kill -STOP "$main"
fact "a controller that hangs is started again" becomes skycap-oim-controller NRestarts 1
fact "and serves" becomes skycap-oim-controller ActiveState active
fact "it unmaps the device" oim unmap disk
fact "which is gone" is "$(loops)" 0
fact "and deletes it" oim provision disk 0
fact "the OIM controller stops" systemctl stop skycap-oim-controller
fact "and leaves no mount" is "$(grep -c oim-memory /proc/1/mountinfo)" 0
fact "the registry stops" systemctl stop skycap-registry
umount /volumes/tree
echo "the end"
END

"$SKYCAP_ROOT/tests/boot-systemd" "$machine" "$SKYCAP_TMP/script" || exit $?
while read -r line; do
    case $line in
    "ok "*) passes "${line#ok }" ;;
    "FAILED "*) what=${line#FAILED } && fails "${what%%: *}" "${what#*: }" ;;
    esac
done <"$machine/output"
# shellcheck disable=SC2154 # of peers.sh
if [ "$failed" != 0 ]; then
    tail -n 20 "$machine/skycap.log" "$machine/skycap-registry.log" "$machine/skycap-oim-controller.log" "$machine/console" || true
fi
grep -qx "the end" "$machine/output" || fail "the script did not come to its end: $(tail -n 3 "$machine/output")"
finish
