# SPDX-License-Identifier: Apache-2.0
"""The cluster under test: nodes, registries and members of etcd, each on a machine of its own, with
mutual TLS between all of them. The nodes know the registries by one name."""

import os
import pathlib
import subprocess
import threading

from calls import Client
from network import Network
from power import PowerMachine, build, share_mounts
from processes import Process, wait_until

PORT = 8999
ETCD_CLIENTS, ETCD_PEERS = 2379, 2380
SETTLE_SECONDS = 60
TOPOLOGY = "topology.skycap.dev/node"


class Lab:
    def __init__(self, options):
        self.options = options
        self.base = pathlib.Path(options.base)
        self.skycap = options.skycap
        self.nodes = [f"node-{i + 1}" for i in range(options.nodes)]
        is_etcd = options.store == "etcd"
        self.registries = ["registry-1", "registry-2"] if is_etcd else ["registry-1"]
        self.members = ["etcd-1", "etcd-2", "etcd-3"] if is_etcd else []
        self.network = Network(self.nodes + self.registries + self.members)
        self.processes = {}
        self.clients = {}
        self.in_use = []  # the nodes of the last copy that was begun: faults prefer them
        self.has_begun = threading.Event()  # a copy
        self.pki = self.base / "pki"
        self.machines = {}  # those whose power can be cut
        self.make_names()
        self.make_certificates()
        if options.power:
            self.make_machines()

    # ---- preparing ----

    def make_machines(self):
        share_mounts(self.base)
        program = build(self.base)
        for name in self.nodes + self.registries:
            self.machines[name] = PowerMachine(name, self.base, program)

    def begin_copy(self, *nodes):
        self.in_use = [node for node in nodes if node]
        self.has_begun.set()

    def cuts(self, name):
        """How often the power of the machine was cut."""
        return self.machines[name].cuts if name in self.machines else 0

    def make_names(self):
        """A name with the addresses of all registries, for the processes of this test."""
        hosts = self.base / "hosts"
        addresses = [self.network.addresses[name] for name in self.registries]
        hosts.write_text("".join(f"{address} registry\n" for address in addresses))
        switch = self.base / "nsswitch.conf"
        switch.write_text("hosts: files\n")
        for file, path in ((hosts, "/etc/hosts"), (switch, "/etc/nsswitch.conf")):
            subprocess.run(["mount", "--bind", file, path], check=True)

    def make_certificates(self):
        run = [self.skycap, "pki"]
        subprocess.run([*run, "init", self.pki], check=True, capture_output=True)
        sans = [word for name in self.members for word in ("--san", self.network.addresses[name])]
        names = ["component.registry", *(f"node.{node}" for node in self.nodes)]
        issues = [[name] for name in names] + ([["etcd", *sans]] if sans else [])
        for words in issues:
            command = [*run, "issue", *words, "--pki", self.pki]
            subprocess.run(command, check=True, capture_output=True)

    def tls(self, name, prefix="tls"):
        files = {"ca": "ca.crt", "cert": f"{name}.crt", "key": f"{name}.key"}
        return [word for key, file in files.items() for word in (f"--{prefix}-{key}", self.pki / file)]

    def at(self, name, port=PORT):
        return f"{self.network.addresses[name]}:{port}"

    def socket(self, name):
        return f"unix:{self.base}/{name}.sock"

    # ---- starting ----

    def add(self, name, words):
        words = [str(word) for word in words]
        if name in self.machines:
            words = self.machines[name].command(words)
        command = self.network.command(name, words)
        self.processes[name] = Process(name, command, self.base / f"{name}.log")

    def add_member(self, name):
        tls = {"cert-file": "etcd.crt", "key-file": "etcd.key", "trusted-ca-file": "ca.crt"}
        peers = [f"{other}=https://{self.at(other, ETCD_PEERS)}" for other in self.members]
        words = ["etcd", "--name", name, "--data-dir", self.base / f"{name}.data"]
        for kind, port in (("client", ETCD_CLIENTS), ("peer", ETCD_PEERS)):
            words += [f"--listen-{kind}-urls", f"https://{self.at(name, port)}"]
        words += ["--advertise-client-urls", f"https://{self.at(name, ETCD_CLIENTS)}"]
        words += ["--initial-advertise-peer-urls", f"https://{self.at(name, ETCD_PEERS)}"]
        words += ["--initial-cluster", ",".join(peers), "--logger", "zap"]
        for prefix in ("", "peer-"):
            words += [f"--{prefix}client-cert-auth"]
            words += [w for flag, file in tls.items() for w in (f"--{prefix}{flag}", self.pki / file)]
        self.add(name, words)

    def serve(self, name, roles, words):
        endpoint = ["--endpoint", self.socket(name), "--data", self.base / f"{name}.data"]
        self.add(
            name,
            [self.skycap, "serve", "--roles", roles, *endpoint, "--listen", self.at(name), *words],
        )

    def add_registry(self, name):
        words = self.tls("component.registry")
        if self.members:
            members = ",".join(self.at(member, ETCD_CLIENTS) for member in self.members)
            words += ["--store", f"etcd://{members}", *self.tls("component.registry", "store")]
        self.serve(name, "registry", words)

    def add_node(self, name, backend):
        words = ["--node-id", name, "--registry", f"registry:{PORT}", "--registry-delay", "1"]
        words += ["--backend", backend]
        if backend != "dir":
            words += ["--pool-size", "2Gi"]
        if self.machines:  # copies last long enough to be cut off
            words += ["--transfer-rate", "20Mi"]
        self.serve(name, "node,controller", words + self.tls(f"node.{name}"))
        self.clients[name] = Client(self.skycap, self.socket(name))

    def start(self):
        """Starts everything. Raises RuntimeError if the nodes do not find each other."""
        for name in self.members:
            self.add_member(name)
        for name in self.registries:
            self.add_registry(name)
        backends = self.options.backends.split(",")
        for i, name in enumerate(self.nodes):
            self.add_node(name, backends[i % len(backends)])
        for machine in self.machines.values():
            machine.boot()
        for process in self.processes.values():
            process.start()
        problem = self.settle()
        if problem:
            raise RuntimeError(problem)

    # ---- state ----

    def states(self, node):
        """What the node says of all nodes; {} if it does not answer."""
        answer = self.clients[node].run("node", "list", seconds=5)
        if not answer.is_ok:
            return {}
        return {one["id"]: one.get("state", "UNKNOWN") for one in answer.reply.get("nodes", [])}

    def settle(self):
        """Waits until every node says that all are ready. Returns what is wrong, or None."""
        wanted = dict.fromkeys(self.nodes, "READY")
        for node in self.nodes:
            if not wait_until(lambda: self.states(node) == wanted, SETTLE_SECONDS):
                return f"{node} is not settled after {SETTLE_SECONDS} s: {self.states(node)}"
        return None

    def data_root(self, node):
        """Where the back end of the node has its directories."""
        data = self.base / f"{node}.data"
        return data / "pool" if (data / "pool").is_dir() else data

    def end(self):
        """Ends everything. Returns what went wrong with it."""
        nodes = [self.processes[name] for name in self.nodes if name in self.processes]
        problems = [process.end() for process in nodes]
        problems += [p.end() for p in self.processes.values() if p not in nodes]
        return [problem for problem in problems if problem]

    def kill(self):
        for name, machine in self.machines.items():
            machine.clear(self.processes.get(name))
        for process in self.processes.values():
            process.kill()
        if self.machines:
            subprocess.run(["umount", "--lazy", self.base])


def undo_storage(base):
    """Takes away what is mounted below the directory, and the loop devices of files there."""
    with open("/proc/self/mounts") as file:
        points = [line.split()[1] for line in file]
    for point in reversed(points):
        if point.startswith(f"{base}/"):
            subprocess.run(["umount", "--lazy", point], capture_output=True)
    for entry in sorted(pathlib.Path("/sys/block").glob("loop*/loop/backing_file")):
        try:
            file = entry.read_text().strip()
        except OSError:
            continue
        if file.startswith(f"{base}/"):
            device = "/dev/" + entry.parent.parent.name
            subprocess.run(["losetup", "--detach", device], capture_output=True)
    # Snapshots in directories are immutable.
    subprocess.run(["chattr", "-R", "-i", base], capture_output=True)


def is_allowed():
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "--net", "true"]).returncode == 0
