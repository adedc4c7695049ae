#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a newcomer runs into, each made for real: the error names the fact and the remedy. Where another back end works, skycap starts with it and says what that costs.
#
# In a mount namespace of its own, so that it can hide devices and files of the kernel.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "needs root, to make the conditions"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
source "$(dirname "$0")/../storage.sh"
need_storage

cd "$SKYCAP_TMP" || exit
plain=(setpriv --reuid 65534 --regid 65534 --clear-groups)
mkdir -m 0777 open
chmod 0755 "$SKYCAP_TMP"
count=0

# says WHAT TEXT COMMAND...: the server ends at once with an error, which has this text.
says() {
    local what=$1 text=$2 code=0 output
    shift 2
    output=$(timeout 20 "$@" 2>&1) || code=$?
    if [ "$code" = 124 ] || [ "$code" = 0 ]; then
        fails "$what" "it serves: $output"
    elif grep -qE -- "$text" <<<"$(tail -n 1 <<<"$output")"; then
        passes "$what"
    else
        fails "$what" "$(tail -n 1 <<<"$output")"
    fi
}

# serve_once FLAG...: the arguments of a server with a directory of its own.
serve_once() {
    count=$((count + 1))
    served=("$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/open/$count.sock" --data "$SKYCAP_TMP/open/$count.data" "$@")
}

# starts_with_a_warning WHAT TEXT COMMAND...: it serves, and its log has this text.
starts_with_a_warning() {
    local what=$1 text=$2 job
    shift 2
    : >log # a test before this one may have left its own
    "$@" >log 2>&1 &
    job=$!
    servers+=("$job")
    if ! wait_for 10 grep -q ' ready ' log; then
        fails "$what" "not ready: $(tail -n 1 log)"
    elif grep -qE -- "$text" log; then
        passes "$what"
    else
        fails "$what" "$(cat log)"
    fi
    stop_server "$job" || fails "$what" "it ended badly"
}

# greets_with_the_cost WHAT COMMAND...: the greeting, too, says that clones are copies here and that this stays.
greets_with_the_cost() {
    local what=$1 job
    shift
    "$@" --greet >greeting 2>log &
    job=$!
    servers+=("$job")
    wait_for 10 grep -q 'Try next' greeting || fail "$what: no greeting: $(tail -n 1 log)"
    stop_server "$job" || fails "$what" "it ended badly"
    if grep -q '^  clones  copy every byte: .*this data directory$' greeting && grep -q '^ *stays so\. For instant clones.* empty data directory' greeting; then
        passes "$what"
    else
        fails "$what" "$(cat greeting)"
    fi
}

# ---- without root --------------------------------------------------------------------------------

serve_once
starts_with_a_warning "without root, the log says what that costs" 'WARN.*does not run as root.*cannot be published.*as root' "${plain[@]}" "${served[@]}"
serve_once --backend btrfs
says "btrfs without root" 'btrfs back end needs root' "${plain[@]}" "${served[@]}"
says "the default socket without root" '/run.*Permission denied; without root, give paths of your own, such as --endpoint unix://.* --data' \
    unshare --mount sh -c 'mount -t tmpfs -o mode=755 tmpfs /run && exec "$@"' sh "${plain[@]}" "$SKYCAP" serve --data "$SKYCAP_TMP/open/x"
says "the default data without root" '/var/lib/skycap: Permission denied; without root, give a directory of your own with --data' \
    unshare --mount sh -c 'mount -t tmpfs -o mode=755 tmpfs /var/lib && exec "$@"' sh "${plain[@]}" "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/open/y.sock"
says "a socket in a directory that is not there" 'No such file or directory; make the directory .*/nowhere first' \
    "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/nowhere/csi.sock" --data open/z
serve_once --listen 127.0.0.1:80 --insecure
[ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -le 80 ] ||
    says "a low port without root" '--listen: .*Permission denied; ports below 1024 need root' "${plain[@]}" "${served[@]}"

# ---- what the kernel lacks -----------------------------------------------------------------------

serve_once --backend btrfs
says "no btrfs in the kernel" 'No such device; this kernel has no btrfs: .*modprobe btrfs.*--backend xfs or --backend dir' \
    "$SKYCAP_ROOT/tests/refuse-call" mount ENODEV "${served[@]}"
serve_once --backend xfs
says "no xfs in the kernel" 'this kernel has no xfs: .*modprobe xfs.*--backend btrfs or --backend dir' "$SKYCAP_ROOT/tests/refuse-call" mount ENODEV "${served[@]}"
serve_once
starts_with_a_warning "no btrfs in the kernel, and no flag" 'WARN.*clones and snapshots copy every byte' "$SKYCAP_ROOT/tests/refuse-call" mount ENODEV "${served[@]}"

serve_once
greets_with_the_cost "the greeting without btrfs" "$SKYCAP_ROOT/tests/refuse-call" mount ENODEV "${served[@]}"
greets_with_the_cost "the same data directory later" "${served[@]}"

mkdir dev
cp -a /dev/null /dev/zero /dev/urandom dev/
serve_once --backend btrfs
says "no loop devices" '/dev/loop-control: No such file.*; there are no loop devices here: .*modprobe loop.*--privileged -v /dev:/dev' \
    unshare --mount sh -c 'mount --bind dev /dev && exec "$@"' sh "${served[@]}"

# ---- what is taken or full -----------------------------------------------------------------------

/usr/bin/python3 -c 'import socket, sys, time; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1], flush=True); time.sleep(1000)' >port &
holder=$!
servers+=("$holder")
wait_for 5 test -s port || fail "no port"
for flag in --listen --http; do
    serve_once --insecure "$flag" "127.0.0.1:$(cat port)"
    says "$flag on a port that is taken" "^skycap: $flag: .*Address already in use; process $holder \(python3[.0-9]*\) of user 0 listens on the port" "${served[@]}"
done
says "as somebody who cannot see the process" "; a process of user 0 listens on the port" "${plain[@]}" "${served[@]}"
kill "$holder"
wait "$holder" 2>/dev/null || true
servers=()

mkdir small
mount -t tmpfs -o size=100M tmpfs small
says "a disk that is nearly full" 'a pool of btrfs needs at least 256 MiB, and half of the free space at .*small/data/pool is [34][0-9] MiB: free some space' \
    "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/open/full.sock" --data small/data --backend btrfs
greets_with_the_cost "a disk that is nearly full, and no flag" \
    "$SKYCAP" serve --endpoint "unix://$SKYCAP_TMP/open/fuller.sock" --data small/other
serve_once --backend btrfs --pool-size 100Mi
says "a pool that is asked for too small" 'needs at least 256 MiB, and --pool-size gives it 100 MiB' "${served[@]}"

# ---- what root is denied -------------------------------------------------------------------------

serve_once --backend btrfs
says "no capability" 'Operation not permitted; this process has no CAP_SYS_ADMIN: in a container, run it privileged' \
    setpriv --bounding-set -sys_admin --inh-caps -sys_admin "${served[@]}"
serve_once --backend btrfs
says "a filter of system calls" 'not permitted; a filter of system calls \(seccomp\)' "$SKYCAP_ROOT/tests/refuse-call" mount EPERM "${served[@]}"

echo 'skycap-profile (enforce)' >label
serve_once --backend btrfs
says "AppArmor" 'AppArmor confines this process to the profile skycap-profile \(enforce\): .*journalctl -k' \
    unshare --mount sh -c 'mount --bind label /proc/$$/attr/current && exec "$@"' sh "$SKYCAP_ROOT/tests/refuse-call" mount EPERM "${served[@]}"
echo system_u:system_r:container_t:s0 >label
serve_once --backend btrfs
says "SELinux" 'SELinux is enforcing and this process has the context system_u:system_r:container_t:s0: .*ausearch' \
    unshare --mount sh -c 'mount -t tmpfs tmpfs /sys/fs && mkdir /sys/fs/selinux && echo 1 >/sys/fs/selinux/enforce && mount --bind label /proc/$$/attr/current && exec "$@"' \
    sh "$SKYCAP_ROOT/tests/refuse-call" mount EPERM "${served[@]}"
finish
