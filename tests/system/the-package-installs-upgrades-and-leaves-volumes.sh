#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# time-limit: 180
# The Debian package in a new Debian: lintian finds no error; it installs, starts nothing, upgrades from an earlier version, is removed and purged; volumes survive all of it, and a purge
# says so. The Debian is the one that tools/fresh keeps; an overlay of it is thrown away.
if [ -z "${OWN_NAMESPACE:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "needs root, to enter a directory as its root"; exit 77; }
    OWN_NAMESPACE=1 exec unshare --mount --propagation private --pid --fork --kill-child --mount-proc "$0" "$@"
fi
source "$(dirname "$0")/../peers.sh"
requires lintian dpkg-deb
base=${SKYCAP_FRESH:-$HOME/.cache/skycap-fresh}/bookworm
if [ "$SLOWER" != 1 ]; then
    echo "a build with sanitizers is not packaged"
    exit 77
fi
if [ ! -e "$base/.complete" ]; then
    echo "needs a Debian in a folder: tools/fresh --only base could not make it"
    exit 77
fi

# ---- the package ---------------------------------------------------------------------------------

new=$("$SKYCAP_ROOT/tools/make-deb" "$SKYCAP_BUILD" "$SKYCAP_TMP") || fail "no package"
version=$(dpkg-deb --field "$new" Version)
check "its name" "$(basename "$new")" "skycap_${version}_$(dpkg --print-architecture).deb"
code=0
lintian --allow-root --fail-on none "$new" >"$SKYCAP_TMP/lintian" 2>&1 || code=$?
check "lintian ends well" "$code" 0
check "lintian" "$(grep -vE '^[NI]:' "$SKYCAP_TMP/lintian" || true)" ""
check "no configuration files" "$(dpkg-deb --ctrl-tarfile "$new" | tar -t | grep conffiles || true)" ""

# The same files under an earlier number.
dpkg-deb --raw-extract "$new" "$SKYCAP_TMP/earlier"
sed -i 's/^Version: .*/Version: 0.0.1/' "$SKYCAP_TMP/earlier/DEBIAN/control"
echo earlier >"$SKYCAP_TMP/earlier/usr/share/doc/skycap/only-earlier"
dpkg-deb --root-owner-group -Znone --build "$SKYCAP_TMP/earlier" "$SKYCAP_TMP/earlier.deb" >/dev/null

# ---- the Debian ----------------------------------------------------------------------------------

root=$SKYCAP_TMP/root
mkdir "$SKYCAP_TMP/memory" "$root"
mount -t tmpfs tmpfs "$SKYCAP_TMP/memory"
mkdir "$SKYCAP_TMP/memory/upper" "$SKYCAP_TMP/memory/work"
mount -t overlay -o "lowerdir=$base,upperdir=$SKYCAP_TMP/memory/upper,workdir=$SKYCAP_TMP/memory/work" overlay "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
cp "$new" "$root/new.deb"
cp "$SKYCAP_TMP/earlier.deb" "$root/earlier.deb"

enter=(chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin)
inside() { "${enter[@]}" "$@"; }
installed() { inside dpkg-query -W -f '${Status} ${Version}' skycap 2>/dev/null || true; }

# serves COMMAND...: runs it beside the server that was installed.
serves() {
    local server code=0
    "${enter[@]}" skycap serve --backend dir >"$SKYCAP_TMP/serve.log" 2>&1 &
    server=$!
    wait_for 10 inside skycap probe --timeout 2 >/dev/null 2>&1 || fail "it does not serve: $(tail -n 3 "$SKYCAP_TMP/serve.log")"
    inside "$@" || code=$?
    kill -TERM "$server"
    wait "$server" || code=$?
    return "$code"
}

output=$(inside dpkg -i /earlier.deb 2>&1) || fail "it cannot be installed: $output"
check "installed" "$(installed)" "install ok installed 0.0.1"
case $output in
*"systemctl enable --now skycap"*) passes "it says how to start" ;;
*) fails "it says how to start" "$output" ;;
esac
check "nothing is enabled" "$(find "$root/etc/systemd" -name 'skycap*')" ""
check "no data is made" "$(ls -d "$root/var/lib/skycap" 2>/dev/null || true)" ""
for file in usr/share/bash-completion/completions/skycap usr/share/zsh/vendor-completions/_skycap usr/share/fish/vendor_completions.d/skycap.fish \
    usr/share/man/man1/skycap.1.gz usr/share/man/man1/skycap-velero.1.gz lib/systemd/system/skycap.service lib/systemd/system/skycap.socket lib/systemd/system/skycap-registry.service \
    lib/systemd/system/skycap-oim-controller.service usr/share/doc/skycap/SECURITY.md; do
    [ -s "$root/$file" ] || fails "$file" "it is not there"
done
for link in $(sed -nE 's/.*\]\((docs\/[^)#]*).*/\1/p' "$root/usr/share/doc/skycap/README.md") docs/upgrade.md docs/session.svg; do
    [ -s "$root/usr/share/doc/skycap/$link" ] || fails "$link of the documents" "it is not there"
done
cited=$(inside skycap serve --help | grep -oE 'docs/[a-z-]+\.md' | sort -u)
[ -n "$cited" ] || fails "documents that a help names" "none"
for link in $cited; do
    [ -s "$root/usr/share/doc/skycap/$link" ] || fails "$link, which a help names" "it is not there"
done
check "the program is the installed one" "$(inside skycap version | head -n 1)" "$("$SKYCAP" version | head -n 1)"
check "the plugin runs" "$(inside skycap-velero --help 2>&1 | grep -c 'plugin of Velero' || true)" 1

serves skycap volume create precious --size 10Mi >"$SKYCAP_TMP/created" || fail "no volume: $(cat "$SKYCAP_TMP/created")"
mkdir -p "$root/etc/skycap"
echo 'SKYCAP_OPTIONS=--backend dir' >"$root/etc/skycap/skycap.env"

output=$(inside dpkg -i /new.deb 2>&1) || fail "it cannot be upgraded: $output"
check "upgraded" "$(installed)" "install ok installed $version"
check "files of the earlier version go" "$(ls "$root/usr/share/doc/skycap/only-earlier" 2>/dev/null || true)" ""
check "an upgrade gives no first advice" "$(grep -c 'enable --now' <<<"$output" || true)" 0
check "the volume after the upgrade" "$(serves skycap volume list | grep -c '^precious ' || true)" 1

inside dpkg -r skycap >/dev/null 2>&1 || fail "it cannot be removed"
check "no program after the removal" "$(ls "$root"/usr/bin/skycap* 2>/dev/null || true)" ""
output=$(inside dpkg -P skycap 2>&1) || fail "it cannot be purged: $output"
check "purged" "$(installed)" ""
check "a purge says that the volumes stay" "$(grep -c '/var/lib/skycap stays' <<<"$output" || true)" 1
check "the administrator's settings" "$(cat "$root/etc/skycap/skycap.env")" "SKYCAP_OPTIONS=--backend dir"
check "nothing else is left" "$(find "$root/usr" "$root/lib/" -name '*skycap*' | head)" ""

inside dpkg -i /new.deb >/dev/null 2>&1 || fail "it cannot be installed again"
check "the volume after all of it" "$(serves skycap volume list | grep -c '^precious ' || true)" 1
finish
