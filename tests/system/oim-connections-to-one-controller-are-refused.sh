#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two oim connections to one controller would make one bdev of two volumes of one name: the second is refused, by whatever name of the socket, and also if it names the
# controller that the first has by default. One that only emulates another driver is not.
source "$(dirname "$0")/../oim-driver.sh"
need_storage

second() { # second OPTION...: the connection zoom with these options
    {
        printf 'driver: oim\noptions:\n'
        printf '  %s\n' "$@"
    } | connection zoom
}
trouble_of() { "$SKYCAP" connection list --endpoint "unix:$SOCKET" -o json | pick "[c.get('fileTrouble', '') for c in it['connections'] if c['name'] == '$1'][0]"; }
refused() { # refused WHAT: the connection zoom is
    ! reload || fail "$1 is taken for another controller"
    check "$1" "$(trouble_of acc) $(trouble_of zoom | grep -o 'add "zoom" to the aliases of "acc"')" ' add "zoom" to the aliases of "acc"'
}

# ---- the controller's own socket ----
start_controller
connect "endpoint: unix://$CONTROLLER_SOCKET"
start_node
second "endpoint: unix://$CONTROLLER_SOCKET" "controller: host-7"
refused "the socket"
ln -s "$CONTROLLER_SOCKET" "$SKYCAP_TMP/link.sock"
second "endpoint: unix://$SKYCAP_TMP/link.sock"
refused "a link to it"
refuses "connection check" 'zoom.yaml: connection "acc" leads to the same driver' '1 of 2' "$SKYCAP" connection check "$CONNECTIONS"
passes "connection check says so"
id=$(create data "$(on acc)")
refuses "a volume of that name there" INVALID_ARGUMENT 'there are: acc' create data "$(on zoom)"
check "the volume is there once" "$(volumes)" "$id"
second "endpoint: unix://$CONTROLLER_SOCKET" "emulate: ceph-csi"
reload
wait_until_up zoom
passes "one that emulates is taken"

# ---- through a registry: the controller counts ----
connect "registry: unix://$SKYCAP_TMP/registry.sock"
second "registry: unix://$SKYCAP_TMP/registry.sock" "controller: host-0"
refused "the controller that is the default"
second "registry: unix://$SKYCAP_TMP/registry.sock" "controller: host-1"
reload
passes "another controller is taken"
finish
