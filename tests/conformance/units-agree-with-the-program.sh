#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# systemd takes the units of deploy/systemd without a word, and their flags, directories and sockets are those of the program. The node's has nothing that would give it a
# mount namespace of its own, and neither has that of the OIM controller.
source "$(dirname "$0")/../peers.sh"
requires systemd-analyze

help=$("$SKYCAP" serve --help)
units=$SKYCAP_TMP/units
mkdir "$units"
for unit in skycap skycap-registry skycap-oim-controller; do
    sed "s|^ExecStart=skycap|ExecStart=$SKYCAP|" "$SKYCAP_ROOT/deploy/systemd/$unit.service" >"$units/$unit.service"
    grep -q "^ExecStart=$SKYCAP serve" "$units/$unit.service" || fail "$unit does not start skycap"
done

# setting UNIT NAME: all its values, a line each; lines that go on are joined.
setting() {
    sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' "$units/$1.service" | sed -n "s/^$2=//p"
}

# Another version of systemd may rate otherwise.
rates=$(systemd-analyze --version | sed -nE '1s/^systemd ([0-9]+).*/\1/p')
for unit in skycap skycap-registry skycap-oim-controller; do
    code=0
    output=$(systemd-analyze verify --man=no "$units/$unit.service" 2>&1) || code=$?
    check "$unit: systemd-analyze verify says nothing" "$code: $output" "0: "
    exposure=$(systemd-analyze security --no-pager --offline=true "$units/$unit.service" 2>&1 | sed -n 's/.*exposure level for [^:]*: \([0-9.]*\).*/\1/p')
    echo "# $unit: exposure $exposure of 10"
    if [ "$rates" = 252 ]; then
        check "$unit: its exposure is that of docs/deploy.md" "$exposure" \
            "$(sed -nE "s/^\| \`$unit\.service\` \|.*\| ([0-9.]+) \|$/\1/p" "$SKYCAP_ROOT/docs/deploy.md")"
    elif [ -z "$exposure" ]; then
        fails "$unit: exposure" "none"
    fi
    for flag in $(setting "$unit" ExecStart | grep -oE -- '--[a-z-]+'); do
        if grep -qE -- "^ *$flag\b" <<<"$help"; then
            passes "$unit: $flag"
        else
            fails "$unit: $flag" "skycap serve has no such flag"
        fi
    done
    check "$unit: type" "$(setting "$unit" Type)" notify
    [ -n "$(setting "$unit" WatchdogSec)" ] || fails "$unit" "no watchdog"
done

for unit in "node:skycap" "registry:skycap-registry" "OIM controller:skycap-oim-controller"; do
    check "docs/security.md rates the ${unit%:*} as docs/deploy.md does" \
        "$(grep -E "^\| \`${unit#*:}\.service\` \|" "$SKYCAP_ROOT/docs/deploy.md" | grep -oE '[0-9.]+ \|$')" \
        "$(tr '\n' ' ' <"$SKYCAP_ROOT/docs/security.md" | sed -nE "s/.*the unit of an? ${unit%:*} ([0-9.]+)[,; (].*/\1/p") |"
done

cp "$SKYCAP_ROOT/deploy/systemd/skycap.socket" "$units/"
code=0
output=$(systemd-analyze verify --man=no "$units/skycap.socket" 2>&1) || code=$?
check "skycap.socket: systemd-analyze verify says nothing" "$code: $output" "0: "
listens=$(sed -n 's/^ListenStream=//p' "$units/skycap.socket")
check "skycap.socket is the default endpoint" "unix://$listens" "$(grep -oE -m 1 'unix:///[a-z/.]+' <<<"$help")"
check "skycap.socket: only root may open it" "$(sed -n 's/^SocketMode=//p' "$units/skycap.socket")" 0600
check "the node's socket is in its directory" "unix:///run/$(setting skycap RuntimeDirectory)/csi.sock" \
    "$(grep -oE -m 1 'unix:///[a-z/.]+' <<<"$help")"
check "the node's data is in its directory" "/var/lib/$(setting skycap StateDirectory)" "$(grep -oE -m 1 '/var/lib/skycap' <<<"$help")"
for unit in skycap-oim-controller skycap-registry; do
    start=$(setting $unit ExecStart)
    check "$unit: the socket is in its directory" "$(grep -oE 'unix://[^ ]*/' <<<"$start")" "unix:///run/$(setting $unit RuntimeDirectory)/"
    check "$unit: the data is its directory" "$(grep -oE -- '--data [^ ]*' <<<"$start")" "--data /var/lib/$(setting $unit StateDirectory)"
done
check "directories with mounts in them are never removed" "$(setting skycap RuntimeDirectoryPreserve)" yes
for name in $(grep -oE '%d/[a-z.]+' <<<"$start"); do
    if setting skycap-registry LoadCredential | grep -q "^${name#%d/}:"; then
        passes "credential $name"
    else
        fails "credential $name" "nothing loads it"
    fi
done

own_namespace='PrivateMounts|PrivateTmp|PrivateDevices|ProtectSystem|ProtectHome|ProtectProc|ProcSubset|ProtectKernelTunables|ProtectKernelModules|ProtectKernelLogs'
own_namespace+='|ProtectControlGroups|ProtectHostname|ReadWritePaths|ReadOnlyPaths|InaccessiblePaths|ExecPaths|NoExecPaths|BindPaths|BindReadOnlyPaths|TemporaryFileSystem'
own_namespace+='|RootDirectory|RootImage|MountImages|ExtensionImages|DynamicUser|PrivateIPC|IPCNamespacePath|MountFlags|LogNamespace|LoadCredential'
for unit in skycap skycap-oim-controller; do
    check "mounts of $unit reach the host" "$(grep -E "^($own_namespace)=" "$units/$unit.service" || true)" ""
done
finish
