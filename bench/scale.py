# SPDX-License-Identifier: Apache-2.0
"""The scale part: many nodes and one registry on this machine, each node a process with an address of its own on the
loopback device of a network namespace, with mutual TLS and the usual time between renewals. As root. docs/scale.md
reckons from these figures to larger clusters."""

import concurrent.futures
import contextlib
import ctypes
import os
import pathlib
import re
import statistics
import tempfile
import time
import urllib.request

from harness import NotMeasured, print_table
from nodes import Cluster, Machine

NODES = 100
REGISTRY = "127.0.0.1:8999"
QUIET_SECONDS = 30
MOST_SECONDS = 180
JOIN_SECONDS = 5
POLL_SECONDS = 0.1
CLONE_NEWNET = 0x40000000


def address_of(number):
    return f"127.0.{1 + number // 200}.{1 + number % 200}"


class Inside:
    """A thread in the namespace of a machine, which asks the nodes for their metrics."""

    def __init__(self, machine, stack):
        self.thread = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        self.thread.submit(self.enter, machine.holder.pid).result()

    @staticmethod
    def enter(pid):
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/proc/{pid}/ns/net", "rb") as namespace:
            if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                raise NotMeasured(f"the namespace cannot be entered: {os.strerror(ctypes.get_errno())}")

    @staticmethod
    def read(node):
        try:
            with urllib.request.urlopen(f"http://{node.http}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return None
        found = [re.search(rf'skycap_cluster_nodes{{state="{state}"}} (\d+)', text) for state in ("registered", "lost")]
        return tuple(int(one[1]) for one in found) if all(found) else None  # the node may be starting

    def wait_for(self, nodes, registered, lost):
        """When the first and the last of the nodes saw this, in seconds from now."""
        begin, seen = time.monotonic(), {}
        while len(seen) < len(nodes):
            for node in nodes:
                if node not in seen and self.thread.submit(self.read, node).result() == (registered, lost):
                    seen[node] = time.monotonic() - begin
            if time.monotonic() - begin > MOST_SECONDS:
                raise NotMeasured(f"{len(seen)} of {len(nodes)} nodes see {registered} registered and {lost} lost nodes")
            time.sleep(POLL_SECONDS)
        return min(seen.values()), max(seen.values())


class Crowd:
    """A registry and nodes."""

    def __init__(self, build, directory, stack):
        self.machine = Machine(stack)
        self.cluster = Cluster(build, directory, stack)
        self.registry = self.cluster.start_registry(self.machine, REGISTRY)
        self.inside = Inside(self.machine, stack)
        self.nodes = []
        for number in range(NODES + 2):
            self.cluster.tls(f"node.node-{number:03}")

    def start(self):
        number = len(self.nodes)
        host = address_of(number)
        node = self.cluster.start_node(self.machine, f"node-{number:03}", f"{host}:8443", "--backend", "dir",
                                       "--http", f"{host}:8080")
        node.http = f"{host}:8080"
        self.nodes.append(node)
        return node

    def traffic(self):
        """Bytes that the loopback device has carried."""
        text = pathlib.Path(f"/proc/{self.machine.holder.pid}/net/dev").read_text()
        return int(re.search(r"lo:\s*(\d+)", text)[1])

    def used(self, nodes):
        """CPU seconds of the registry and of the nodes together, and bytes."""
        return (self.registry.process.cpu_seconds(), sum(node.process.cpu_seconds() for node in nodes), self.traffic())


def status_of(process, field):
    text = pathlib.Path(f"/proc/{process.popen.pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+)", text)[1])


def own_mib(process):
    """Without the program itself, which all share."""
    return status_of(process, "RssAnon") / 1024


def start_first(crowd):
    """Its memory in MiB while it is the only one."""
    first = crowd.start()
    crowd.inside.wait_for([first], 1, 0)
    return own_mib(first.process)


def start_others(crowd):
    """Seconds from the first start until every node knows all."""
    begin = time.monotonic()
    for _ in range(NODES - 1):
        crowd.start()
    started = time.monotonic() - begin
    return started, started + crowd.inside.wait_for(crowd.nodes, NODES, 0)[1]


def be_quiet(crowd):
    """Nothing happens but renewals: CPU of the registry and of all nodes together, and bytes, per second."""
    before, begin = crowd.used(crowd.nodes), time.monotonic()
    time.sleep(QUIET_SECONDS)
    after, seconds = crowd.used(crowd.nodes), time.monotonic() - begin
    return [(now - then) / seconds for then, now in zip(before, after)]


def join_timed(crowd):
    """Seconds from the start of one more node until all know it."""
    crowd.start()
    return crowd.inside.wait_for(crowd.nodes[:-1], len(crowd.nodes), 0)[1]


def join_counted(crowd, quiet):
    """What one more node costs beyond the usual: CPU ms of the registry and of each other node, and bytes. Nobody is asked
    meanwhile."""
    others, before, begin = crowd.nodes[:], crowd.used(crowd.nodes), time.monotonic()
    crowd.start()
    time.sleep(JOIN_SECONDS)
    seconds, after = time.monotonic() - begin, crowd.used(others)
    registry, nodes, bytes_ = (now - then - usual * seconds for then, now, usual in zip(before, after, quiet))
    return 1e3 * registry, 1e3 * nodes / len(others), bytes_


def lose_one(crowd):
    """Seconds from a kill until the first and the last node take the node for lost."""
    victim = crowd.nodes.pop()
    victim.process.popen.kill()
    victim.process.popen.wait()
    return crowd.inside.wait_for(crowd.nodes, len(crowd.nodes), 1)


def memory_rows(crowd, alone):
    processes = [node.process for node in crowd.nodes]
    rss = [process.memory_mib() for process in processes]
    own = [own_mib(process) for process in processes]
    threads = statistics.median(status_of(process, "Threads") for process in processes)
    registry = crowd.registry.process
    return [["RSS of a node, median and most", f"{statistics.median(rss):.1f} and {max(rss):.1f} MiB"],
            ["  of that its own (RssAnon), median", f"{statistics.median(own):.1f} MiB"],
            ["  of that for each other node", f"{1024 * (statistics.median(own) - alone) / (NODES - 1):.1f} KiB"],
            ["  threads", f"{threads:.0f}"],
            ["RSS of the registry", f"{registry.memory_mib():.1f} MiB"],
            ["  threads", status_of(registry, "Threads")],
            ["  open descriptors", len(os.listdir(f"/proc/{registry.popen.pid}/fd"))]]


def measure_crowd(crowd):
    alone = start_first(crowd)
    started, settled = start_others(crowd)
    quiet = be_quiet(crowd)
    registry, nodes, bytes_ = quiet
    memory = memory_rows(crowd, alone)
    joined = join_timed(crowd)
    join_cpu, node_cpu, join_bytes = join_counted(crowd, quiet)
    first, last = lose_one(crowd)
    print_table(f"{NODES} nodes and a registry on this machine", ["", ""], [
        ["all processes started", f"{started:.1f} s"],
        ["  every node knows all", f"{settled:.1f} s"],
        *memory,
        ["CPU of the registry when nothing happens", f"{100 * registry:.2f} % of a core"],
        ["CPU of a node when nothing happens", f"{100 * nodes / NODES:.3f} % of a core"],
        ["traffic when nothing happens", f"{bytes_ / 1e3:.1f} kB/s"],
        ["one more node: known to all after its start", f"{joined:.2f} s"],
        ["  CPU of the registry for it", f"{join_cpu:.0f} ms"],
        ["  CPU of each other node for it", f"{node_cpu:.2f} ms"],
        ["  traffic for it", f"{join_bytes / 1e3:.0f} kB"],
        ["a node is killed: the first notices after", f"{first:.1f} s"],
        ["  the last notices after", f"{last:.1f} s"]])


def measure(_root, build, _arguments, report):
    with report.topic("scale"), contextlib.ExitStack() as stack:
        if os.geteuid() != 0:
            raise NotMeasured("needs root: a network namespace is made")
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="skycap-scale-"))
        measure_crowd(Crowd(build, pathlib.Path(directory), stack))
