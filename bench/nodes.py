# SPDX-License-Identifier: Apache-2.0
"""Skycap nodes and their registry on this machine, in network namespaces that go with the bench, with mutual TLS."""

import json
import os
import pathlib
import subprocess
import time

from harness import NotMeasured, Process, run_program

SETTLE_SECONDS = 120


class Machine:
    """A network namespace. A process that sleeps keeps it; it goes with that."""

    def __init__(self, stack):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
        stack.callback(self.holder.wait)
        stack.callback(self.holder.kill)
        own = os.readlink("/proc/self/ns/net")
        deadline = time.monotonic() + 10
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:
            if self.holder.poll() is not None or time.monotonic() > deadline:
                raise NotMeasured("a network namespace cannot be made")
            time.sleep(0.01)
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *words):
        return ["nsenter", "--net", "--target", str(self.holder.pid), "--", *map(str, words)]

    def run(self, *words, seconds=60):
        return run_program(self.command(*words), seconds)

    def received_bytes(self):
        """By its link to the other machine."""
        for line in pathlib.Path(f"/proc/{self.holder.pid}/net/dev").read_text().splitlines():
            name, _, figures = line.partition(":")
            if name.strip() == "eth0":
                return int(figures.split()[0])
        raise NotMeasured("the namespace has no eth0")


def join(one, other, addresses):
    """A link between two machines."""
    one.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", other.holder.pid)
    for machine, address in zip((one, other), addresses):
        machine.run("ip", "addr", "add", f"{address}/24", "dev", "eth0")
        machine.run("ip", "link", "set", "eth0", "up")


class Node:
    """One server: a node of the cluster, its registry, or a node alone."""

    def __init__(self, cluster, process, socket, name):
        self.cluster, self.process, self.socket, self.name = cluster, process, socket, name

    def call(self, *words, seconds=600):
        return run_program([self.cluster.skycap, *words, "--endpoint", f"unix:{self.socket}"], seconds)

    def members(self):
        """The state of each node, as this one sees it; none before the registry has answered."""
        try:
            nodes = json.loads(self.call("node", "list", "-o", "json")).get("nodes", [])
        except NotMeasured:
            return {}
        return {node["id"]: node.get("state", "UNKNOWN") for node in nodes}


class Cluster:
    """A registry and nodes, all with certificates of one authority. What it starts ends with the stack."""

    def __init__(self, build, directory, stack):
        self.skycap, self.directory, self.stack = build / "skycap", directory, stack
        self.pki = directory / "pki"
        self.nodes = []
        run_program([self.skycap, "pki", "init", self.pki], 30)

    def tls(self, name):
        if not (self.pki / f"{name}.crt").exists():
            run_program([self.skycap, "pki", "issue", name, "--pki", self.pki], 30)
        return ["--tls-ca", self.pki / "ca.crt", "--tls-cert", self.pki / f"{name}.crt",
                "--tls-key", self.pki / f"{name}.key"]

    def serve(self, machine, name, *flags):
        """Begins to start it; wait_for tells when it answers."""
        socket = self.directory / f"{name}.sock"
        command = machine.command(self.skycap, "serve", "--endpoint", f"unix:{socket}",
                                  "--data", self.directory / f"{name}.data", *flags)
        process = self.stack.enter_context(Process(name, command, self.directory / f"{name}.log"))
        return Node(self, process, socket, name)

    def start_registry(self, machine, address, *flags):
        self.registry = self.serve(machine, "registry", "--roles", "registry", "--listen", address,
                                   *self.tls("component.registry"), *flags)
        self.registry.address = address
        self.registry.process.wait_for_socket(self.registry.socket)
        return self.registry

    def start_node(self, machine, name, address, *flags):
        node = self.serve(machine, name, "--node-id", name, "--listen", address, "--registry", self.registry.address,
                          *self.tls(f"node.{name}"), *flags)
        self.nodes.append(node)
        return node

    def start_alone(self, machine, name, *flags):
        """A node of no cluster."""
        node = self.serve(machine, name, "--node-id", name, *flags)
        node.process.wait_for_socket(node.socket)
        return node

    def wait_until_settled(self):
        """Every node says of every node that it is ready."""
        deadline = time.monotonic() + SETTLE_SECONDS
        wanted = {node.name: "READY" for node in self.nodes}
        for node in self.nodes:
            node.process.wait_for_socket(node.socket)
        for node in self.nodes:
            while (seen := node.members()) != wanted:
                if time.monotonic() > deadline:
                    raise NotMeasured(f"{node.name} sees {seen}")
                time.sleep(0.1)
