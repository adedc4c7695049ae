# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of `skycap velero host` share, beyond lib.sh: a plugin directory, odd plugins for it, and a look at what is left behind.

PLUGINS=$SKYCAP_TMP/plugins
STATE=$SKYCAP_TMP/state # the directory in which the plugins of the tests keep their snapshots
mkdir "$PLUGINS" "$STATE" "$SKYCAP_TMP/t"
export TMPDIR=$SKYCAP_TMP/t # where the host makes its sockets, unless the path is too long
[ ${#TMPDIR} -le 40 ] || TMPDIR=$(mktemp -d /tmp/vh.XXXX)
PV=$SKYCAP_TMP/pv.json
printf '{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv-1"},"spec":{"hostPath":{"path":"/volumes/vol1"}}}' >"$PV"

# host ARGUMENT...: skycap velero host with the plugin directory and the settings of the tests' plugins.
host() {
    timeout $((60 * ${TIME_FACTOR:-1})) "$SKYCAP" velero host --plugin-dir "$PLUGINS" --config directory="$STATE" "$@"
}

# add_odd NAME: the odd plugin of that name, see tests/velero/odd-plugin.c.
add_odd() {
    cp "$SKYCAP_BUILD/tests/odd-plugin" "$PLUGINS/$1"
}

# add_script NAME: a plugin that is a shell script, from standard input.
add_script() {
    { echo '#!/bin/sh'; cat; } >"$PLUGINS/$1"
    chmod +x "$PLUGINS/$1"
}

# plugins_left: processes of the plugin directory, by program or script, and temporary files.
plugins_left() {
    ls -A "$TMPDIR"
    /usr/bin/python3 - "$PLUGINS/" <<'END'
import os
import sys

for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        program = os.readlink(f"/proc/{pid}/exe")
        words = open(f"/proc/{pid}/cmdline", errors="replace").read().split("\0")
        state = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError:
        continue  # it has ended
    if any(word.startswith(sys.argv[1]) for word in [program, *words[:2]]):
        print(pid, state, program, *words)
END
}

no_plugins_left() { [ -z "$(plugins_left)" ]; }

# expect_clean: the same, with time for the kernel to remove what was killed.
expect_clean() {
    wait_for 15 no_plugins_left || fail "the host left behind: $(plugins_left)"
}
