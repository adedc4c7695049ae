# SPDX-License-Identifier: Apache-2.0
"""Machines: network namespaces on one bridge, and the ways to cut them off.

A pair of machines is cut in one direction by a neighbour entry with an address that nobody has:
packets leave and arrive nowhere, as behind a broken switch. Nothing is refused.
"""

import os
import subprocess

NETWORK = "10.99.0"
NOWHERE = "02:00:00:00:00:ff"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    def __init__(self, names):
        self.addresses = {name: f"{NETWORK}.{i + 1}" for i, name in enumerate(names)}
        os.makedirs("/run/netns", exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run/netns"], check=True)
        ip("link", "set", "lo", "up")
        ip("link", "add", "bridge", "type", "bridge")
        ip("link", "set", "bridge", "up")
        for name in names:
            self.add(name)

    def port(self, name):
        return "port" + self.addresses[name].rpartition(".")[2]

    def add(self, name):
        ip("netns", "add", name)
        ip("link", "add", self.port(name), "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", self.port(name), "master", "bridge", "up")
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "addr", "add", self.addresses[name] + "/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")

    def command(self, name, words):
        """`words` as a command on the machine."""
        return ["nsenter", f"--net=/run/netns/{name}", *words]

    # ---- faults ----

    def unplug(self, name):
        ip("link", "set", self.port(name), "down")

    def plug(self, name):
        ip("link", "set", self.port(name), "up")

    def cut(self, source, target):
        """Nothing that `source` sends arrives at `target`."""
        neighbour = ["neigh", "replace", self.addresses[target], "lladdr", NOWHERE]
        ip("-n", source, *neighbour, "dev", "eth0", "nud", "permanent")

    def mend(self, source, target):
        subprocess.run(
            ["ip", "-n", source, "neigh", "del", self.addresses[target], "dev", "eth0"],
            capture_output=True,
        )
